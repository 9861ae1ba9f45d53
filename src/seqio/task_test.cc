#include "seqio/task.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/file.h"
#include "seqio/get_dataset.h"
#include "seqio/golden_test_util.h"
#include "seqio/token_preprocessors.h"

namespace t5x::seqio {
namespace {

using testing::HasSubstr;

std::string message_of(auto&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

Features byte_features() {
  auto bytes = std::make_shared<ByteVocabulary>();
  return {{"inputs", {.vocabulary = bytes}}, {"targets", {.vocabulary = bytes}}};
}

DataSourcePtr texts(int n) {
  std::vector<Example> rows;
  for (int i = 0; i < n; ++i)
    rows.push_back({{"inputs", fmt::format("question {}", i)}, {"targets", fmt::format("answer {}", i * i)}});
  return in_memory_source({{"train", rows}});
}

TaskConfig words(int n = 50) {
  return {.name = "words",
          .source = texts(n),
          .preprocessors = {tokenize(), append_eos_after_trim()},
          .output_features = byte_features()};
}

const SequenceLength kLengths{{"inputs", 16}, {"targets", 12}};

std::shared_ptr<const Task> make(TaskConfig config) {
  return std::make_shared<const Task>(std::move(config));
}
FeatureConverterPtr encdec(bool pack = true) {
  return std::make_shared<EncDecFeatureConverter>(ConverterOptions{.pack = pack});
}

TEST(Task, NamesAreSeqios) {
  for (const char* good : {"a", "a:b", "c4_v220.1#x", "\xc3\xa9"}) {
    TaskConfig config = words();
    config.name = good;
    EXPECT_NO_THROW(Task{config}) << good;
  }
  for (const char* bad : {"", "a b", "a/b", "a-b"}) {
    TaskConfig config = words();
    config.name = bad;
    EXPECT_THROW(Task{config}, ConfigError) << bad;
  }
}

TEST(Task, UnknownNameOffersTheNearest) {
  TaskRegistry tasks;
  MixtureRegistry mixtures;
  tasks.add(words());
  EXPECT_THAT(message_of([&] { get_mixture_or_task("word", tasks, mixtures); }),
              HasSubstr("did you mean 'words'?"));
}

TEST(Task, DuplicateRegistrationIsAnError) {
  TaskRegistry tasks;
  tasks.add(words());
  EXPECT_THAT(message_of([&] { tasks.add(words()); }), HasSubstr("task 'words' is registered already"));
}

TEST(Task, PreprocessorThatNeedsLengthsMustFollowTheCachePoint) {
  TaskConfig config = words();
  config.preprocessors = {span_corruption(), cache_dataset_placeholder()};
  EXPECT_THROW(Task{config}, ConfigError);
}

TEST(Task, MissingFeatureIsNamed) {
  TaskConfig config = words();
  config.preprocessors.push_back(map_examples("drop", [](Example& e) { e.erase("targets"); }));
  EXPECT_THAT(message_of([&] { collect(Task(config).get_dataset({.sequence_length = kLengths})); }),
              HasSubstr("output feature 'targets' is missing"));
}

TEST(Task, WrongDtypeAndRankAreNamed) {
  TaskConfig config = words();
  config.preprocessors.push_back(
      map_examples("widen", [](Example& e) { e.set("inputs", e.array("inputs").cast(DType::kInt64)); }));
  EXPECT_THAT(message_of([&] { collect(Task(config).get_dataset({})); }),
              HasSubstr("output feature 'inputs' should have dtype int32, but is int64"));
  config.preprocessors.back() =
      map_examples("scalar", [](Example& e) { e.set("inputs", Array::scalar<int32_t>(1)); });
  EXPECT_THAT(message_of([&] { collect(Task(config).get_dataset({})); }), HasSubstr("should have rank 1"));
}

TEST(Task, PreprocessorThatThrowsIsNamedWithExampleAndTask) {
  TaskConfig config = words();
  config.preprocessors.push_back(map_examples("picky", [](Example& e) {
    if (e.text("inputs_pretokenized") == "question 7") throw std::runtime_error("seven");
  }));
  auto batches = get_batches(make(config), encdec(), {.task_feature_lengths = kLengths, .batch_size = 2});
  EXPECT_THAT(message_of([&] {
                while (batches.next()) {
                }
              }),
              testing::AllOf(HasSubstr("seven"), HasSubstr("preprocessor 'picky', example 7"),
                             HasSubstr("task 'words'")));
}

TEST(Task, ShardsPartitionTheExamples) {
  Task task(words(10));
  std::multiset<std::string> seen;
  for (int64_t k = 0; k < 3; ++k)
    for (const Example& e :
         collect(task.get_dataset({.sequence_length = kLengths, .seed = 1, .shard_info = ShardInfo{k, 3}})))
      seen.insert(e.text("targets_pretokenized"));
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 10u);
}

TEST(GetBatches, LengthZeroNamesTheFeature) {
  EXPECT_THAT(
      message_of([&] {
        get_batches(make(words()), encdec(), {.task_feature_lengths = {{"inputs", 0}, {"targets", 4}}});
      }),
      HasSubstr("the length of feature 'inputs' is 0"));
}

TEST(GetBatches, EmptyDatasetIsAnError) {
  for (auto epochs : {std::optional<int64_t>(1), std::optional<int64_t>()}) {
    auto batches = get_batches(make(words(0)), encdec(),
                               {.task_feature_lengths = kLengths, .num_epochs = epochs, .batch_size = 2});
    EXPECT_THAT(message_of([&] { batches.next(); }), HasSubstr("empty"));
  }
}

TEST(GetBatches, ShapesAreBatchByLength) {
  auto batches = get_batches(make(words()), encdec(), {.task_feature_lengths = kLengths, .batch_size = 4});
  Batch batch = *batches.next();
  EXPECT_EQ(batch.size(), 8u);
  EXPECT_EQ(batch.at("encoder_input_tokens").describe(), "int32(4, 16)");
  EXPECT_EQ(batch.at("decoder_segment_ids").describe(), "int32(4, 12)");
}

std::vector<Batch> take(BatchIterator& batches, size_t n) {
  std::vector<Batch> taken;
  for (size_t i = 0; i < n; ++i) taken.push_back(batches.next().value());
  return taken;
}

void expect_same(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    for (const auto& [name, array] : a[i])
      ASSERT_TRUE(array.identical(b[i].at(name))) << name << " of batch " << i;
}

// With and without a seed, and with other numbers of threads after the restart.
TEST(GetBatches, RestoredBatchesContinueExactly) {
  for (auto seed : {std::optional<int64_t>(3), std::optional<int64_t>()}) {
    GetDatasetOptions options{.task_feature_lengths = kLengths,
                              .shuffle = true,
                              .num_epochs = std::nullopt,
                              .seed = seed,
                              .batch_size = 4,
                              .num_threads = 2};
    auto first = get_batches(make(words()), encdec(), options);
    take(first, 11);
    std::string state = to_bytes(first.save());
    std::vector<Batch> expected = take(first, 30);
    for (size_t prefetch : {0, 2, 5}) {
      options.prefetch_batches = prefetch;
      options.num_threads = static_cast<int>(prefetch);
      auto second = get_batches(make(words()), encdec(), options);
      second.restore(from_bytes(state));
      EXPECT_EQ(second.batches_delivered(), 11);
      expect_same(take(second, 30), expected);
    }
  }
}

TEST(GetBatches, StateOfAnotherSeedIsRefused) {
  GetDatasetOptions options{.task_feature_lengths = kLengths, .seed = 1, .batch_size = 2};
  Json state = get_batches(make(words()), encdec(), options).save();
  options.seed = 2;
  auto other = get_batches(make(words()), encdec(), options);
  EXPECT_THAT(message_of([&] { other.restore(state); }), HasSubstr("made with seed 1, this run has seed 2"));
}

TEST(PreprocessTsv, TemplatesAreFilled) {
  TaskConfig config = words();
  config.source = in_memory_source({{"train", {{{std::string(kLineKey), std::string("6\t7\t42")}}}}});
  config.preprocessors = {
      preprocess_tsv({.num_fields = 3, .inputs_format = "{0} x {1}?", .targets_format = "{2}"}), tokenize()};
  Example example = collect(Task(config).get_dataset({})).at(0);
  EXPECT_EQ(example.text("inputs_pretokenized"), "6 x 7?");
  EXPECT_EQ(example.text("targets_pretokenized"), "42");
}

TEST(Mixture, RatesAndPicksAreSeqios) {
  for (const Golden& golden : goldens("mixture.json")) {
    TaskRegistry tasks;
    MixtureRegistry mixtures;
    auto ids = std::make_shared<PassThroughVocabulary>(1000000);
    for (const auto& [name, count] : golden.json.at("tasks").items()) {
      int32_t k = name[1] - '0';
      auto rows = [k, n = count.get<uint64_t>()](const std::string&, bool, std::optional<int64_t>) {
        return Dataset::generate(n, [k](uint64_t i) {
          return Example{{"targets", ints({k, static_cast<int32_t>(i)})}};
        });
      };
      tasks.add({.name = name,
                 .source = function_source(rows, {"train"}, {{"train", count.get<int64_t>()}}),
                 .output_features = {{"targets", {.vocabulary = ids, .add_eos = false}}}});
    }
    for (const Json& m : golden.json.at("mixtures")) {
      MixtureConfig config{.name = m.at("name"), .tasks = {}};
      const Json& rate = m.at("default_rate");
      if (rate.is_number()) config.default_rate = rate.get<double>();
      if (rate.is_string()) {
        // Written as Python prints the options: {'temperature': 2.0}
        std::string text = rate.get<std::string>();
        double value = std::stod(text.substr(text.find(':') + 1));
        MixingRateOptions options;
        if (text.find("temperature") != std::string::npos) options.temperature = value;
        if (text.find("maximum") != std::string::npos) options.maximum = value;
        config.default_rate = mixing_rate_num_examples(options);
      }
      for (const Json& entry : m.at("tasks")) {
        if (entry.is_string())
          config.tasks.push_back({entry.get<std::string>()});
        else
          config.tasks.push_back({entry[0].get<std::string>(), entry[1].get<double>()});
      }
      MixturePtr mixture = mixtures.add(config, tasks);
      for (const TaskPtr& task : mixture->tasks())
        EXPECT_DOUBLE_EQ(mixture->get_rate(*task), m.at("rates").at(task->name()).get<double>());
      EXPECT_DOUBLE_EQ(mixture->total_rate(), m.at("total_rate").get<double>());
      for (const Json& run : m.at("runs")) {
        DatasetRequest request{.shuffle = run.at("shuffle").get<bool>(), .num_epochs = std::nullopt};
        if (!run.at("seed").is_null()) request.seed = run.at("seed").get<int64_t>();
        if (run.contains("num_epochs") && !run.at("num_epochs").is_null()) {
          request.num_epochs = run.at("num_epochs").get<int64_t>();
          EXPECT_EQ(collect(mixture->get_dataset(request)).size(),
                    run.at("total (stops at first exhausted task)").get<size_t>());
          continue;
        }
        bool seeded = run.contains("task_of_first_300");
        std::string picks, expected = run.at(seeded ? "task_of_first_300" : "task_of_first_50");
        std::vector<Example> first = collect(mixture->get_dataset(request), expected.size());
        for (const Example& e : first) picks += static_cast<char>('0' + e.ints("targets")[0]);
        EXPECT_EQ(picks, expected) << m.at("name") << run.at("seed");
        for (size_t i = 0; seeded && i < 20; ++i)
          EXPECT_EQ(plain(first[i]).at("targets"), run.at("first20(task,row)")[i])
              << m.at("name") << run.at("seed");
      }
    }
  }
}

TEST(Mixture, TasksOfOtherFeaturesAreRefused) {
  TaskRegistry tasks;
  MixtureRegistry mixtures;
  tasks.add(words());
  TaskConfig other = words();
  other.name = "other";
  other.output_features.erase("inputs");
  tasks.add(other);
  MixtureConfig config{.name = "m", .tasks = {{"words"}, {"other"}}, .default_rate = 1.0};
  EXPECT_THAT(message_of([&] { mixtures.add(config, tasks); }), HasSubstr("same output features"));
}

class FullPipeline : public testing::Test {
 protected:
  void SetUp() override {
    if (full_golden_dir().empty())
      GTEST_SKIP() << "T5X_GOLDEN_DIR is not set; it names the directory of full golden files";
  }
  Json read(const std::string& name) { return Json::parse(read_file(fs::path(full_golden_dir()) / name)); }
  TaskPtr span_task(const std::string& name) {
    auto vocabulary = std::make_shared<SentencePieceVocabulary>(full_golden_dir() + "/models/uni2k.model",
                                                                SentencePieceOptions{.extra_ids = 100});
    TextLineOptions options;
    if (name == "span_small") options.files.num_input_examples = {{"train", 111}};
    return make(
        {.name = name,
         .source = text_line_source({{"train", {full_golden_dir() + "/data/lines-*.txt"}}}, options),
         .preprocessors = {rekey({{"inputs", ""}, {"targets", "line"}}), tokenize(),
                           cache_dataset_placeholder(), span_corruption(), append_eos_after_trim()},
         .output_features = {{"inputs", {.vocabulary = vocabulary}}, {"targets", {.vocabulary = vocabulary}}},
         .shuffle_buffer_size = name == "span_buf20" ? 20 : 1000});
  }
};

TEST_F(FullPipeline, ExamplesAreSeqios) {
  Json golden = read("pipeline.json");
  for (const Json& run : golden.at("unpacked")) {
    const Json& args = run.at("args");
    DatasetRequest request{.sequence_length = golden.at("sequence_length").get<SequenceLength>(),
                           .shuffle = args.at("shuffle").get<bool>(),
                           .seed = args.at("seed").get<int64_t>()};
    if (args.contains("shard_info"))
      request.shard_info = ShardInfo{args.at("shard_info")[0], args.at("shard_info")[1]};
    if (args.contains("num_epochs")) request.num_epochs = args.at("num_epochs").get<int64_t>();
    for (int threads : {0, 2}) {
      request.num_threads = threads;
      std::vector<Example> got = collect(span_task(run.at("task"))->get_dataset(request));
      EXPECT_EQ(got.size(), run.at("total").get<size_t>()) << args;
      for (size_t i = 0; i < run.at("examples").size(); ++i)
        ASSERT_EQ(plain(got.at(i)), run.at("examples")[i]) << args << i;
    }
  }
}

TEST_F(FullPipeline, PackedRowsAreSeqios) {
  Json golden = read("pipeline.json");
  for (const Json& run : golden.at("packed")) {
    GetDatasetOptions options{.task_feature_lengths = golden.at("sequence_length").get<SequenceLength>(),
                              .shuffle = run.at("shuffle").get<bool>(),
                              .seed = run.at("seed").get<int64_t>()};
    if (!run.at("batch_size").is_null()) options.batch_size = run.at("batch_size").get<int64_t>();
    auto batches = get_batches(span_task("span"), encdec(), options);
    size_t n = 0;
    for (auto batch = batches.next(); batch; batch = batches.next(), ++n) {
      if (options.batch_size != 0 || n >= run.at("first").size()) continue;
      for (const auto& [name, array] : *batch)
        EXPECT_EQ(plain(Example{{name, array}}).at(name), run.at("first")[n].at(name)) << name << n;
    }
    EXPECT_EQ(n, run.at("n").get<size_t>());
  }
}

TEST_F(FullPipeline, ShardsAreSeqios) {
  Json golden = read("sharding.json");
  std::map<std::string, int> id_of;
  for (size_t file = 0; file < golden.at("files").size(); ++file) {
    int line = 0;
    for (const Example& e : collect(text_lines(full_golden_dir() + "/data/" +
                                               golden.at("files")[file].at("file").get<std::string>())))
      id_of.emplace(e.text("line"), static_cast<int>(file) * 1000 + line++);
  }
  auto vocabulary = std::make_shared<PassThroughVocabulary>(1000000);
  for (const Json& run : golden.at("runs")) {
    Task task({.name = "lines",
               .source = text_line_source({{"train", {full_golden_dir() + "/data/lines-*.txt"}}})});
    DatasetRequest request{.shuffle = run.at("shuffle").get<bool>(), .seed = run.value("seed", 0)};
    if (!run.at("shard").is_null()) request.shard_info = ShardInfo{run.at("shard")[0], run.at("shard")[1]};
    std::vector<int> ids;
    for (const Example& e : collect(task.get_dataset(request))) ids.push_back(id_of.at(e.text("line")));
    EXPECT_EQ(Json(ids), run.at("ids")) << run.at("shard") << request.shuffle;
  }
}

}  // namespace
}  // namespace t5x::seqio
