#include "pjrt/compile_options.h"

#include <bit>
#include <set>

#include "base/error.h"

namespace t5x::pjrt {
namespace {

// The protobuf wire format, as far as CompileOptionsProto needs it.
// https://protobuf.dev/programming-guides/encoding/
class ProtoWriter {
 public:
  void varint_field(int field, uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void double_field(int field, double value) {
    tag(field, 1);
    auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8) bytes_ += static_cast<char>(bits & 0xff);
  }
  void bytes_field(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, int wire_type) {
    varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// DeviceAssignmentProto: replica_count = 1, computation_count = 2, computation_devices = 3, one for each
// partition, with replica_device_ids = 1.
std::string device_assignment(const CompileOptions& options) {
  ProtoWriter out;
  out.varint_field(1, static_cast<uint64_t>(options.num_replicas));
  out.varint_field(2, static_cast<uint64_t>(options.num_partitions));
  for (int64_t partition = 0; partition < options.num_partitions; ++partition) {
    ProtoWriter devices;
    for (int64_t replica = 0; replica < options.num_replicas; ++replica)
      devices.varint_field(
          1, static_cast<uint64_t>(
                 options.device_ids[static_cast<size_t>(replica * options.num_partitions + partition)]));
    out.bytes_field(3, devices.bytes());
  }
  return out.bytes();
}

// ExecutableBuildOptionsProto
std::string build_options(const CompileOptions& options) {
  ProtoWriter out;
  out.varint_field(1, static_cast<uint64_t>(int64_t{-1}));  // device_ordinal: not set
  out.varint_field(4, static_cast<uint64_t>(options.num_replicas));
  out.varint_field(5, static_cast<uint64_t>(options.num_partitions));
  out.varint_field(6, options.num_partitions > 1 ? 1 : 0);  // use_spmd_partitioning
  if (!options.device_ids.empty()) out.bytes_field(9, device_assignment(options));
  out.varint_field(19, options.use_shardy_partitioner ? 1 : 0);
  return out.bytes();
}

// OptionOverrideProto
std::string option_override(const OptionValue& value) {
  ProtoWriter out;
  if (const auto* text = std::get_if<std::string>(&value)) out.bytes_field(1, *text);
  if (const auto* flag = std::get_if<bool>(&value)) out.varint_field(2, *flag ? 1 : 0);
  if (const auto* number = std::get_if<int64_t>(&value)) out.varint_field(3, static_cast<uint64_t>(*number));
  if (const auto* real = std::get_if<double>(&value)) out.double_field(4, *real);
  return out.bytes();
}

}  // namespace

void check_compile_options(const CompileOptions& options) {
  if (options.num_replicas < 1 || options.num_partitions < 1)
    throw_error<ConfigError>("a program needs at least 1 replica and 1 partition, not {} and {}",
                             options.num_replicas, options.num_partitions);
  if (options.device_ids.empty()) return;
  const auto wanted = static_cast<size_t>(options.num_replicas * options.num_partitions);
  if (options.device_ids.size() != wanted)
    throw_error<ConfigError>("{} replicas of {} partitions need {} device ids, not {}", options.num_replicas,
                             options.num_partitions, wanted, options.device_ids.size());
  const std::set<int64_t> distinct(options.device_ids.begin(), options.device_ids.end());
  if (distinct.size() != wanted || *distinct.begin() < 0)
    throw_error<ConfigError>("the {} device ids of a program must be distinct and not negative", wanted);
}

OptionMap platform_overrides(std::string_view platform) {
  if (platform != "cpu") return {};
  // ELTWISE, the third member, changes results on API 0.106 and is therefore left out.
  return {{"xla_cpu_experimental_ynn_fusion_type",
           std::string("LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_REDUCE")}};
}

CompileOptions with_platform_overrides(CompileOptions options, std::string_view platform) {
  if (options.tuned) options.overrides.merge(platform_overrides(platform));
  return options;
}

std::string serialize_compile_options(const CompileOptions& options) {
  check_compile_options(options);
  ProtoWriter out;
  out.bytes_field(3, build_options(options));
  for (const auto& [name, value] : options.overrides) {
    ProtoWriter entry;
    entry.bytes_field(1, name);
    entry.bytes_field(2, option_override(value));
    out.bytes_field(7, entry.bytes());
  }
  return out.bytes();
}

}  // namespace t5x::pjrt
