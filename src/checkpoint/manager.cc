#include "checkpoint/manager.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace t5x::checkpoint {
namespace {

constexpr std::string_view kPrefix = "checkpoint_";
constexpr std::string_view kTemporary = ".tmp-";
constexpr const char* kLockFile = ".checkpoint_lock";

std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

bool is_temporary(std::string_view name) {
  return name.starts_with(kPrefix) && name.find(kTemporary) != std::string_view::npos;
}

fs::path temporary_path(const fs::path& dir, int64_t step) {
  static std::atomic<int> counter{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return dir / fmt::format("{}{}{}{}{:04}", kPrefix, step, kTemporary,
                           std::chrono::duration_cast<std::chrono::milliseconds>(now).count(),
                           counter++ % 10000);
}

void remove_quietly(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) log_warning("'{}' could not be removed ({}); remove it by hand", path.string(), error.message());
}

// Under its temporary name it never looks like a checkpoint, however far the removal gets.
void remove_checkpoint(const fs::path& dir, int64_t step) {
  const fs::path doomed = temporary_path(dir, step);
  rename_durably(step_directory(dir, step), doomed);
  remove_quietly(doomed);
}

// Puts the directory `from` in the place of `to`, which may exist; at every moment `to` is the one or the
// other.
void replace_durably(const fs::path& from, const fs::path& to) {
  if (!is_dir(to)) return rename_durably(from, to);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    sync_dir(to.parent_path());
    return remove_quietly(from);
  }
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) throw_io_error("renaming to", to, errno);
  // This file system cannot exchange names, so for a moment there is none of this step.
  const fs::path old = from.string() + "-old";
  rename_durably(to, old);
  rename_durably(from, to);
  remove_quietly(old);
}

std::string join_steps(const std::vector<int64_t>& steps) {
  return steps.empty() ? "none" : fmt::format("{}", fmt::join(steps, ", "));
}

}  // namespace

std::vector<int64_t> list_steps(const fs::path& dir) {
  std::vector<int64_t> steps;
  if (!is_dir(dir)) return steps;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    const std::optional<int64_t> step = step_of(it->path().filename().string());
    if (step && is_dir(it->path())) steps.push_back(*step);
  }
  if (error) throw_io_error("listing", dir, error.value());
  std::sort(steps.begin(), steps.end());
  return steps;
}

fs::path step_directory(const fs::path& dir, int64_t step) {
  return dir / fmt::format("{}{}", kPrefix, step);
}

std::optional<RestoredCheckpoint> restore_latest(const fs::path& dir, const ReadOptions& options) {
  std::vector<int64_t> steps = list_steps(dir);
  std::reverse(steps.begin(), steps.end());
  RestoredCheckpoint restored;
  for (int64_t step : steps) {
    restored.step = step;
    restored.path = step_directory(dir, step);
    try {
      restored.contents = read_checkpoint(restored.path, options);
    } catch (const Error& e) {
      log_warning("the checkpoint '{}' is not whole and is skipped: {}", restored.path.string(), e.what());
      restored.skipped.push_back({step, e.what()});
      continue;
    }
    if (!restored.skipped.empty()) log_warning("falling back to '{}'", restored.path.string());
    return restored;
  }
  if (steps.empty()) return std::nullopt;
  std::string text = fmt::format(
      "none of the {} checkpoints in '{}' is whole; restore a copy of one, or move them away "
      "to start anew:",
      steps.size(), dir.string());
  for (const SkippedCheckpoint& skipped : restored.skipped)
    text += fmt::format("\n  step {}: {}", skipped.step, skipped.reason);
  throw CheckpointError(text);
}

RestoredCheckpoint restore_path(const fs::path& path, const ReadOptions& options) {
  const fs::path clean = path.has_filename() ? path : path.parent_path();
  if (is_file(clean / kIndexFile) || step_of(clean.filename().string())) {
    RestoredCheckpoint restored;
    restored.step = step_of(clean.filename().string()).value_or(0);
    restored.path = clean;
    restored.contents = read_checkpoint(clean, options);
    return restored;
  }
  std::optional<RestoredCheckpoint> restored = restore_latest(clean, options);
  if (!restored)
    throw_error<CheckpointError>(
        "'{}' holds no checkpoint: expected a directory checkpoint_<step>, or one that holds "
        "such directories",
        path.string());
  return std::move(*restored);
}

CheckpointManager::CheckpointManager(fs::path dir, ManagerOptions options)
    : dir_(std::move(dir)), options_(std::move(options)) {
  make_dirs(dir_);
  const fs::path lock_path = dir_ / kLockFile;
  lock_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) throw_io_error("opening", lock_path, errno);
  try {
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        throw_error<CheckpointError>(
            "another process writes checkpoints to '{}'; stop it or choose another model "
            "directory",
            dir_.string());
      // Some network file systems have no locks.
      log_warning("'{}' cannot be locked; make sure that only one process writes to it", dir_.string());
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(dir_)) {
      if (!is_temporary(entry.path().filename().string())) continue;
      log_info("removing '{}', which an interrupted run left", entry.path().string());
      remove_quietly(entry.path());
    }
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

CheckpointManager::~CheckpointManager() {
  try {
    wait();
  } catch (const std::exception& e) {
    log_warning("a checkpoint was not saved: {}", e.what());
  }
  ::close(lock_);
}

void CheckpointManager::save(int64_t step, const CheckpointContents& contents) {
  wait();
  write(step, contents);
}

void CheckpointManager::save_async(int64_t step, CheckpointContents contents) {
  wait();
  worker_ = std::thread([this, step, held = std::move(contents)] {
    try {
      write(step, held);
    } catch (...) {
      error_ = std::current_exception();
    }
  });
}

void CheckpointManager::wait() {
  if (worker_.joinable()) worker_.join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CheckpointManager::write(int64_t step, const CheckpointContents& contents) {
  if (step < 0) throw_error<CheckpointError>("a checkpoint's step must be at least 0, not {}", step);
  const fs::path temporary = temporary_path(dir_, step);
  in_context(fmt::format("saving '{}'", step_directory(dir_, step).string()), [&] {
    try {
      write_checkpoint(temporary, contents, options_.write);
      replace_durably(temporary, step_directory(dir_, step));
    } catch (...) {
      remove_quietly(temporary);
      throw;
    }
  });
  damaged_.erase(step);
  prune(step);
}

void CheckpointManager::prune(int64_t saved_step) {
  if (options_.keep <= 0) return;
  const std::vector<int64_t> all = steps();
  std::set<int64_t> kept{saved_step};
  int64_t whole = 0;
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    // One that is not whole protects nobody, so it does not count.
    if (whole >= options_.keep) break;
    if (*it != saved_step && (damaged_.contains(*it) || find_damage(step_directory(dir_, *it)))) continue;
    kept.insert(*it);
    ++whole;
  }
  for (int64_t step : all) {
    const bool periodic = options_.keep_period > 0 && step % options_.keep_period == 0;
    if (step > saved_step || kept.contains(step) || periodic) continue;
    try {
      remove_checkpoint(dir_, step);
    } catch (const Error& e) {
      // The new checkpoint is safe, which is what the caller asked for.
      log_warning("the old checkpoint of step {} could not be removed: {}", step, e.what());
    }
  }
}

std::optional<RestoredCheckpoint> CheckpointManager::restore_latest() {
  wait();
  std::optional<RestoredCheckpoint> restored = checkpoint::restore_latest(dir_, options_.read);
  if (restored) {
    for (const SkippedCheckpoint& skipped : restored->skipped) damaged_.insert(skipped.step);
  }
  return restored;
}

RestoredCheckpoint CheckpointManager::restore(int64_t step) {
  wait();
  const fs::path path = step_directory(dir_, step);
  if (!is_dir(path))
    throw_error<CheckpointError>("'{}' holds no checkpoint of step {}; there are: {}", dir_.string(), step,
                                 join_steps(steps()));
  return {step, path, read_checkpoint(path, options_.read), {}};
}

}  // namespace t5x::checkpoint
