#include "checkpoint/zarr.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "checkpoint/parallel.h"

namespace t5x::checkpoint {
namespace {

using Json = nlohmann::json;

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array<DTypeName, 13> kDTypeNames{{{DType::kBool, "|b1"},
                                                 {DType::kInt8, "|i1"},
                                                 {DType::kUInt8, "|u1"},
                                                 {DType::kInt16, "<i2"},
                                                 {DType::kUInt16, "<u2"},
                                                 {DType::kInt32, "<i4"},
                                                 {DType::kUInt32, "<u4"},
                                                 {DType::kInt64, "<i8"},
                                                 {DType::kUInt64, "<u8"},
                                                 {DType::kBFloat16, "bfloat16"},
                                                 {DType::kFloat16, "<f2"},
                                                 {DType::kFloat32, "<f4"},
                                                 {DType::kFloat64, "<f8"}}};

template <class... Args>
[[noreturn]] void fail(const std::string& label, fmt::format_string<Args...> format, Args&&... args) {
  throw_error<CheckpointError>("'{}': {}", label, fmt::format(format, std::forward<Args>(args)...));
}

Shape parse_dims(const Json& json, std::string_view key, int64_t least, const std::string& label) {
  if (!json.is_array()) fail(label, "expected a list under '{}'", key);
  std::vector<int64_t> dims;
  for (const Json& item : json) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > INT64_MAX || item.get<int64_t>() < least)
      fail(label, "'{}' holds {}, expected a whole number of at least {}", key, item.dump(), least);
    dims.push_back(item.get<int64_t>());
  }
  return Shape(std::move(dims));
}

// So that no later product of these dimensions (rounded up to whole chunks) overflows.
void check_bytes(const Shape& dims, size_t item, const std::string& label) {
  int64_t bytes = static_cast<int64_t>(item);
  for (int64_t dim : dims) {
    if (dim != 0 && __builtin_mul_overflow(bytes, dim, &bytes))
      fail(label, "the size of shape {} overflows", dims.to_string());
  }
}

double parse_fill_value(const Json& json, DType dtype, const std::string& label) {
  if (json.is_null()) return 0;
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  if (is_float(dtype)) {
    if (json.is_number()) return json.get<double>();
    if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (json == "Infinity") return std::numeric_limits<double>::infinity();
    if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  } else if (json.is_number_integer()) {
    // What every integer type of this size holds; an integer out of range has no value in C++.
    const double value = json.get<double>();
    const double limit = std::ldexp(1.0, 8 * static_cast<int>(byte_size(dtype)) - 1);
    if (value < limit && value >= (is_signed_integer(dtype) ? -limit : 0)) return value;
  }
  fail(label, "fill_value {} is not supported for {}", json.dump(), name(dtype));
}

// A chunk's place: the axes after the last one that is cut are merged with it, so that runs are as long as
// can be.
struct Grid {
  std::vector<int64_t> shape, chunk, start;  // in elements along the merged axes
};

Grid place_chunk(const ZarrMetadata& metadata, int64_t index) {
  const size_t rank = metadata.shape.rank();
  std::vector<int64_t> position(rank);
  for (size_t axis = rank; axis-- > 0;) {
    const int64_t count =
        std::max<int64_t>(1, (metadata.shape[axis] + metadata.chunks[axis] - 1) / metadata.chunks[axis]);
    position[axis] = index % count;
    index /= count;
  }
  Grid grid;
  int64_t inner = 1;  // elements of the uncut axes behind
  bool cut = false;
  for (size_t axis = rank; axis-- > 0;) {
    const int64_t scale = cut ? 1 : inner;
    if (!cut && metadata.chunks[axis] == metadata.shape[axis] && axis > 0) {
      inner *= metadata.shape[axis];
      continue;
    }
    grid.shape.insert(grid.shape.begin(), metadata.shape[axis] * scale);
    grid.chunk.insert(grid.chunk.begin(), metadata.chunks[axis] * scale);
    grid.start.insert(grid.start.begin(), position[axis] * metadata.chunks[axis] * scale);
    cut = true;
  }
  if (rank == 0) grid = {{1}, {1}, {0}};
  return grid;
}

// Calls run(offset, valid, padding) for each run of the chunk in order, in elements: `valid` elements lie in
// the array from `offset` on, `padding` elements beyond its edge follow in the chunk.
template <class F>
void for_each_run(const ZarrMetadata& metadata, int64_t index, const F& run) {
  const Grid grid = place_chunk(metadata, index);
  const size_t last = grid.shape.size() - 1;
  const int64_t valid = std::clamp<int64_t>(grid.shape[last] - grid.start[last], 0, grid.chunk[last]);
  std::vector<int64_t> at(last, 0);
  for (;;) {
    bool inside = true;
    int64_t offset = 0;
    for (size_t axis = 0; axis < last; ++axis) {
      const int64_t place = grid.start[axis] + at[axis];
      inside = inside && place < grid.shape[axis];
      offset = inside ? offset * grid.shape[axis] + place : 0;
    }
    if (inside) {
      run(offset * grid.shape[last] + grid.start[last], valid, grid.chunk[last] - valid);
    } else {
      run(int64_t{0}, int64_t{0}, grid.chunk[last]);
    }
    size_t axis = last;
    while (axis > 0 && ++at[axis - 1] == grid.chunk[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

// A source of exactly the bytes asked for, inflated or plain.
class ChunkSource {
 public:
  ChunkSource(std::string_view bytes, bool compressed, const std::string& label)
      : bytes_(bytes), compressed_(compressed), label_(label) {
    if (!compressed_) return;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    if (::inflateInit2(&stream_, 15 + 32) != Z_OK)
      throw_error<InternalError>("zlib could not be initialised");
  }
  ~ChunkSource() {
    if (compressed_) ::inflateEnd(&stream_);
  }
  ChunkSource(const ChunkSource&) = delete;
  ChunkSource& operator=(const ChunkSource&) = delete;

  void read(std::byte* to, size_t count) {
    if (!compressed_) {
      if (count > bytes_.size() - used_) fail(label_, "the chunk is too short: the file was truncated");
      if (count > 0) std::memcpy(to, bytes_.data() + used_, count);
      used_ += count;
      return;
    }
    while (count > 0) {
      if (ended_) fail(label_, "the chunk inflates to fewer bytes than its shape needs");
      const auto room = static_cast<uInt>(std::min<size_t>(count, 1u << 30));
      inflate_into(to, room);
      const size_t got = room - stream_.avail_out;
      to += got;
      count -= got;
    }
  }
  // Checks the checksum and that nothing follows.
  void finish() {
    std::byte extra{};
    if (compressed_ && !ended_) {
      inflate_into(&extra, 1);
      if (stream_.avail_out == 0) fail(label_, "the chunk inflates to more bytes than its shape needs");
      if (!ended_) fail(label_, "the compressed chunk ends early: the file was truncated");
    }
    if (used_ != bytes_.size()) fail(label_, "{} bytes follow the chunk", bytes_.size() - used_);
  }

 private:
  void inflate_into(std::byte* to, uInt room) {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = room;
    const auto offered = static_cast<uInt>(std::min<size_t>(bytes_.size() - used_, 1u << 30));
    stream_.avail_in = offered;
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    used_ += offered - stream_.avail_in;
    ended_ = status == Z_STREAM_END;
    if (status == Z_OK || ended_) return;
    if (status == Z_BUF_ERROR) fail(label_, "the compressed chunk ends early: the file was truncated");
    fail(label_, "the compressed chunk is damaged ({})", stream_.msg != nullptr ? stream_.msg : "zlib error");
  }

  std::string_view bytes_;
  const bool compressed_;
  const std::string& label_;
  size_t used_ = 0;
  bool ended_ = false;
  z_stream stream_{};
};

class Deflater {
 public:
  explicit Deflater(size_t input_bytes) {
    // 15 + 16: a gzip header without name or time, so that the same data gives the same file.
    if (::deflateInit2(&stream_, kGzipLevel, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw_error<InternalError>("zlib could not be initialised");
    out_.resize(std::min<size_t>(input_bytes / 2 + 1024, 1u << 30));
  }
  ~Deflater() { ::deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void write(const std::byte* from, size_t count) {
    while (count > 0) {
      const auto part = static_cast<uInt>(std::min<size_t>(count, 1u << 30));
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from));
      stream_.avail_in = part;
      while (stream_.avail_in > 0) step(Z_NO_FLUSH);
      from += part;
      count -= part;
    }
  }
  std::string finish() {
    while (step(Z_FINISH) != Z_STREAM_END) {
    }
    out_.resize(size_);
    return std::move(out_);
  }

 private:
  int step(int flush) {
    if (size_ == out_.size()) out_.resize(out_.size() * 2);
    const auto room = static_cast<uInt>(std::min<size_t>(out_.size() - size_, 1u << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data() + size_);
    stream_.avail_out = room;
    const int status = ::deflate(&stream_, flush);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      throw_error<InternalError>("zlib failed to compress ({})", status);
    size_ += room - stream_.avail_out;
    return status;
  }

  z_stream stream_{};
  std::string out_;
  size_t size_ = 0;
};

void fill(const ZarrMetadata& metadata, int64_t index, Array& array) {
  const Array element = Array::scalar<double>(metadata.fill_value).cast(metadata.dtype);
  const size_t item = byte_size(metadata.dtype);
  for_each_run(metadata, index, [&](int64_t offset, int64_t valid, int64_t) {
    for (int64_t i = 0; i < valid; ++i)
      std::memcpy(array.bytes() + static_cast<size_t>(offset + i) * item, element.bytes(), item);
  });
}

}  // namespace

int64_t ZarrMetadata::chunk_count() const {
  int64_t count = 1;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    // Not (shape + chunks - 1) / chunks, which could overflow.
    count *= shape[axis] / chunks[axis] + (shape[axis] % chunks[axis] != 0 ? 1 : 0);
  }
  return count;
}

size_t ZarrMetadata::chunk_bytes() const { return static_cast<size_t>(chunks.size()) * byte_size(dtype); }

std::string ZarrMetadata::chunk_name(int64_t index) const {
  if (shape.rank() == 0) return "0";
  std::string name;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    const int64_t count = shape[axis] / chunks[axis] + (shape[axis] % chunks[axis] != 0 ? 1 : 0);
    const std::string part = std::to_string(index % count);
    name = name.empty() ? part : part + separator + name;
    index /= count;
  }
  return name;
}

std::string zarr_dtype_name(DType dtype) {
  for (const DTypeName& row : kDTypeNames) {
    if (row.dtype == dtype) return std::string(row.name);
  }
  throw_error<InternalError>("dtype {} has no name in zarr", name(dtype));
}

ZarrMetadata parse_zarr_metadata(std::string_view text, const std::string& label) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) fail(label, "expected the JSON object of a zarr array");
  for (const char* key : {"zarr_format", "shape", "chunks", "dtype", "order"}) {
    if (!json.contains(key)) fail(label, "'{}' is missing", key);
  }
  if (json["zarr_format"] != 2)
    fail(label, "zarr format {} is not supported, only 2", json["zarr_format"].dump());
  if (json["order"] != "C") fail(label, "order {} is not supported, only \"C\"", json["order"].dump());
  if (json.contains("filters") && !json["filters"].is_null() && !json["filters"].empty())
    fail(label, "filters are not supported: {}", json["filters"].dump());

  ZarrMetadata metadata;
  const Json& dtype = json["dtype"];
  const auto* row = std::find_if(kDTypeNames.begin(), kDTypeNames.end(), [&](const DTypeName& candidate) {
    return dtype.is_string() && dtype.get_ref<const std::string&>() == candidate.name;
  });
  if (row == kDTypeNames.end()) fail(label, "dtype {} is not supported", dtype.dump());
  metadata.dtype = row->dtype;
  metadata.shape = parse_dims(json["shape"], "shape", 0, label);
  metadata.chunks = parse_dims(json["chunks"], "chunks", 1, label);
  if (metadata.shape.rank() != metadata.chunks.rank())
    fail(label, "shape {} and chunks {} differ in rank", metadata.shape.to_string(),
         metadata.chunks.to_string());
  check_bytes(metadata.shape, byte_size(metadata.dtype), label);
  check_bytes(metadata.chunks, byte_size(metadata.dtype), label);
  std::vector<int64_t> rounded;
  for (size_t axis = 0; axis < metadata.shape.rank(); ++axis) {
    int64_t end = 0;
    if (__builtin_add_overflow(metadata.shape[axis], metadata.chunks[axis], &end))
      fail(label, "the size of shape {} overflows", metadata.shape.to_string());
    rounded.push_back(end);
  }
  check_bytes(Shape(std::move(rounded)), byte_size(metadata.dtype), label);

  const Json compressor = json.value("compressor", Json());
  metadata.compressed = !compressor.is_null();
  if (metadata.compressed) {
    const Json id = compressor.is_object() ? compressor.value("id", Json()) : Json();
    if (id != "gzip" && id != "zlib")
      fail(label, "compressor {} is not supported: gzip, zlib or null", compressor.dump());
  }
  metadata.fill_value = parse_fill_value(json.value("fill_value", Json()), metadata.dtype, label);
  const Json separator = json.value("dimension_separator", Json("."));
  if (separator != "." && separator != "/")
    fail(label, "dimension_separator {} is not supported", separator.dump());
  metadata.separator = separator == "." ? '.' : '/';
  return metadata;
}

std::string zarr_metadata_json(const ZarrMetadata& metadata) {
  Json json;
  json["zarr_format"] = 2;
  json["shape"] = metadata.shape.dims();
  json["chunks"] = metadata.chunks.dims();
  json["dtype"] = zarr_dtype_name(metadata.dtype);
  json["compressor"] = {{"id", "gzip"}, {"level", kGzipLevel}};
  json["fill_value"] = nullptr;
  json["filters"] = nullptr;
  json["order"] = "C";
  json["dimension_separator"] = ".";
  return json.dump();
}

Shape choose_chunk_shape(const Shape& shape, int64_t max_elements) {
  std::vector<int64_t> chunk;
  for (int64_t dim : shape) chunk.push_back(std::max<int64_t>(dim, 1));
  const std::vector<int64_t> whole = chunk;
  while (Shape(chunk).size() > std::max<int64_t>(max_elements, 1)) {
    const auto largest = static_cast<size_t>(std::max_element(chunk.begin(), chunk.end()) - chunk.begin());
    do {
      --chunk[largest];
    } while (whole[largest] % chunk[largest] != 0);
  }
  return Shape(std::move(chunk));
}

void decode_zarr_chunk(const ZarrMetadata& metadata, int64_t index, std::string_view bytes,
                       const std::string& label, Array& array) {
  const size_t item = byte_size(metadata.dtype);
  ChunkSource source(bytes, metadata.compressed, label);
  std::vector<std::byte> scratch;
  for_each_run(metadata, index, [&](int64_t offset, int64_t valid, int64_t padding) {
    source.read(array.bytes() + static_cast<size_t>(offset) * item, static_cast<size_t>(valid) * item);
    for (size_t left = static_cast<size_t>(padding) * item; left > 0;) {
      scratch.resize(std::min<size_t>(left, 1u << 16));
      source.read(scratch.data(), scratch.size());
      left -= scratch.size();
    }
  });
  source.finish();
}

std::string encode_zarr_chunk(const ZarrMetadata& metadata, int64_t index, const Array& array) {
  const size_t item = byte_size(array.dtype());
  Deflater deflater(metadata.chunk_bytes());
  for_each_run(metadata, index, [&](int64_t offset, int64_t valid, int64_t padding) {
    auto* from = const_cast<std::byte*>(array.bytes()) + static_cast<size_t>(offset) * item;
    // The cast goes run by run, so that no second copy of the array is ever held.
    const Array run = Array::view(array.dtype(), Shape{valid}, from, nullptr).cast(metadata.dtype);
    deflater.write(run.bytes(), run.nbytes());
    if (padding > 0) {
      const std::vector<std::byte> zeros(static_cast<size_t>(padding) * byte_size(metadata.dtype));
      deflater.write(zeros.data(), zeros.size());
    }
  });
  return deflater.finish();
}

ZarrMetadata read_zarr_metadata(const fs::path& dir) {
  return parse_zarr_metadata(read_file(dir / ".zarray"), (dir / ".zarray").string());
}

void read_zarr_chunk(const fs::path& dir, const ZarrMetadata& metadata, int64_t index, bool allow_missing,
                     Array& array) {
  const fs::path path = dir / metadata.chunk_name(index);
  if (!is_file(path)) {
    if (!allow_missing) fail(path.string(), "the chunk's file is missing");
    return fill(metadata, index, array);
  }
  decode_zarr_chunk(metadata, index, read_file(path), path.string(), array);
}

Array read_zarr(const fs::path& dir, const ZarrOptions& options) {
  const ZarrMetadata metadata = read_zarr_metadata(dir);
  Array array = Array::uninitialized(metadata.dtype, metadata.shape);
  parallel_for(metadata.chunk_count(), options.threads, [&](int64_t index) {
    read_zarr_chunk(dir, metadata, index, options.allow_missing_chunks, array);
  });
  return array;
}

void write_zarr(const fs::path& dir, const Array& array, const ZarrOptions& options) {
  ZarrMetadata metadata;
  metadata.dtype = array.dtype();
  metadata.shape = array.shape();
  metadata.chunks =
      choose_chunk_shape(array.shape(), kMaxChunkBytes / static_cast<int64_t>(byte_size(array.dtype())));
  make_dirs(dir);
  options.write_file(dir / ".zarray", zarr_metadata_json(metadata));
  parallel_for(metadata.chunk_count(), options.threads, [&](int64_t index) {
    options.write_file(dir / metadata.chunk_name(index), encode_zarr_chunk(metadata, index, array));
  });
  sync_dir(dir);
}

}  // namespace t5x::checkpoint
