#include "seqio/dataset.h"

#include <gmock/gmock.h>

#include <atomic>

#include "base/error.h"
#include "seqio/feature_converter.h"
#include "seqio/golden_test_util.h"

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

TEST(Shuffle, OrdersOfThreeEpochsAreTensorFlows) {
  for (const Golden& golden : goldens("shuffle_mix.json")) {
    for (const Json& c : golden.json.at("shuffle")) {
      Dataset dataset = counting(c.at("n").get<int64_t>())
                            .shuffle(c.at("buffer").get<size_t>(), c.at("seed").get<int64_t>())
                            .repeat(3);
      EXPECT_EQ(Json(values_of(collect(dataset))), c.at("epochs3")) << c.at("n") << " " << c.at("seed");
    }
  }
}

TEST(Interleave, OrdersAreTensorFlows) {
  for (const Golden& golden : goldens("shuffle_mix.json")) {
    for (const Json& c : golden.json.at("interleave")) {
      auto lengths = c.at("lengths").get<std::vector<int32_t>>();
      Dataset dataset =
          counting(static_cast<int64_t>(lengths.size()))
              .interleave(
                  [lengths](const Example& file) {
                    int32_t k = file.ints("x")[0];
                    return Dataset::generate(
                        static_cast<uint64_t>(lengths[static_cast<size_t>(k)]), [k](uint64_t i) {
                          return Example{{"x", ints({k * 1000 + static_cast<int32_t>(i)})}};
                        });
                  },
                  c.at("cycle_length").get<size_t>(), c.at("block_length").get<size_t>());
      EXPECT_EQ(Json(values_of(collect(dataset))), c.at("out(file*1000+row)"));
    }
  }
}

TEST(Sample, PicksAreTensorFlows) {
  for (const Golden& golden : goldens("shuffle_mix.json")) {
    for (const Json& c : golden.json.at("sample")) {
      auto weights = c.at("weights").get<std::vector<double>>();
      std::vector<Dataset> datasets;
      for (size_t k = 0; k < weights.size(); ++k)
        datasets.push_back(
            Dataset::in_memory({Example{{"x", ints({static_cast<int32_t>(k)})}}}).repeat(std::nullopt));
      Dataset dataset = Dataset::sample(datasets, weights, c.at("seed").get<int64_t>());
      EXPECT_EQ(Json(values_of(collect(dataset, c.at("picks500").size()))), c.at("picks500"));
    }
  }
}

// Every kind of stage, so that one property covers all states.
std::map<std::string, Dataset> pipelines() {
  Dataset base = counting(23);
  auto doubled = [](std::span<Example> in, uint64_t, std::vector<Example>& out) {
    for (Example& example : in) out.push_back(example), out.push_back(std::move(example));
  };
  auto add_index = [](Example& example, uint64_t index) {
    example.set("x", ints({example.ints("x")[0] * 100 + static_cast<int32_t>(index)}));
  };
  auto open = [](const Example& file) {
    int32_t k = file.ints("x")[0];
    return counting(k % 5).map([k](Example& e, uint64_t) { e.set("x", ints({k * 10 + e.ints("x")[0]})); });
  };
  Dataset texts = Dataset::in_memory({{{"s", std::string("caf\xc3\xa9")}, {"x", ints({1})}},
                                      {{"s", std::string("\xff")}, {"x", ints({2})}},
                                      {{"s", std::string()}, {"x", ints({})}}});
  return {
      {"generate", base},
      {"map", base.map(add_index)},
      {"parallel map", base.repeat(3).map(add_index, {.num_threads = 3})},
      {"parallel map under repeat", base.map(add_index, {.num_threads = 2}).repeat(3)},
      {"filter", base.filter([](const Example& e) { return e.ints("x")[0] % 3 == 0; })},
      {"flat_map", base.flat_map(doubled, 3)},
      {"shard", base.shard(4, 1)},
      {"take and skip", base.skip(3).take(9)},
      {"shuffle", base.shuffle(7, 1).repeat(3)},
      {"frozen shuffle", base.shuffle(7, 1).freeze().repeat(3)},
      {"unseeded shuffle", base.shuffle(7, std::nullopt).repeat(2)},
      {"interleave", base.shuffle(23, 3).interleave(open, 4, 2).repeat(2)},
      {"batch", base.batch(4, false)},
      {"prefetch", base.shuffle(5, 2).prefetch(3).repeat(2)},
      {"sample", Dataset::sample({base.repeat(std::nullopt), base.shuffle(4, 1)}, {1, 2}, 5)},
      {"pack", trim_and_pack_dataset(base, {{"x", 4}}).repeat(2)},
      {"texts", texts.shuffle(2, 1).prefetch(2)},
      {"context", base.context("somewhere")},
  };
}

class Pipeline : public testing::TestWithParam<std::string> {};

TEST_P(Pipeline, ContinuesExactlyFromEverySavedState) {
  Dataset dataset = pipelines().at(GetParam());
  auto source = dataset.iterator();
  for (int position = 0;; ++position) {
    std::string state = to_bytes(source->save());
    auto first = dataset.iterator(), second = dataset.iterator();
    first->restore(from_bytes(state));
    second->restore(from_bytes(state));
    // The first continues to the end; the second follows the source, which goes on after the save.
    Example expected, got;
    int rest = 0;
    bool more = source->next(expected);
    ASSERT_EQ(second->next(got), more) << position;
    if (!more) break;
    ASSERT_TRUE(identical(got, expected)) << position;
    while (first->next(got)) ++rest;
    auto fresh = dataset.iterator();
    int all = 0;
    while (fresh->next(got)) ++all;
    ASSERT_EQ(rest, all - position) << position;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Pipeline, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, dataset] : pipelines()) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(Dataset, StateOfAnotherPipelineIsRefused) {
  Json state = counting(3).batch(1).iterator()->save();
  auto iterator = counting(3).shuffle(2, 1).iterator();
  std::string message = message_of([&] { iterator->restore(state); });
  EXPECT_THAT(message, HasSubstr("expected the state of 'shuffle', found 'flat_map'"));
}

TEST(Dataset, BytesThatAreNoStateAreRefused) { EXPECT_THROW(from_bytes("\xc1\xc1"), DataError); }

TEST(ParallelMap, KeepsOrderWhateverTheNumberOfThreads) {
  auto work = [](Example& example, uint64_t index) {
    // Uneven work, so that threads finish out of order.
    uint64_t x = index;
    for (uint64_t i = 0; i < (index * 7919) % 5000; ++i) x = x * 6364136223846793005u + 1;
    example.set("y", ints({static_cast<int32_t>(x >> 40)}));
  };
  std::vector<Example> serial = collect(counting(1000).map(work));
  for (int threads : {1, 2, 5}) {
    std::vector<Example> parallel = collect(counting(1000).map(work, {.num_threads = threads}));
    ASSERT_EQ(parallel.size(), serial.size());
    for (size_t i = 0; i < serial.size(); ++i) ASSERT_TRUE(identical(parallel[i], serial[i])) << i;
  }
}

TEST(ParallelMap, ErrorNamesStageAndExampleAndComesAfterTheExamplesBeforeIt) {
  for (int threads : {0, 2}) {
    auto fn = [](Example& example, uint64_t) {
      if (example.ints("x")[0] == 37) throw std::runtime_error("bad value");
    };
    auto iterator = counting(100)
                        .map(fn, {.name = "fragile", .num_threads = threads})
                        .prefetch(threads ? 2 : 0)
                        .iterator();
    Example example;
    for (int i = 0; i < 37; ++i) ASSERT_TRUE(iterator->next(example)) << i;
    EXPECT_THAT(message_of([&] { iterator->next(example); }),
                HasSubstr("bad value\n  in preprocessor 'fragile', example 37"));
  }
}

TEST(ParallelMap, MayBeDestroyedWhileItWorks) {
  for (int i = 0; i < 20; ++i) {
    auto iterator =
        counting(1000000).map([](Example&, uint64_t) {}, {.num_threads = 3}).prefetch(4).iterator();
    Example example;
    for (int k = 0; k < i; ++k) iterator->next(example);
  }
}

TEST(Prefetch, CountsElementsAndWaits) {
  auto waits = std::make_shared<WaitCounter>();
  collect(counting(10).prefetch(2, waits));
  EXPECT_EQ(waits->elements(), 10);
  EXPECT_LE(waits->waits(), 10);
  EXPECT_GE(waits->seconds(), 0);
}

TEST(Prefetch, RunsAtMostItsDepthAhead) {
  auto pulled = std::make_shared<std::atomic<int>>(0);
  auto iterator = counting(1000).map([pulled](Example&, uint64_t) { ++*pulled; }).prefetch(3).iterator();
  Example example;
  for (int i = 1; i <= 50; ++i) {
    ASSERT_TRUE(iterator->next(example));
    // One more may be in the making.
    EXPECT_LE(*pulled, i + 4);
  }
}

TEST(Repeat, EmptyDatasetForEverIsAnError) {
  EXPECT_THAT(message_of([] { collect(counting(0).repeat(std::nullopt), 1); }),
              HasSubstr("the dataset is empty"));
}

TEST(Batch, UnequalShapesNameTheFeature) {
  Dataset dataset = Dataset::in_memory({{{"a", ints({1, 2})}}, {{"a", ints({1})}}}).batch(2);
  EXPECT_THAT(message_of([&] { collect(dataset); }), HasSubstr("feature 'a' cannot be batched"));
}

TEST(PaddedBatch, PadsToTheLongest) {
  Dataset dataset = Dataset::in_memory({{{"a", ints({1, 2, 3})}}, {{"a", ints({4})}}}).padded_batch(2);
  Array batch = collect(dataset)[0].array("a");
  EXPECT_EQ(batch.shape(), (Shape{2, 3}));
  EXPECT_EQ(Json(std::vector<int32_t>(batch.values<int32_t>().begin(), batch.values<int32_t>().end())),
            Json({1, 2, 3, 4, 0, 0}));
}

TEST(Example, MissingFeatureListsWhatThereIs) {
  Example example{{"a", ints({1})}, {"b", std::string("x")}};
  EXPECT_THAT(message_of([&] { example.text("c"); }),
              HasSubstr("feature 'c' is missing; the example has {a: int32(1)"));
}

TEST(Slice, ClipsToTheArray) {
  EXPECT_TRUE(slice(ints({1, 2, 3}), 1, 9).identical(ints({2, 3})));
  EXPECT_TRUE(slice(ints({1, 2, 3}), 5, 9).identical(ints({})));
}

}  // namespace
}  // namespace t5x::seqio
