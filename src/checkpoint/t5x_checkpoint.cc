#include "checkpoint/t5x_checkpoint.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/strings.h"
#include "checkpoint/index.h"
#include "checkpoint/parallel.h"

namespace t5x::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr int kManifestVersion = 1;
constexpr int64_t kDeflateRatio = 1032;  // the most that deflate can shrink data
constexpr size_t kMostListed = 20;       // names of one kind in a message

bool is_castable(const std::string& name, DType dtype) {
  return name.starts_with("target/") && (dtype == DType::kFloat32 || dtype == DType::kBFloat16);
}

// Writes files and notes what the manifest says of them. Several threads may use it.
class Recorder {
 public:
  Recorder(fs::path dir, FileWriter write) : dir_(std::move(dir)), write_(std::move(write)) {}

  // The checksum is only taken of files that have none of their own.
  void write(const std::string& name, std::string_view bytes, bool checksum) {
    write_(dir_ / name, bytes);
    Json entry{{"bytes", bytes.size()}};
    if (checksum) entry["crc32c"] = crc32c(bytes);
    const std::lock_guard lock(mutex_);
    files_[name] = std::move(entry);
  }
  void write_manifest() {
    write_(dir_ / kManifestFile, Json{{"version", kManifestVersion}, {"files", files_}}.dump());
  }

 private:
  const fs::path dir_;
  const FileWriter write_;
  std::mutex mutex_;
  Json files_ = Json::object();
};

struct ChunkTask {
  size_t array;
  int64_t chunk;
};

std::vector<ChunkTask> list_chunks(const std::vector<int64_t>& counts) {
  std::vector<ChunkTask> tasks;
  for (size_t array = 0; array < counts.size(); ++array) {
    for (int64_t chunk = 0; chunk < counts[array]; ++chunk) tasks.push_back({array, chunk});
  }
  return tasks;
}

void check_file_name(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name == kIndexFile || name == kManifestFile ||
      name.find('/') != std::string::npos || find_invalid_utf8(name) != std::string::npos)
    throw_error<CheckpointError>("'{}' cannot be the name of a file in a checkpoint", name);
}

struct Manifest {
  bool present = false;
  Json files;
};

// The manifest, its files' existence and sizes checked. Checkpoints of t5x itself have none.
Manifest read_manifest(const fs::path& dir) {
  const fs::path path = dir / kManifestFile;
  if (!is_file(path)) return {};
  const Json json = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("files") || !json["files"].is_object())
    throw_error<CheckpointError>("'{}' is damaged: expected a JSON object with 'files'", path.string());
  for (const auto& [name, entry] : json["files"].items()) {
    std::error_code error;
    const auto size = fs::file_size(dir / name, error);
    if (error)
      throw_error<CheckpointError>("the file '{}' of the checkpoint is missing", (dir / name).string());
    const Json wanted = entry.is_object() ? entry.value("bytes", Json()) : Json();
    if (wanted != size)
      throw_error<CheckpointError>("the file '{}' has {} bytes, but was written with {}",
                                   (dir / name).string(), size, wanted.dump());
  }
  return {true, json["files"]};
}

void check_crc(const Manifest& manifest, const fs::path& dir, const std::string& name,
               std::string_view bytes) {
  if (!manifest.present || !manifest.files.contains(name)) return;
  const Json wanted = manifest.files[name].value("crc32c", Json());
  if (!wanted.is_null() && wanted != crc32c(bytes))
    throw_error<CheckpointError>("the file '{}' is damaged: its checksum is wrong", (dir / name).string());
}

std::string read_checked(const Manifest& manifest, const fs::path& dir, const std::string& name) {
  if (!is_file(dir / name))
    throw_error<CheckpointError>("the file '{}' of the checkpoint is missing", (dir / name).string());
  std::string bytes = read_file(dir / name);
  check_crc(manifest, dir, name, bytes);
  return bytes;
}

// Reads `.zarray` and holds it against the index.
ZarrMetadata read_metadata(const Manifest& manifest, const fs::path& dir, const std::string& name,
                           IndexEntry& entry) {
  const std::string file = entry.directory + "/.zarray";
  const ZarrMetadata metadata = parse_zarr_metadata(read_checked(manifest, dir, file), (dir / file).string());
  // A placeholder says nothing of dtype and shape.
  const bool described = entry.chunks.rank() != 0 || entry.info.shape.rank() != 0;
  if (described && (metadata.dtype != entry.info.dtype || metadata.shape != entry.info.shape))
    throw_error<CheckpointError>("'{}' is {}{}, but the checkpoint's index says that '{}' is {}{}",
                                 (dir / file).string(), t5x::name(metadata.dtype), metadata.shape.to_string(),
                                 name, t5x::name(entry.info.dtype), entry.info.shape.to_string());
  entry.info = {metadata.dtype, metadata.shape};
  return metadata;
}

// Whether the chunks' files are there and large enough that memory for the array may be taken.
void check_chunks(const fs::path& dir, const ZarrMetadata& metadata) {
  std::error_code error;
  const auto least = static_cast<uintmax_t>(metadata.chunk_bytes()) / kDeflateRatio;
  for (int64_t chunk = 0; chunk < metadata.chunk_count(); ++chunk) {
    const fs::path path = dir / metadata.chunk_name(chunk);
    const auto size = fs::file_size(path, error);
    if (error) throw_error<CheckpointError>("the file '{}' of the checkpoint is missing", path.string());
    if (size < least)
      throw_error<CheckpointError>("the file '{}' has {} bytes, too few for a chunk of {}: it was truncated",
                                   path.string(), size, metadata.chunk_bytes());
  }
}

Index read_index(const Manifest& manifest, const fs::path& dir) {
  return decode_index(read_checked(manifest, dir, kIndexFile), (dir / kIndexFile).string());
}

void require_directory(const fs::path& dir) {
  if (!is_dir(dir))
    throw_error<CheckpointError>("there is no checkpoint directory '{}'; check the path", dir.string());
}

}  // namespace

void write_checkpoint(const fs::path& dir, const CheckpointContents& contents, const WriteOptions& options) {
  Recorder recorder(dir, options.write_file);
  Index index;
  std::vector<std::pair<Array, ZarrMetadata>> large;
  std::vector<std::string> directories;
  std::set<std::string> taken;
  for (const auto& [name, file] : contents.files) {
    check_file_name(name);
    taken.insert(name);
  }
  for (const auto& [name, array] : contents.arrays) {
    IndexEntry& entry = index[name];
    entry.info = {is_castable(name, array.dtype()) ? options.save_dtype : array.dtype(), array.shape()};
    if (is_inline(name, array)) {
      entry.array = array;
      continue;
    }
    ZarrMetadata metadata;
    metadata.dtype = entry.info.dtype;
    metadata.shape = array.shape();
    // t5x chooses by the size in memory, before the cast.
    metadata.chunks =
        choose_chunk_shape(array.shape(), kMaxChunkBytes / static_cast<int64_t>(byte_size(array.dtype())));
    entry.chunks = metadata.chunks;
    entry.directory = zarr_directory(name);
    if (!taken.insert(entry.directory).second || entry.directory == kIndexFile ||
        entry.directory == kManifestFile)
      throw_error<CheckpointError>("the array '{}' would lie in '{}', a name that is already taken", name,
                                   entry.directory);
    directories.push_back(entry.directory);
    large.emplace_back(array, metadata);
  }
  const std::string index_bytes = encode_index(index);

  make_dirs(dir);
  std::vector<int64_t> counts;
  for (size_t i = 0; i < large.size(); ++i) {
    make_dirs(dir / directories[i]);
    recorder.write(directories[i] + "/.zarray", zarr_metadata_json(large[i].second), true);
    counts.push_back(large[i].second.chunk_count());
  }
  const std::vector<ChunkTask> tasks = list_chunks(counts);
  parallel_for(static_cast<int64_t>(tasks.size()), options.threads, [&](int64_t i) {
    const ChunkTask& task = tasks[static_cast<size_t>(i)];
    const auto& [array, metadata] = large[task.array];
    recorder.write(directories[task.array] + "/" + metadata.chunk_name(task.chunk),
                   encode_zarr_chunk(metadata, task.chunk, array), false);
  });
  for (const std::string& directory : directories) sync_dir(dir / directory);
  for (const auto& [name, bytes] : contents.files) recorder.write(name, bytes, true);
  recorder.write(kIndexFile, index_bytes, true);
  recorder.write_manifest();
  sync_dir(dir);
}

CheckpointContents read_checkpoint(const fs::path& dir, const ReadOptions& options) {
  require_directory(dir);
  const Manifest manifest = read_manifest(dir);
  Index index = read_index(manifest, dir);
  CheckpointContents contents;
  std::vector<std::string> names;
  std::vector<std::pair<Array, ZarrMetadata>> large;
  std::vector<int64_t> counts;
  for (auto& [name, entry] : index) {
    if (options.wanted && !options.wanted(name)) continue;
    if (entry.array) {
      contents.arrays[name] = *entry.array;
      continue;
    }
    const ZarrMetadata metadata = read_metadata(manifest, dir, name, entry);
    check_chunks(dir / entry.directory, metadata);
    try {
      large.emplace_back(Array::uninitialized(metadata.dtype, metadata.shape), metadata);
    } catch (const std::bad_alloc&) {
      throw_error<CheckpointError>("there is not enough memory for '{}', {}{}", name,
                                   t5x::name(metadata.dtype), metadata.shape.to_string());
    }
    names.push_back(name);
    counts.push_back(metadata.chunk_count());
  }
  const std::vector<ChunkTask> tasks = list_chunks(counts);
  parallel_for(static_cast<int64_t>(tasks.size()), options.threads, [&](int64_t i) {
    const ChunkTask& task = tasks[static_cast<size_t>(i)];
    auto& [array, metadata] = large[task.array];
    read_zarr_chunk(dir / index.at(names[task.array]).directory, metadata, task.chunk,
                    /*allow_missing=*/false, array);
  });
  for (size_t i = 0; i < names.size(); ++i) contents.arrays[names[i]] = std::move(large[i].first);
  if (options.target_dtype) {
    for (auto& [name, array] : contents.arrays) {
      if (is_castable(name, array.dtype())) array = array.cast(*options.target_dtype);
    }
  }
  for (const fs::directory_entry& file : fs::directory_iterator(dir)) {
    const std::string name = file.path().filename().string();
    if (file.is_regular_file() && name != kIndexFile && name != kManifestFile)
      contents.files[name] = read_checked(manifest, dir, name);
  }
  return contents;
}

std::map<std::string, ArrayInfo> list_checkpoint(const fs::path& dir) {
  require_directory(dir);
  std::map<std::string, ArrayInfo> infos;
  Index index = read_index({}, dir);
  for (auto& [name, entry] : index) {
    if (!entry.array && entry.chunks.rank() == 0) read_metadata({}, dir, name, entry);
    infos[name] = entry.info;
  }
  return infos;
}

std::optional<std::string> find_damage(const fs::path& dir) {
  try {
    require_directory(dir);
    const Manifest manifest = read_manifest(dir);
    Index index = read_index(manifest, dir);
    for (auto& [name, entry] : index) {
      if (!entry.array) check_chunks(dir / entry.directory, read_metadata(manifest, dir, name, entry));
    }
  } catch (const Error& e) {
    return e.what();
  }
  return std::nullopt;
}

std::map<std::string, ArrayInfo> describe_arrays(const NamedArrays& arrays) {
  std::map<std::string, ArrayInfo> infos;
  for (const auto& [name, array] : arrays) infos[name] = {array.dtype(), array.shape()};
  return infos;
}

void check_arrays_match(const std::map<std::string, ArrayInfo>& expected,
                        const std::map<std::string, ArrayInfo>& found, const std::string& source) {
  std::vector<std::string> missing, extra, misshapen;
  for (const auto& [name, info] : expected) {
    const auto it = found.find(name);
    if (it == found.end()) {
      missing.push_back(name);
    } else if (it->second.shape != info.shape) {
      misshapen.push_back(fmt::format("{}: the model has {}, the checkpoint {}", name, info.shape.to_string(),
                                      it->second.shape.to_string()));
    }
  }
  for (const auto& [name, info] : found) {
    if (!expected.contains(name)) extra.push_back(name);
  }
  if (missing.empty() && extra.empty() && misshapen.empty()) return;
  std::string text = fmt::format(
      "the checkpoint '{}' does not fit the model; was it trained with another "
      "configuration?",
      source);
  const auto append = [&](std::string_view title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    text += fmt::format("\n  {} ({}):", title, lines.size());
    for (size_t i = 0; i < std::min(lines.size(), kMostListed); ++i) text += "\n    " + lines[i];
    if (lines.size() > kMostListed) text += fmt::format("\n    and {} more", lines.size() - kMostListed);
  };
  append("missing from the checkpoint", missing);
  append("not in the model", extra);
  append("of another shape", misshapen);
  throw CheckpointError(text);
}

}  // namespace t5x::checkpoint
