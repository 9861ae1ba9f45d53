#include "train/summary_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>

namespace t5x {
namespace {

constexpr std::string_view kFileVersion = "brain.Event:2";
// TensorProto's DataType.
constexpr uint64_t kFloatType = 1, kStringType = 7;

// The few parts of protobuf's wire format that these messages need.
class Message {
 public:
  Message& varint(uint32_t field, uint64_t value) {
    key(field, 0);
    raw_varint(value);
    return *this;
  }
  Message& real(uint32_t field, double value) {
    key(field, 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(bits >> (8 * i)));
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    key(field, 2);
    raw_varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(uint32_t field, uint32_t wire_type) { raw_varint((field << 3) | wire_type); }
  void raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>((value & 0x7f) | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

std::string encode_event(double wall_time, int64_t step, std::string_view tag, const Message& tensor,
                         std::string_view plugin) {
  const Message metadata = Message().message(1, Message().text(1, plugin));
  const Message value = Message().text(1, tag).message(8, tensor).message(9, metadata);
  const Message summary = Message().message(1, value);
  Message event = Message().real(1, wall_time);
  if (step != 0) event.varint(2, static_cast<uint64_t>(step));
  return event.message(5, summary).bytes();
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// events.out.tfevents.<seconds>.<host>.<process>.<number>.v2
fs::path event_file(const fs::path& dir) {
  static std::atomic<int> counter{0};
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {'h', 'o', 's', 't'};
  make_dirs(dir);
  return dir / fmt::format("events.out.tfevents.{}.{}.{}.{}.v2", static_cast<int64_t>(now()), host.data(),
                           ::getpid(), counter++);
}

}  // namespace

std::string encode_version_event(double wall_time) {
  return Message().real(1, wall_time).text(3, kFileVersion).message(10, Message().text(1, "t5x")).bytes();
}

std::string encode_scalar_event(double wall_time, int64_t step, std::string_view tag, float value) {
  const auto bytes = std::bit_cast<std::array<char, 4>>(value);
  const Message tensor = Message()
                             .varint(1, kFloatType)
                             .message(2, Message())  // the shape of a scalar
                             .text(4, std::string_view(bytes.data(), bytes.size()));
  return encode_event(wall_time, step, tag, tensor, "scalars");
}

std::string encode_text_event(double wall_time, int64_t step, std::string_view tag, std::string_view text) {
  const Message tensor = Message().varint(1, kStringType).message(2, Message()).text(8, text);
  return encode_event(wall_time, step, tag, tensor, "text");
}

SummaryWriter::SummaryWriter(const fs::path& dir) : path_(event_file(dir)), writer_(path_) {
  writer_.write(encode_version_event(now()));
  writer_.flush();
}

void SummaryWriter::scalar(int64_t step, std::string_view tag, double value) {
  writer_.write(encode_scalar_event(now(), step, tag, static_cast<float>(value)));
  writer_.flush();
}

void SummaryWriter::scalars(int64_t step, const std::map<std::string, double>& values) {
  const double time = now();
  for (const auto& [tag, value] : values)
    writer_.write(encode_scalar_event(time, step, tag, static_cast<float>(value)));
  writer_.flush();
}

void SummaryWriter::text(int64_t step, std::string_view tag, std::string_view text) {
  writer_.write(encode_text_event(now(), step, tag, text));
  writer_.flush();
}

}  // namespace t5x
