#include "seqio/source.h"

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "seqio/iterators.h"
#include "seqio/line_reader.h"

namespace t5x::seqio {
namespace {

template <class Map>
std::vector<std::string> keys(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

[[noreturn]] void throw_unknown_split(const std::string& split, const std::vector<std::string>& splits) {
  throw_error<ConfigError>("the source has no split '{}', only {}{}", split, fmt::join(splits, ", "),
                           did_you_mean(split, splits));
}

// Makes an example of a line; the reader knows file and line.
using LineFn = std::function<void(std::string line, const LineReader& reader, Example& out)>;

class FileLines : public Iterator {
 public:
  FileLines(std::string path, size_t skip, bool check_utf8, LineFn fn)
      : path_(std::move(path)), skip_(skip), check_utf8_(check_utf8), fn_(std::move(fn)), reader_(path_) {
    skip_header();
  }
  bool next(Example& out) override {
    std::string line;
    if (!reader_.next(line, check_utf8_)) return false;
    out.clear();
    fn_(std::move(line), reader_, out);
    return true;
  }
  void restart() override {
    reader_.seek(0, 0);
    skip_header();
  }
  Json save() override {
    return {
        {"kind", "lines"}, {"file", path_}, {"offset", reader_.offset()}, {"line", reader_.line_number()}};
  }
  void restore(const Json& state) override {
    check_state(state, "lines");
    if (state.at("file") != path_)
      throw_error<DataError>("the saved state reads '{}', this pipeline '{}'; restore with the same files",
                             state.at("file").get<std::string>(), path_);
    reader_.seek(state.at("offset").get<uint64_t>(), state.at("line").get<uint64_t>());
  }

 private:
  void skip_header() {
    std::string line;
    for (size_t i = 0; i < skip_; ++i) reader_.next(line, false);
  }

  std::string path_;
  size_t skip_;
  bool check_utf8_;
  LineFn fn_;
  LineReader reader_;
};

Dataset file_lines(const std::string& path, size_t skip, bool check_utf8, LineFn fn) {
  return Dataset([=] { return std::make_unique<FileLines>(path, skip, check_utf8, fn); });
}

// One text feature per field.
void split_row(const std::string& line, const LineReader& reader, const std::vector<std::string>& columns,
               char delimiter, Example& out) {
  std::vector<std::string> fields = split(line, delimiter);
  if (fields.size() != columns.size())
    throw_error<DataError>(
        "malformed row in '{}', line {}: expected {} fields ({}), found {}; correct the row or the delimiter",
        reader.path(), reader.line_number(), columns.size(), fmt::join(columns, ", "), fields.size());
  for (size_t i = 0; i < columns.size(); ++i) out.set(columns[i], std::move(fields[i]));
}

class FunctionSource : public DataSource {
 public:
  FunctionSource(DatasetFn fn, std::vector<std::string> splits, std::map<std::string, int64_t> counts)
      : fn_(std::move(fn)), splits_(std::move(splits)), counts_(std::move(counts)) {}
  std::vector<std::string> splits() const override { return splits_; }
  std::vector<std::string> list_shards(const std::string& split) const override { return {split}; }
  std::optional<int64_t> num_input_examples(const std::string& split) const override {
    auto found = counts_.find(split);
    return found == counts_.end() ? std::nullopt : std::optional<int64_t>(found->second);
  }
  Dataset get_dataset(const SourceRequest& request) const override {
    if (std::find(splits_.begin(), splits_.end(), request.split) == splits_.end())
      throw_unknown_split(request.split, splits_);
    if (request.shard_info && request.shard_info->num_shards > 1)
      throw_error<ConfigError>("a function source has one shard per split, but {} were asked for",
                               request.shard_info->num_shards);
    return fn_(request.split, request.shuffle, request.seed);
  }
  std::string describe() const override {
    return fmt::format("a function of splits {}", fmt::join(splits_, ", "));
  }

 private:
  DatasetFn fn_;
  std::vector<std::string> splits_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace

FileDataSource::FileDataSource(ReadFn read_file, SplitFiles files, FileSourceOptions options,
                               std::string kind)
    : read_file_(std::move(read_file)),
      files_(std::move(files)),
      options_(std::move(options)),
      kind_(std::move(kind)) {}

std::vector<std::string> FileDataSource::splits() const { return keys(files_); }

std::vector<std::string> FileDataSource::list_shards(const std::string& split) const {
  auto found = files_.find(split);
  if (found == files_.end()) throw_unknown_split(split, splits());
  std::vector<std::string> paths;
  for (const std::string& pattern : found->second) {
    std::vector<std::string> matches = glob(pattern);
    if (matches.empty())
      throw_error<DataError>("no file matches '{}' of split '{}'; check the path", pattern, split);
    paths.insert(paths.end(), matches.begin(), matches.end());
  }
  if (paths.empty()) throw_error<DataError>("split '{}' names no files", split);
  return paths;
}

std::optional<int64_t> FileDataSource::num_input_examples(const std::string& split) const {
  auto found = options_.num_input_examples.find(split);
  if (found == options_.num_input_examples.end()) return std::nullopt;
  return found->second;
}

Dataset FileDataSource::get_dataset(const SourceRequest& request) const {
  std::vector<std::string> paths = list_shards(request.split);
  for (const std::string& path : paths)
    if (!fs::exists(path)) throw_io_error("reading", path, ENOENT);
  size_t buffer = options_.file_shuffle_buffer_size.value_or(paths.size());
  if (request.shard_info && static_cast<int64_t>(paths.size()) < request.shard_info->num_shards)
    throw_error<ConfigError>("split '{}' has {} files, too few for {} shards by file", request.split,
                             paths.size(), request.shard_info->num_shards);
  auto shared = std::make_shared<const std::vector<std::string>>(std::move(paths));
  Dataset files = Dataset::generate(shared->size(), [shared](uint64_t i) {
    return Example{{"file", (*shared)[i]}};
  });
  if (request.shard_info) files = files.shard(request.shard_info->num_shards, request.shard_info->index);
  if (request.shuffle) files = files.shuffle(buffer, request.seed);
  return files.interleave([read = read_file_](const Example& file) { return read(file.text("file")); },
                          options_.cycle_length, options_.block_length);
}

std::string FileDataSource::describe() const {
  std::string text = kind_;
  for (const auto& [split, patterns] : files_)
    text += fmt::format("; {}: {}", split, fmt::join(patterns, ", "));
  return text;
}

Dataset text_lines(const std::string& path, size_t skip_header_lines, bool require_utf8) {
  return file_lines(
      path, skip_header_lines, require_utf8,
      [](std::string line, const LineReader&, Example& out) { out.set(kLineKey, std::move(line)); });
}

DataSourcePtr text_line_source(SplitFiles files, TextLineOptions options) {
  auto read = [options](const std::string& path) {
    return text_lines(path, options.skip_header_lines, options.require_utf8);
  };
  return std::make_shared<FileDataSource>(read, std::move(files), options.files, "text lines");
}

DataSourcePtr tsv_source(SplitFiles files, TsvOptions options) {
  auto read = [options](const std::string& path) {
    size_t skip = options.skip_header_lines;
    std::vector<std::string> columns = options.columns;
    if (columns.empty()) {
      LineReader header(path);
      std::string line;
      for (size_t i = 0; i <= skip; ++i) header.next(line, true);
      columns = split(line, options.delimiter);
      ++skip;
    }
    auto row = [columns, delimiter = options.delimiter](std::string line, const LineReader& reader,
                                                        Example& out) {
      split_row(line, reader, columns, delimiter, out);
    };
    return file_lines(path, skip, true, row);
  };
  return std::make_shared<FileDataSource>(read, std::move(files), options.files, "TSV rows");
}

DataSourcePtr function_source(DatasetFn fn, std::vector<std::string> splits,
                              std::map<std::string, int64_t> num_input_examples) {
  return std::make_shared<FunctionSource>(std::move(fn), std::move(splits), std::move(num_input_examples));
}

DataSourcePtr in_memory_source(std::map<std::string, std::vector<Example>> examples) {
  std::map<std::string, Dataset> datasets;
  std::map<std::string, int64_t> counts;
  for (auto& [split, list] : examples) {
    counts[split] = static_cast<int64_t>(list.size());
    datasets.emplace(split, Dataset::in_memory(std::move(list)));
  }
  std::vector<std::string> splits = keys(datasets);
  auto fn = [datasets](const std::string& split, bool, std::optional<int64_t>) { return datasets.at(split); };
  return function_source(fn, splits, counts);
}

}  // namespace t5x::seqio
