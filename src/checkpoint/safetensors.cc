#include "checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/strings.h"

namespace t5x::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr const char* kMetadataKey = "__metadata__";

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array<DTypeName, 13> kDTypeNames{{{DType::kBool, "BOOL"},
                                                 {DType::kInt8, "I8"},
                                                 {DType::kUInt8, "U8"},
                                                 {DType::kInt16, "I16"},
                                                 {DType::kUInt16, "U16"},
                                                 {DType::kInt32, "I32"},
                                                 {DType::kUInt32, "U32"},
                                                 {DType::kInt64, "I64"},
                                                 {DType::kUInt64, "U64"},
                                                 {DType::kBFloat16, "BF16"},
                                                 {DType::kFloat16, "F16"},
                                                 {DType::kFloat32, "F32"},
                                                 {DType::kFloat64, "F64"}}};

std::string_view safetensors_name(DType dtype) {
  for (const DTypeName& row : kDTypeNames) {
    if (row.dtype == dtype) return row.name;
  }
  throw_error<InternalError>("dtype {} has no name in safetensors", name(dtype));
}

template <class... Args>
[[noreturn]] void fail(const std::string& label, fmt::format_string<Args...> format, Args&&... args) {
  throw_error<CheckpointError>("'{}' is not a whole safetensors file: {}; copy or download it again", label,
                               fmt::format(format, std::forward<Args>(args)...));
}

uint64_t little_endian_u64(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 8; i-- > 0;) value = (value << 8) | static_cast<uint8_t>(bytes[i]);
  return value;
}

std::optional<uint64_t> as_count(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  return std::nullopt;
}

SafetensorsEntry parse_entry(const std::string& tensor, const Json& json, uint64_t data_bytes,
                             const std::string& label) {
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    fail(label, "tensor '{}' lacks dtype, shape or data_offsets in the header", tensor);
  SafetensorsEntry entry;
  const Json& dtype = json["dtype"];
  const auto* row = std::find_if(kDTypeNames.begin(), kDTypeNames.end(), [&](const DTypeName& candidate) {
    return dtype.is_string() && dtype.get_ref<const std::string&>() == candidate.name;
  });
  if (row == kDTypeNames.end())
    throw_error<CheckpointError>("tensor '{}' of '{}' has dtype {}, which is not supported here", tensor,
                                 label, dtype.dump());
  entry.dtype = row->dtype;

  const Json& shape = json["shape"];
  if (!shape.is_array()) fail(label, "the shape of tensor '{}' is not a list", tensor);
  std::vector<int64_t> dims;
  uint64_t bytes = byte_size(entry.dtype);
  bool empty = false;
  for (const Json& item : shape) {
    const std::optional<uint64_t> dim = as_count(item);
    if (!dim || *dim > INT64_MAX) fail(label, "tensor '{}' has the dimension {}", tensor, item.dump());
    dims.push_back(static_cast<int64_t>(*dim));
    if (*dim == 0) empty = true;
    // Checked even when another dimension is 0, so that no product of dimensions can overflow later.
    if (*dim != 0 && __builtin_mul_overflow(bytes, *dim, &bytes))
      fail(label, "the size of tensor '{}' overflows", tensor);
  }
  if (bytes > INT64_MAX) fail(label, "the size of tensor '{}' overflows", tensor);
  if (empty) bytes = 0;
  entry.shape = Shape(std::move(dims));

  const Json& offsets = json["data_offsets"];
  std::optional<uint64_t> begin, end;
  if (offsets.is_array() && offsets.size() == 2) {
    begin = as_count(offsets[0]);
    end = as_count(offsets[1]);
  }
  if (!begin || !end || *begin > *end)
    fail(label, "tensor '{}' has the data_offsets {}", tensor, offsets.dump());
  if (*end > data_bytes)
    fail(label, "tensor '{}' ends at byte {} of the data, but the file holds {}", tensor, *end, data_bytes);
  if (*end - *begin != bytes)
    fail(label, "tensor '{}' is {}{} and needs {} bytes, but its data_offsets span {}", tensor,
         name(entry.dtype), entry.shape.to_string(), bytes, *end - *begin);
  entry.begin = *begin;
  entry.end = *end;
  return entry;
}

void check_no_gaps(const SafetensorsHeader& header, uint64_t data_bytes, const std::string& label) {
  std::vector<const std::pair<const std::string, SafetensorsEntry>*> order;
  for (const auto& item : header.entries) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t position = 0;
  for (const auto* item : order) {
    if (item->second.begin != position)
      fail(label, "tensor '{}' begins at byte {} of the data where {} was expected (a gap or an overlap)",
           item->first, item->second.begin, position);
    position = item->second.end;
  }
  if (position != data_bytes)
    fail(label, "its tensors need {} bytes, but {} follow the header", position, data_bytes);
}

void read_exactly(int fd, uint64_t offset, char* to, uint64_t count, const fs::path& path) {
  while (count > 0) {
    const ssize_t got = ::pread(fd, to, std::min<uint64_t>(count, 1u << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_io_error("reading", path, errno);
    if (got == 0) fail(path.string(), "it became shorter while it was read");
    to += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<uint64_t>(got);
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view prefix, uint64_t file_size,
                                           const std::string& label) {
  if (prefix.size() < kLengthBytes || file_size < kLengthBytes)
    fail(label, "it has {} bytes, fewer than the {} that give the header's length", file_size, kLengthBytes);
  const uint64_t header_bytes = little_endian_u64(prefix.substr(0, kLengthBytes));
  if (header_bytes > kMaxHeaderBytes)
    fail(label, "it announces a header of {} bytes, more than the limit of {}", header_bytes,
         kMaxHeaderBytes);
  if (header_bytes > file_size - kLengthBytes || header_bytes > prefix.size() - kLengthBytes)
    fail(label, "it announces a header of {} bytes, but the file has {}", header_bytes, file_size);

  const Json json =
      Json::parse(prefix.substr(kLengthBytes, header_bytes), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) fail(label, "its header is not a JSON object");
  SafetensorsHeader header;
  header.data_start = kLengthBytes + header_bytes;
  const uint64_t data_bytes = file_size - header.data_start;
  for (const auto& [key, value] : json.items()) {
    if (key != kMetadataKey) {
      header.entries.emplace(key, parse_entry(key, value, data_bytes, label));
      continue;
    }
    if (!value.is_object()) fail(label, "its {} is not an object", kMetadataKey);
    for (const auto& [name, text] : value.items()) {
      if (!text.is_string()) fail(label, "the metadata '{}' is not a string", name);
      header.metadata[name] = text.get<std::string>();
    }
  }
  check_no_gaps(header, data_bytes, label);
  return header;
}

SafetensorsReader::SafetensorsReader(const fs::path& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw_io_error("reading", path, errno);
  try {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) throw_io_error("reading", path, errno);
    if (!S_ISREG(info.st_mode)) throw_io_error("reading", path, S_ISDIR(info.st_mode) ? EISDIR : EINVAL);
    const auto file_size = static_cast<uint64_t>(info.st_size);
    std::string prefix(std::min(file_size, kLengthBytes), '\0');
    read_exactly(fd_, 0, prefix.data(), prefix.size(), path);
    if (prefix.size() == kLengthBytes) {
      const uint64_t header_bytes = std::min(little_endian_u64(prefix), kMaxHeaderBytes);
      prefix.resize(kLengthBytes + std::min(header_bytes, file_size - kLengthBytes));
      read_exactly(fd_, kLengthBytes, prefix.data() + kLengthBytes, prefix.size() - kLengthBytes, path);
    }
    header_ = parse_safetensors_header(prefix, file_size, path.string());
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

SafetensorsReader::~SafetensorsReader() { ::close(fd_); }

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : header_.entries) names.push_back(name);
  return names;
}

const SafetensorsEntry& SafetensorsReader::entry(const std::string& name) const {
  const auto found = header_.entries.find(name);
  if (found == header_.entries.end())
    throw_error<CheckpointError>("'{}' holds no tensor '{}'{}", path_.string(), name,
                                 did_you_mean(name, names()));
  return found->second;
}

Array SafetensorsReader::read(const std::string& name) const {
  const SafetensorsEntry& found = entry(name);
  Array array = Array::uninitialized(found.dtype, found.shape);
  read_exactly(fd_, header_.data_start + found.begin, reinterpret_cast<char*>(array.bytes()), array.nbytes(),
               path_);
  return array;
}

std::map<std::string, Array> read_safetensors(const fs::path& path) {
  const SafetensorsReader reader(path);
  std::map<std::string, Array> tensors;
  for (const std::string& name : reader.names()) tensors.emplace(name, reader.read(name));
  return tensors;
}

void write_safetensors(const fs::path& path, const std::map<std::string, Array>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Widest elements first, so that every tensor is aligned to its element size as the format recommends.
  std::vector<const std::pair<const std::string, Array>*> order;
  for (const auto& item : tensors) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return byte_size(a->second.dtype()) > byte_size(b->second.dtype());
  });
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json[kMetadataKey] = metadata;
  uint64_t position = 0;
  for (const auto* item : order) {
    if (item->first == kMetadataKey)
      throw_error<CheckpointError>("writing '{}': no tensor may be named '{}'", path.string(), kMetadataKey);
    if (find_invalid_utf8(item->first) != std::string::npos)
      throw_error<CheckpointError>("writing '{}': a tensor's name is not UTF-8", path.string());
    const Array& array = item->second;
    json[item->first] = {{"dtype", safetensors_name(array.dtype())},
                         {"shape", array.shape().dims()},
                         {"data_offsets", {position, position + array.nbytes()}}};
    position += array.nbytes();
  }
  std::string header = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string length(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));

  fs::path temporary = path;
  temporary += ".tmp-" + std::to_string(::getpid());
  try {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out << length << header;
    for (const auto* item : order) out << item->second.as_bytes();
    out.close();
    if (!out) throw_io_error("writing", temporary, errno);
    sync_file(temporary);
    rename_durably(temporary, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

}  // namespace t5x::checkpoint
