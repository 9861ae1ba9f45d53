#include "checkpoint/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <set>

#include "base/error.h"

namespace t5x::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CheckpointContents contents_of(float value) {
  Array array(DType::kFloat32, {4, 8});
  for (float& element : array.values<float>()) element = value;
  return {{{"target/a/kernel", array},
           {"target/b/kernel", array},
           {"state/step", Array::scalar<int32_t>(static_cast<int32_t>(value))}},
          {{"train_ds-00000-of-00001", std::to_string(value)}}};
}

float value_of(const RestoredCheckpoint& restored) {
  return restored.contents.arrays.at("target/b/kernel").values<float>()[31];
}

// Names in `dir` but for the lock.
std::set<std::string> names_in(const fs::path& dir) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) names.insert(entry.path().filename().string());
  names.erase(".checkpoint_lock");
  return names;
}

void truncate_chunk(const fs::path& checkpoint) { fs::resize_file(checkpoint / "target.b.kernel/0.0", 12); }

// Counts files and calls `at_limit` instead of writing the one after `limit`.
FileWriter limited_writer(int limit, std::function<void(const fs::path&)> at_limit) {
  auto count = std::make_shared<std::atomic<int>>(0);
  return [=](const fs::path& path, std::string_view bytes) {
    if (count->fetch_add(1) == limit) return at_limit(path);
    write_file(path, bytes);
  };
}

TEST(CheckpointManager, RestoresWhatWasSaved) {
  TempDir dir;
  CheckpointManager manager(dir / "model");
  manager.save(3, contents_of(3));
  const std::optional<RestoredCheckpoint> restored = manager.restore_latest();
  ASSERT_TRUE(restored.has_value());
  EXPECT_EQ(restored->step, 3);
  EXPECT_EQ(value_of(*restored), 3);
  EXPECT_EQ(restored->contents.files, contents_of(3).files);
}

TEST(CheckpointManager, EmptyDirectoryRestoresNothing) {
  TempDir dir;
  EXPECT_FALSE(CheckpointManager(dir.path()).restore_latest().has_value());
}

TEST(CheckpointManager, StepsAreNumbersNotText) {
  TempDir dir;
  CheckpointManager manager(dir.path());
  for (int64_t step : {9, 10, 100}) manager.save(step, contents_of(static_cast<float>(step)));
  fs::create_directory(dir / "checkpoint_11.tmp-5");
  fs::create_directory(dir / "checkpoint_x");
  write_file(dir / "checkpoint_12", "a file");
  EXPECT_THAT(manager.steps(), ElementsAre(9, 10, 100));
}

TEST(CheckpointManager, KeepsNewestAndPeriod) {
  TempDir dir;
  CheckpointManager manager(dir.path(), {.keep = 2, .keep_period = 20});
  for (int64_t step : {10, 20, 30, 40, 50}) manager.save(step, contents_of(1));
  EXPECT_THAT(manager.steps(), ElementsAre(20, 40, 50));
}

TEST(CheckpointManager, DamagedCheckpointDoesNotCountAsKept) {
  TempDir dir;
  CheckpointManager manager(dir.path(), {.keep = 2});
  manager.save(1, contents_of(1));
  manager.save(2, contents_of(2));
  truncate_chunk(dir / "checkpoint_2");
  manager.save(3, contents_of(3));
  EXPECT_THAT(manager.steps(), ElementsAre(1, 3));
}

TEST(CheckpointManager, SameStepIsReplaced) {
  TempDir dir;
  CheckpointManager manager(dir.path());
  manager.save(1, contents_of(1));
  manager.save(1, contents_of(5));
  EXPECT_EQ(value_of(manager.restore(1)), 5);
  EXPECT_THAT(names_in(dir.path()), ElementsAre("checkpoint_1"));
}

TEST(CheckpointManager, DamageFallsBackToLastWhole) {
  TempDir dir;
  CheckpointManager manager(dir.path());
  for (int64_t step : {1, 2, 3}) manager.save(step, contents_of(static_cast<float>(step)));
  truncate_chunk(dir / "checkpoint_3");
  fs::remove(dir / "checkpoint_2/checkpoint");
  ::testing::internal::CaptureStderr();
  const std::optional<RestoredCheckpoint> restored = manager.restore_latest();
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(restored.has_value());
  EXPECT_EQ(restored->step, 1);
  ASSERT_EQ(restored->skipped.size(), 2);
  EXPECT_EQ(restored->skipped[0].step, 3);
  EXPECT_THAT(restored->skipped[1].reason, HasSubstr("missing"));
  EXPECT_THAT(log, AllOf(HasSubstr("checkpoint_3' is not whole"), HasSubstr("falling back to")));
}

TEST(CheckpointManager, NoWholeCheckpointThrows) {
  TempDir dir;
  CheckpointManager manager(dir.path());
  manager.save(1, contents_of(1));
  truncate_chunk(dir / "checkpoint_1");
  EXPECT_THROW(manager.restore_latest(), CheckpointError);
}

TEST(CheckpointManager, UnknownStepNamesSteps) {
  TempDir dir;
  CheckpointManager manager(dir.path());
  manager.save(1, contents_of(1));
  manager.save(4, contents_of(1));
  try {
    manager.restore(2);
    FAIL() << "no error";
  } catch (const CheckpointError& e) {
    EXPECT_THAT(e.what(), HasSubstr("there are: 1, 4"));
  }
}

TEST(CheckpointManager, PathOfStepOrModelIsRestored) {
  TempDir dir;
  CheckpointManager manager(dir.path());
  manager.save(1, contents_of(1));
  manager.save(2, contents_of(2));
  EXPECT_EQ(restore_path(dir / "checkpoint_1").step, 1);
  EXPECT_EQ(restore_path((dir / "checkpoint_1").string() + "/").step, 1);
  EXPECT_EQ(restore_path(dir.path()).step, 2);
  EXPECT_THROW(restore_path(dir / "nothing"), CheckpointError);
}

TEST(CheckpointManager, StaleTemporariesAreRemovedAtStart) {
  TempDir dir;
  write_checkpoint(dir / "checkpoint_7.tmp-123", contents_of(1));
  CheckpointManager manager(dir.path());
  EXPECT_THAT(names_in(dir.path()), IsEmpty());
}

TEST(CheckpointManager, SecondWriterThrows) {
  TempDir dir;
  const CheckpointManager first(dir.path());
  try {
    const CheckpointManager second(dir.path());
    FAIL() << "no error";
  } catch (const CheckpointError& e) {
    EXPECT_THAT(e.what(), HasSubstr("another process writes checkpoints"));
  }
}

TEST(CheckpointManager, LockEndsWithManager) {
  TempDir dir;
  { const CheckpointManager first(dir.path()); }
  EXPECT_NO_THROW(CheckpointManager(dir.path()));
}

TEST(CheckpointManager, FullDiskLeavesPreviousUntouched) {
  TempDir dir;
  // Six files are whole; every one may be the one that does not fit.
  for (int limit = 0; limit < 7; ++limit) {
    CheckpointManager(dir.path()).save(1, contents_of(1));
    ManagerOptions options;
    options.write.write_file =
        limited_writer(limit, [](const fs::path& path) { throw_io_error("writing", path, ENOSPC); });
    CheckpointManager manager(dir.path(), options);
    EXPECT_THROW(manager.save(2, contents_of(2)), IoError) << limit;
    EXPECT_THAT(names_in(dir.path()), ElementsAre("checkpoint_1")) << limit;
    EXPECT_EQ(value_of(*manager.restore_latest()), 1);
  }
}

TEST(CheckpointManager, KillAtAnyFileKeepsPrevious) {
  TempDir dir;
  CheckpointManager(dir.path()).save(1, contents_of(1));
  int killed = 0;
  for (int limit = 0;; ++limit) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ManagerOptions options;
      options.write.threads = 1;
      options.write.write_file = limited_writer(limit, [](const fs::path& path) {
        write_file(path, "half");
        ::raise(SIGKILL);
      });
      CheckpointManager(dir.path(), options).save(1, contents_of(2));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const std::optional<RestoredCheckpoint> restored = CheckpointManager(dir.path()).restore_latest();
    ASSERT_TRUE(restored.has_value());
    EXPECT_THAT(restored->skipped, IsEmpty());
    const bool finished = WIFEXITED(status);
    EXPECT_EQ(value_of(*restored), finished ? 2 : 1);
    if (finished) break;
    ++killed;
  }
  // checkpoint, manifest, train_ds and two arrays of two files each.
  EXPECT_EQ(killed, 7);
}

TEST(CheckpointManager, AsyncSaveIsThereAfterWait) {
  TempDir dir;
  CheckpointManager manager(dir.path());
  manager.save_async(1, contents_of(1));
  manager.save_async(2, contents_of(2));
  manager.wait();
  EXPECT_THAT(manager.steps(), ElementsAre(1, 2));
}

TEST(CheckpointManager, AsyncErrorSurfacesOnceOnWait) {
  TempDir dir;
  ManagerOptions options;
  options.write.write_file =
      limited_writer(0, [](const fs::path& path) { throw_io_error("writing", path, ENOSPC); });
  CheckpointManager manager(dir.path(), options);
  manager.save_async(1, contents_of(1));
  EXPECT_THROW(manager.wait(), IoError);
  EXPECT_NO_THROW(manager.wait());
}

TEST(CheckpointManager, AsyncErrorSurfacesOnNextSave) {
  TempDir dir;
  ManagerOptions options;
  options.write.write_file =
      limited_writer(0, [](const fs::path& path) { throw_io_error("writing", path, ENOSPC); });
  CheckpointManager manager(dir.path(), options);
  manager.save_async(1, contents_of(1));
  EXPECT_THROW(manager.save_async(2, contents_of(2)), IoError);
}

TEST(CheckpointManager, DestructorWaitsForAsyncSave) {
  TempDir dir;
  { CheckpointManager(dir.path()).save_async(1, contents_of(1)); }
  EXPECT_EQ(find_damage(dir / "checkpoint_1"), std::nullopt);
}

TEST(CheckpointManager, NegativeStepThrows) {
  TempDir dir;
  EXPECT_THROW(CheckpointManager(dir.path()).save(-1, contents_of(1)), CheckpointError);
}

}  // namespace
}  // namespace t5x::checkpoint
