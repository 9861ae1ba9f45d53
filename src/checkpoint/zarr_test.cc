#include "checkpoint/zarr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace t5x::checkpoint {
namespace {

using ::testing::HasSubstr;

template <class T>
Array iota(Shape shape) {
  Array array(dtype_of<T>(), std::move(shape));
  for (int i = 0; T & value : array.values<T>()) value = T(static_cast<float>(i++));
  return array;
}

// A zarr directory whose chunks are cut as the test wants them.
void write_chunked(const fs::path& dir, const Array& array, Shape chunks) {
  ZarrMetadata metadata{array.dtype(), array.shape(), std::move(chunks)};
  make_dirs(dir);
  write_file(dir / ".zarray", zarr_metadata_json(metadata));
  for (int64_t i = 0; i < metadata.chunk_count(); ++i)
    write_file(dir / metadata.chunk_name(i), encode_zarr_chunk(metadata, i, array));
}

std::string metadata_error(const std::string& json) {
  try {
    parse_zarr_metadata(json, "a/.zarray");
  } catch (const CheckpointError& e) {
    return e.what();
  }
  return "no error";
}

// A good .zarray with one piece of text replaced.
std::string metadata_error(std::string_view from, std::string_view to) {
  std::string json = zarr_metadata_json({DType::kFloat32, {4, 6}, {2, 3}});
  const size_t at = json.find(from);
  if (at == std::string::npos) return "the text to replace is not there";
  return metadata_error(json.replace(at, from.size(), to));
}

std::string read_error(const fs::path& dir) {
  try {
    read_zarr(dir, {.allow_missing_chunks = false});
  } catch (const CheckpointError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Zarr, MetadataEqualsTensorStores) {
  EXPECT_EQ(
      zarr_metadata_json({DType::kBFloat16, {5, 6}, {2, 4}}),
      R"({"chunks":[2,4],"compressor":{"id":"gzip","level":1},"dimension_separator":".","dtype":"bfloat16",)"
      R"("fill_value":null,"filters":null,"order":"C","shape":[5,6],"zarr_format":2})");
}

TEST(Zarr, RoundTripKeepsDTypes) {
  TempDir dir;
  const std::vector<Array> arrays{iota<float>({3, 4}),     iota<BFloat16>({7}),   iota<int32_t>({}),
                                  iota<double>({1}),       iota<uint8_t>({2, 2}), iota<float>({0, 3}),
                                  Array(DType::kBool, {3})};
  for (size_t i = 0; i < arrays.size(); ++i) {
    const fs::path path = dir / std::to_string(i);
    write_zarr(path, arrays[i]);
    EXPECT_TRUE(read_zarr(path, {.allow_missing_chunks = false}).identical(arrays[i]))
        << arrays[i].describe();
  }
}

TEST(Zarr, PartialEdgeChunksRoundTrip) {
  TempDir dir;
  const std::vector<std::pair<Shape, Shape>> cases{
      {{5, 6}, {2, 4}},       {{5}, {2}},       {{3, 4, 5}, {2, 4, 5}}, {{3, 4, 5}, {3, 3, 5}},
      {{3, 4, 5}, {2, 3, 2}}, {{2, 2}, {3, 3}}, {{4, 1, 3}, {1, 1, 2}}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const Array array = iota<float>(cases[i].first);
    const fs::path path = dir / std::to_string(i);
    write_chunked(path, array, cases[i].second);
    EXPECT_TRUE(read_zarr(path).identical(array)) << i;
  }
}

TEST(Zarr, ChunkNamesAreRowMajor) {
  const ZarrMetadata metadata{DType::kFloat32, {5, 6}, {2, 4}};
  EXPECT_EQ(metadata.chunk_count(), 6);
  EXPECT_EQ(metadata.chunk_name(1), "0.1");
  EXPECT_EQ(metadata.chunk_name(4), "2.0");
  EXPECT_EQ((ZarrMetadata{DType::kFloat32, {}, {}}).chunk_name(0), "0");
}

TEST(Zarr, ChunkIsCastWhenWritten) {
  const Array array = iota<float>({2, 3});
  const ZarrMetadata metadata{DType::kBFloat16, {2, 3}, {2, 3}};
  Array read(DType::kBFloat16, {2, 3});
  decode_zarr_chunk(metadata, 0, encode_zarr_chunk(metadata, 0, array), "x", read);
  EXPECT_TRUE(read.identical(array.cast(DType::kBFloat16)));
}

TEST(Zarr, MissingChunkHoldsFillValue) {
  TempDir dir;
  write_chunked(dir / "a", iota<float>({2, 2}), {1, 2});
  fs::remove(dir / "a/1.0");
  const Array read = read_zarr(dir / "a");
  EXPECT_THAT(read.values<float>(), ::testing::ElementsAre(0, 1, 0, 0));
}

TEST(Zarr, MissingChunkThrowsWhereNotAllowed) {
  TempDir dir;
  write_chunked(dir / "a", iota<float>({2, 2}), {1, 2});
  fs::remove(dir / "a/1.0");
  EXPECT_THAT(read_error(dir / "a"), HasSubstr("a/1.0': the chunk's file is missing"));
}

TEST(Zarr, FillValueIsRead) {
  const std::string json =
      R"({"zarr_format":2,"shape":[2],"chunks":[1],"dtype":"<i4","compressor":null,"fill_value":7,"order":"C"})";
  TempDir dir;
  write_file(dir / ".zarray", json);
  write_file(dir / "0", std::string_view("\x05\0\0\0", 4));
  EXPECT_THAT(read_zarr(dir.path()).values<int32_t>(), ::testing::ElementsAre(5, 7));
}

TEST(Zarr, TruncatedChunkThrowsAtEveryLength) {
  TempDir dir;
  write_chunked(dir / "a", iota<float>({8, 8}), {8, 8});
  const std::string bytes = read_file(dir / "a/0.0");
  for (size_t size = 0; size < bytes.size(); ++size) {
    write_file(dir / "a/0.0", std::string_view(bytes).substr(0, size));
    EXPECT_THAT(read_error(dir / "a"), HasSubstr("truncated")) << size;
  }
}

TEST(Zarr, FlippedBitOfDataOrChecksumThrows) {
  TempDir dir;
  write_chunked(dir / "a", iota<float>({64}), {64});
  const std::string bytes = read_file(dir / "a/0");
  // The ten bytes of the gzip header hold flags and a time that may differ.
  for (size_t i = 10; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 0x10;
    write_file(dir / "a/0", damaged);
    EXPECT_NE(read_error(dir / "a"), "no error") << i;
  }
}

TEST(Zarr, ChunkOfWrongSizeThrows) {
  TempDir dir;
  write_chunked(dir / "a", iota<float>({4}), {4});
  write_chunked(dir / "b", iota<float>({5}), {5});
  const std::string four = read_file(dir / "a/0");
  write_file(dir / "a/0", read_file(dir / "b/0"));
  EXPECT_THAT(read_error(dir / "a"), HasSubstr("more bytes than its shape needs"));
  write_file(dir / "b/0", four);
  EXPECT_THAT(read_error(dir / "b"), HasSubstr("fewer bytes than its shape needs"));
}

TEST(Zarr, BytesAfterChunkThrow) {
  TempDir dir;
  write_chunked(dir / "a", iota<float>({4}), {4});
  write_file(dir / "a/0", read_file(dir / "a/0") + "xy");
  EXPECT_THAT(read_error(dir / "a"), HasSubstr("2 bytes follow the chunk"));
}

TEST(Zarr, UnsupportedMetadataThrows) {
  EXPECT_THAT(metadata_error("\"order\":\"C\"", "\"order\":\"F\""), HasSubstr("order \"F\""));
  EXPECT_THAT(metadata_error("\"<f4\"", "\">f4\""), HasSubstr("dtype \">f4\""));
  EXPECT_THAT(metadata_error("\"gzip\"", "\"blosc\""), HasSubstr("blosc"));
  EXPECT_THAT(metadata_error("\"filters\":null", "\"filters\":[{\"id\":\"delta\"}]"), HasSubstr("delta"));
  EXPECT_THAT(metadata_error("\"zarr_format\":2", "\"zarr_format\":3"), HasSubstr("format 3"));
  EXPECT_THAT(metadata_error("{"), HasSubstr("'a/.zarray': expected the JSON object"));
  EXPECT_THAT(metadata_error("\"shape\"", "\"shapes\""), HasSubstr("'shape' is missing"));
}

TEST(Zarr, InconsistentShapesThrow) {
  EXPECT_THAT(metadata_error("[2,3]", "[2]"), HasSubstr("differ in rank"));
  EXPECT_THAT(metadata_error("[2,3]", "[2,0]"), HasSubstr("at least 1"));
  EXPECT_THAT(metadata_error("[4,6]", "[4,-6]"), HasSubstr("-6"));
  EXPECT_THAT(metadata_error("[4,6]", "[4294967296,4294967296]"), HasSubstr("overflows"));
  EXPECT_THAT(metadata_error("[2,3]", "[9223372036854775807,1]"), HasSubstr("overflows"));
}

TEST(Zarr, ChunkShapeIsWholeArrayWhenSmall) { EXPECT_EQ(choose_chunk_shape({3, 5}, 15), (Shape{3, 5})); }

TEST(Zarr, ChunkShapeDividesLargestDimensionFirst) {
  EXPECT_EQ(choose_chunk_shape({32128, 1024}, 16 << 20), (Shape{16064, 1024}));
  EXPECT_EQ(choose_chunk_shape({4096, 4096, 2}, 16 << 20), (Shape{2048, 4096, 2}));
  EXPECT_EQ(choose_chunk_shape({7, 7}, 10), (Shape{1, 7}));
}

TEST(Zarr, ChunkShapeOfEmptyArrayIsValid) { EXPECT_EQ(choose_chunk_shape({0, 3}, 10), (Shape{1, 3})); }

}  // namespace
}  // namespace t5x::checkpoint
