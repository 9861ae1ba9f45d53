// The checkpoints of one model directory: `checkpoint_<step>` directories that appear whole or not at all.
//
//   CheckpointManager manager(model_dir, {.keep = 3});
//   manager.save_async(step, {.arrays = {{"target/a/kernel", kernel}, {"state/step",
//   Array::scalar<int32_t>(step)}},
//                             .files = {{"train_ds-00000-of-00001", iterator_state}}});
//   ...
//   manager.wait();
//   if (std::optional<RestoredCheckpoint> last = manager.restore_latest()) train_from(last->contents.arrays);
//
// A save writes to `checkpoint_<step>.tmp-<time>`, syncs and renames: a kill at any moment leaves the
// checkpoints before it, and a temporary directory that the next manager removes. One manager is used by one
// thread.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/t5x_checkpoint.h"

namespace t5x::checkpoint {

struct ManagerOptions {
  // How many of the newest whole checkpoints stay; 0 keeps all.
  int64_t keep = 0;
  // Checkpoints whose step is a multiple of it stay as well; 0: none.
  int64_t keep_period = 0;
  WriteOptions write = {};
  ReadOptions read = {};
};

struct SkippedCheckpoint {
  int64_t step;
  std::string reason;
};

struct RestoredCheckpoint {
  int64_t step = 0;
  fs::path path;
  CheckpointContents contents;
  // Newer ones that were not whole, newest first; each was also logged as a warning.
  std::vector<SkippedCheckpoint> skipped;
};

// Steps of the `checkpoint_<step>` directories of `dir`, ascending, temporaries left out. Empty without
// `dir`.
std::vector<int64_t> list_steps(const fs::path& dir);
fs::path step_directory(const fs::path& dir, int64_t step);
// The newest whole checkpoint of `dir` without taking its lock: for evaluation and inference beside a running
// training. Nothing if `dir` holds none; CheckpointError if it holds some and none is whole.
std::optional<RestoredCheckpoint> restore_latest(const fs::path& dir, const ReadOptions& options = {});
// A checkpoint's own directory (".../checkpoint_1000"), or a model directory, of which it takes the newest
// whole one.
RestoredCheckpoint restore_path(const fs::path& path, const ReadOptions& options = {});

class CheckpointManager {
 public:
  // Creates `dir`, locks it and removes temporaries that a killed run left. Throws CheckpointError if another
  // process (or manager) writes to `dir`.
  explicit CheckpointManager(fs::path dir, ManagerOptions options = {});
  // Waits for a running save; its error, if nobody asked for it, is logged.
  ~CheckpointManager();
  CheckpointManager(const CheckpointManager&) = delete;
  CheckpointManager& operator=(const CheckpointManager&) = delete;

  const fs::path& directory() const { return dir_; }
  std::vector<int64_t> steps() const { return list_steps(dir_); }

  // Writes `checkpoint_<step>`, in place of one that is there, and then deletes the ones that need not be
  // kept. On failure everything that was there before is untouched and nothing new is left.
  void save(int64_t step, const CheckpointContents& contents);
  // The same on a thread of its own; arrays share their bytes and must not be written to. Waits for the save
  // before it and throws that one's error.
  void save_async(int64_t step, CheckpointContents contents);
  // Waits for a running save and throws its error.
  void wait();

  // Falls back to older checkpoints as restore_latest() does.
  std::optional<RestoredCheckpoint> restore_latest();
  // Throws CheckpointError, with the steps there are, if there is none of this step or it is not whole.
  RestoredCheckpoint restore(int64_t step);

 private:
  void write(int64_t step, const CheckpointContents& contents);
  void prune(int64_t saved_step);

  fs::path dir_;
  ManagerOptions options_;
  int lock_ = -1;
  std::set<int64_t> damaged_;  // seen while restoring
  std::thread worker_;
  std::exception_ptr error_;  // of the worker; read after it is joined
};

}  // namespace t5x::checkpoint
