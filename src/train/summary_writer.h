// TensorBoard event files, as TensorFlow 2's summary writer (which t5x's metric writers use) writes them:
// TFRecords of `Event` messages whose values are tensors for the plugins "scalars" and "text". Messages:
// tensorflow/core/util/event.proto, tensorflow/core/framework/{summary,tensor}.proto.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/tfrecord.h"

namespace t5x {

// Encoded Event messages; `wall_time` is in seconds since 1970.
std::string encode_version_event(double wall_time);
std::string encode_scalar_event(double wall_time, int64_t step, std::string_view tag, float value);
std::string encode_text_event(double wall_time, int64_t step, std::string_view tag, std::string_view text);

// One event file of its own in `dir`, which TensorBoard shows as a run; runs that are continued add files to
// it. What a call writes can be read by TensorBoard when the call returns. All throw IoError when the system
// says no.
class SummaryWriter {
 public:
  explicit SummaryWriter(const fs::path& dir);

  void scalar(int64_t step, std::string_view tag, double value);
  // By tag.
  void scalars(int64_t step, const std::map<std::string, double>& values);
  // TensorBoard shows it as Markdown.
  void text(int64_t step, std::string_view tag, std::string_view text);
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  TfRecordWriter writer_;
};

}  // namespace t5x
