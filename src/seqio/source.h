// Sources: where a task's raw examples come from, split by split and shard by shard.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "seqio/dataset.h"
#include "seqio/feature.h"

namespace t5x::seqio {

struct SourceRequest {
  std::string split;
  bool shuffle = false;
  std::optional<int64_t> seed = std::nullopt;
  std::optional<ShardInfo> shard_info = std::nullopt;  // at most as many shards as list_shards() has
};

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual std::vector<std::string> splits() const = 0;
  virtual std::vector<std::string> list_shards(const std::string& split) const = 0;
  virtual std::optional<int64_t> num_input_examples(const std::string& split) const = 0;
  virtual bool supports_arbitrary_sharding() const { return false; }
  virtual bool caching_permitted() const { return true; }
  virtual bool performs_internal_shuffling() const { return false; }
  virtual Dataset get_dataset(const SourceRequest& request) const = 0;
  // "text lines of data/*.txt", for messages and `inspect`.
  virtual std::string describe() const = 0;
};
using DataSourcePtr = std::shared_ptr<const DataSource>;

// Split -> glob or file, or a list of them.
using SplitFiles = std::map<std::string, std::vector<std::string>>;

struct FileSourceOptions {
  std::map<std::string, int64_t> num_input_examples = {};
  std::optional<size_t> file_shuffle_buffer_size = std::nullopt;  // nothing: all files
  size_t cycle_length = 16;
  size_t block_length = 16;
};

// Files read by `read_file(path)`, interleaved 16 x 16; shard k of n reads files k, k+n, ... Shuffling orders
// the files; examples are shuffled by the task.
class FileDataSource : public DataSource {
 public:
  using ReadFn = std::function<Dataset(const std::string& path)>;
  FileDataSource(ReadFn read_file, SplitFiles files, FileSourceOptions options = {},
                 std::string kind = "files");
  std::vector<std::string> splits() const override;
  // Throws DataError when a pattern matches nothing.
  std::vector<std::string> list_shards(const std::string& split) const override;
  std::optional<int64_t> num_input_examples(const std::string& split) const override;
  Dataset get_dataset(const SourceRequest& request) const override;
  std::string describe() const override;

 private:
  ReadFn read_file_;
  SplitFiles files_;
  FileSourceOptions options_;
  std::string kind_;
};

struct TextLineOptions {
  FileSourceOptions files = {};
  size_t skip_header_lines = 0;
  bool require_utf8 =
      true;  // invalid UTF-8 is a DataError with file, line and offset; false: bytes pass through
};
// Lines as tf.data.TextLineDataset splits them, as feature kLineKey.
DataSourcePtr text_line_source(SplitFiles files, TextLineOptions options = {});

struct TsvOptions {
  FileSourceOptions files = {};
  // Names of the columns; empty: the header line of each file names them.
  std::vector<std::string> columns = {};
  size_t skip_header_lines = 0;
  char delimiter = '\t';
};
// Rows of tab separated text, one text feature per column. A row of another number of fields is a DataError
// that names the file and the line.
DataSourcePtr tsv_source(SplitFiles files, TsvOptions options = {});

// One dataset per split, made by a function; always sharded by example.
using DatasetFn =
    std::function<Dataset(const std::string& split, bool shuffle_files, std::optional<int64_t> seed)>;
DataSourcePtr function_source(DatasetFn fn, std::vector<std::string> splits,
                              std::map<std::string, int64_t> num_input_examples = {});
DataSourcePtr in_memory_source(std::map<std::string, std::vector<Example>> examples);

// The lines of one file, read in blocks; for sources of other formats.
Dataset text_lines(const std::string& path, size_t skip_header_lines = 0, bool require_utf8 = true);

}  // namespace t5x::seqio
