#include "seqio/random.h"

#include "seqio/golden_test_util.h"

namespace t5x::seqio {
namespace {

float hex_float(const Json& json) { return std::strtof(json.get<std::string>().c_str(), nullptr); }

TEST(Random, StatelessOpsAreTensorFlows) {
  for (const Golden& golden : goldens("rng.json")) {
    for (const Json& c : golden.json.at("stateless")) {
      Seed seed = c.at("seed").get<Seed>();
      std::vector<float> uniform = stateless_uniform(9, seed);
      for (size_t i = 0; i < 9; ++i) EXPECT_EQ(uniform[i], hex_float(c.at("uniform_f32_9")[i]));
      std::vector<float> ranged = stateless_uniform(5, seed, 2.0794415f, 6.238325f);
      for (size_t i = 0; i < 5; ++i)
        EXPECT_EQ(ranged[i], hex_float(c.at("uniform_f32_5_minmax(2.0794415,6.238325)")[i]));
      EXPECT_EQ(Json(stateless_uniform_int32(9, seed, -7, 1001)), c.at("uniform_i32_9(-7,1001)"));
      EXPECT_EQ(Json(stateless_uniform_int64(5, seed, -7, 1000000000000)), c.at("uniform_i64_5(-7,1e12)"));
      EXPECT_EQ(Json(stateless_full_int64(5, seed)), c.at("full_int64_5"));
      EXPECT_EQ(Json(stateless_split(seed, 2)), c.at("stateless_split_2"));
      EXPECT_EQ(Json(stateless_split(seed, 6)), c.at("stateless_split_6"));
      EXPECT_EQ(Json(stateless_shuffle_order(25, seed)), c.at("seqio.stateless_shuffle(range(25))"));
    }
  }
}

TEST(Random, MultinomialPicksAreTensorFlows) {
  for (const Golden& golden : goldens("rng.json")) {
    for (const Json& c : golden.json.at("stateless")) {
      Seed seed = c.at("seed").get<Seed>();
      EXPECT_EQ(Multinomial(std::vector<double>{1, 7}).pick(seed),
                c.at("multinomial_log([1,7])")[0].get<size_t>());
      EXPECT_EQ(Multinomial(std::vector<double>{.2, .3, .5}).pick(seed),
                c.at("multinomial_log([.2,.3,.5])")[0].get<size_t>());
    }
  }
}

TEST(Random, DatasetRandomIsTensorFlows) {
  for (const Golden& golden : goldens("rng.json")) {
    for (const auto& [seed, words] : golden.json.at("dataset_random").items()) {
      WordStream stream = dataset_random(std::stoll(seed));
      for (const Json& word : words) EXPECT_EQ(stream.next(), word.get<uint32_t>()) << seed;
    }
  }
}

TEST(Random, WordStreamContinuesAfterSeek) {
  WordStream stream = dataset_random(7);
  std::vector<uint32_t> words;
  for (int i = 0; i < 10; ++i) words.push_back(stream.next());
  for (uint64_t at = 0; at < 10; ++at) {
    stream.seek(at);
    EXPECT_EQ(stream.next(), words[at]);
  }
}

TEST(Random, MapSeedManagerHandsOutSeqiosSeeds) {
  for (const Golden& golden : goldens("rng.json")) {
    for (const Json& c : golden.json.at("map_seed_manager")) {
      SeedManager manager(c.at("initial_seed").get<int64_t>());
      SeedStreams first = manager.streams(1), second = manager.streams(3), third = manager.streams(1);
      const Json &one = c.at("first op (num_seeds=1)"), &two = c.at("second op (num_seeds=3)");
      for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(Json(first.get(i)), one[i]);
      for (size_t i = 0; i < two.size(); ++i)
        for (size_t k = 0; k < 3; ++k) EXPECT_EQ(Json(second.get(i, k)), two[i][k]);
      EXPECT_EQ(Json(third.get(0)), c.at("third op (num_seeds=1)")[0]);
    }
  }
}

}  // namespace
}  // namespace t5x::seqio
