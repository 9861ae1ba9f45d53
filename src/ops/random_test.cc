// Random numbers against jax.random's own, bit for bit where nothing but integers and exact float operations
// are involved.
#include "ops/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "graph/stablehlo.h"
#include "ops/control_test_util.h"

namespace t5x::ops::control_tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const json& golden() {
  static const json values =
      json::parse(std::ifstream(std::string(T5X_SOURCE_DIR) + "/tests/golden/random/values.json"));
  return values;
}

Array key_array(const Key& key) { return Array::from<uint32_t>(key, {2}); }
Array key_42() { return key_array(golden()["key"].get<Key>()); }

std::vector<Array> with_key(const std::function<Tensors(Tensor)>& function, const Array& key = key_42()) {
  return evaluate([&](const Tensors& args) { return function(args[0]); }, {key});
}

std::vector<uint32_t> words(const Array& array) {
  const auto values = array.values<uint32_t>();
  return {values.begin(), values.end()};
}

std::vector<uint32_t> expected(const char* name) { return golden()[name].get<std::vector<uint32_t>>(); }

// Distance in units of the last place, for values of one sign.
void expect_ulps(const Array& array, const char* name, int64_t ulps) {
  const std::vector<uint32_t> want = expected(name);
  const auto got = array.values<float>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const int64_t distance =
        static_cast<int64_t>(std::bit_cast<uint32_t>(got[i])) - static_cast<int64_t>(want[i]);
    EXPECT_LE(std::abs(distance), ulps)
        << name << " " << i << ": " << got[i] << " for " << std::bit_cast<float>(want[i]);
  }
}

TEST(HostKeys, OfASeed) { EXPECT_EQ(host_prng_key(42), golden()["key"].get<Key>()); }

TEST(HostKeys, Split) {
  EXPECT_EQ(host_split(host_prng_key(42), 3), golden()["split"].get<std::vector<Key>>());
}

TEST(HostKeys, FoldIn) {
  for (const auto& [data, key] : golden()["fold_in"].items())
    EXPECT_EQ(host_fold_in(host_prng_key(42), static_cast<uint32_t>(std::stoul(data))), key.get<Key>())
        << data;
}

TEST(HostKeys, OfATrainer) {
  const json& t5x = golden()["t5x"];
  const std::vector<Key> keys = host_split(host_prng_key(t5x["seed"].get<uint64_t>()), 2);
  EXPECT_EQ(keys[0], t5x["init_rng"].get<Key>());
  EXPECT_EQ(keys[1], t5x["trainer_rng"].get<Key>());
  for (uint32_t step = 0; step < t5x["step_rngs"].size(); ++step)
    EXPECT_EQ(host_fold_in(keys[1], step), t5x["step_rngs"][step].get<Key>()) << step;
}

TEST(DeviceKeys, SplitEqualsTheHosts) {
  std::vector<uint32_t> want;
  for (const Key& key : host_split(host_prng_key(42), 3)) want.insert(want.end(), key.begin(), key.end());
  const Array keys = with_key([](Tensor key) { return Tensors{split(key, 3)}; })[0];
  EXPECT_EQ(keys.shape(), (Shape{3, 2}));
  EXPECT_EQ(words(keys), want);
}

TEST(DeviceKeys, FoldInOfConstantsEqualsTheHosts) {
  const auto results = with_key([](Tensor key) {
    return Tensors{fold_in(key, 7), fold_in(key, 0xFFFFFFFF), fold_in(fold_in(key, 7), 1), fold_in(key, 7)};
  });
  const Key key = host_prng_key(42), seven = host_fold_in(key, 7);
  EXPECT_TRUE(results[0].identical(key_array(seven)));
  EXPECT_TRUE(results[1].identical(key_array(host_fold_in(key, 0xFFFFFFFF))));
  EXPECT_TRUE(results[2].identical(key_array(host_fold_in(seven, 1))));
  EXPECT_TRUE(results[3].identical(results[0]));
}

TEST(DeviceKeys, FoldInOfAnIntegerTensorEqualsTheHosts) {
  const auto results = evaluate([](const Tensors& args) { return Tensors{fold_in(args[0], args[1])}; },
                                {key_42(), Array::scalar<int32_t>(-3)});
  EXPECT_TRUE(results[0].identical(key_array(host_fold_in(host_prng_key(42), static_cast<uint32_t>(-3)))));
}

TEST(DeviceKeys, FoldInOfAFloatThrows) {
  EXPECT_THROW(with_key([](Tensor key) {
                 return Tensors{fold_in(key, full({DType::kFloat32, {}}, 1.0))};
               }),
               ShapeError);
}

TEST(DeviceKeys, ConstantsFoldedIntoOneKeyShareOneCall) {
  const auto graph = trace({{DType::kUInt32, {2}}}, [](const Tensors& args) {
    Tensors keys;
    for (uint32_t i = 0; i < 60; ++i) keys.push_back(fold_in(args[0], 1000 * i));
    return keys;
  });
  const std::string text = to_stablehlo(*graph);
  EXPECT_EQ(text.find("func.call"), text.rfind("func.call"));
  EXPECT_THAT(text, HasSubstr("@threefry2x32_60"));
}

TEST(RandomKey, OfAnotherTypeThrows) {
  try {
    trace({{DType::kUInt32, {4}}}, [](const Tensors& args) { return Tensors{random_bits(args[0], {3})}; });
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_THAT(e.what(), HasSubstr("a random key is uint32(2), not uint32(4)"));
  }
}

TEST(RandomBits, AreJaxs) {
  const auto results = with_key([](Tensor key) {
    return Tensors{random_bits(key, {3, 4}), random_bits(key, {}), random_bits(key, {2, 1, 3})};
  });
  EXPECT_EQ(words(results[0]), expected("bits_3x4"));
  EXPECT_EQ(words(results[1]), expected("bits_scalar"));
  EXPECT_EQ(words(results[2]), expected("bits_2x1x3"));
}

// Counters of more elements than 2^32 are made of 64-bit positions, the upper half of which is the high word;
// an array of that size does not fit a test, so the text has to do.
TEST(RandomBits, MoreThan4GiElementsCountWith64BitPositions) {
  auto text = [](int64_t rows) {
    auto graph = trace({{DType::kUInt32, {2}}}, [&](const Tensors& args) {
      return Tensors{random_bits(args[0], {rows, int64_t{1} << 32})};
    });
    return to_stablehlo(*graph);
  };
  EXPECT_NE(text(3).find("xui64>"), std::string::npos);
  EXPECT_EQ(text(1).find("xui64>"), std::string::npos);
}

// Draws that are made together and alone, of one shape and of others.
TEST(RandomBits, UnderFoldedKeysAreThoseOfTheKeysAlone) {
  const auto results = with_key([](Tensor key) {
    const Tensor a = fold_in(key, 5), b = fold_in(key, 9), c = fold_in(a, 9);
    return Tensors{random_bits(b, {2, 3}), random_bits(a, {2, 3}), random_bits(a, {4}),
                   random_bits(c, {2, 3}), random_bits(b, {})};
  });
  const Key key = host_prng_key(42), a = host_fold_in(key, 5), b = host_fold_in(key, 9);
  const std::vector<Key> keys{b, a, a, host_fold_in(a, 9), b};
  for (size_t i = 0; i < keys.size(); ++i) {
    std::vector<uint32_t> want;
    for (uint32_t k = 0; k < results[i].size(); ++k) {
      const Key pair = host_threefry2x32(keys[i], {0, k});
      want.push_back(pair[0] ^ pair[1]);
    }
    EXPECT_EQ(words(results[i]), want) << "draw " << i;
  }
}

TEST(RandomBits, SmallDrawsOfOneShapeShareOneCall) {
  const auto graph = trace({{DType::kUInt32, {2}}}, [](const Tensors& args) {
    Tensors draws;
    for (uint32_t i = 0; i < 60; ++i) draws.push_back(random_bits(fold_in(args[0], i), {8, 1, 512}));
    return draws;
  });
  const std::string text = to_stablehlo(*graph);
  EXPECT_THAT(text, HasSubstr("@random_bits_of_keys_60x8x1x512"));
  EXPECT_EQ(text.find("@random_bits_8x1x512"), std::string::npos);
}

TEST(Threefry, EqualsTheHosts) {
  const auto results = evaluate(
      [](const Tensors& args) {
        const auto [a, b] = threefry2x32(args[0], args[1], args[2]);
        return Tensors{a, b};
      },
      {key_42(), Array::scalar<uint32_t>(0x243f6a88), Array::scalar<uint32_t>(0x85a308d3)});
  const Key want = host_threefry2x32(host_prng_key(42), {0x243f6a88, 0x85a308d3});
  EXPECT_EQ(results[0].item<uint32_t>(), want[0]);
  EXPECT_EQ(results[1].item<uint32_t>(), want[1]);
}

TEST(Uniform, IsJaxs) {
  const auto results = with_key([](Tensor key) {
    return Tensors{uniform(key, {16}), uniform(key, {16}, -3, 5)};
  });
  expect_ulps(results[0], "uniform_16", 0);
  expect_ulps(results[1], "uniform_16_m3_5", 0);
}

TEST(Bernoulli, IsJaxs) {
  const auto results =
      with_key([](Tensor key) { return Tensors{convert(bernoulli(key, 0.3, {32}), DType::kUInt32)}; });
  EXPECT_EQ(words(results[0]), expected("bernoulli_32_0.3"));
}

TEST(Bernoulli, GivesT5xDropoutMasks) {
  for (const json& mask : golden()["t5x"]["masks"]) {
    const Shape shape(mask["shape"].get<std::vector<int64_t>>());
    const auto results =
        with_key([&](Tensor key) { return Tensors{bernoulli(key, mask["keep_prob"].get<double>(), shape)}; },
                 key_array(mask["key"].get<Key>()));
    std::string bits;
    for (bool bit : results[0].values<bool>()) bits += bit ? '1' : '0';
    EXPECT_EQ(bits, mask["bits"].get<std::string>());
  }
}

// log and erf_inv are polynomials that another version of the compiler may contract differently.
TEST(Normal, IsJaxs) {
  expect_ulps(with_key([](Tensor key) { return Tensors{normal(key, {16})}; })[0], "normal_16", 4);
}

TEST(TruncatedNormal, IsJaxs) {
  const auto results = with_key([](Tensor key) {
    return Tensors{truncated_normal(key, -2, 2, {16}), truncated_normal(key, -1, 3, {16})};
  });
  expect_ulps(results[0], "truncated_normal_16", 4);
  expect_ulps(results[1], "truncated_normal_16_m1_3", 4);
}

TEST(Gumbel, IsJaxs) {
  expect_ulps(with_key([](Tensor key) { return Tensors{gumbel(key, {16})}; })[0], "gumbel_16", 4);
}

TEST(Categorical, IsJaxs) {
  std::vector<double> logits;
  for (int i = 0; i < 8; ++i) {
    for (double x : golden()["logits"]) logits.push_back(x);
  }
  const auto results = evaluate(
      [](const Tensors& args) { return Tensors{convert(categorical(args[0], args[1]), DType::kUInt32)}; },
      {key_42(), array(logits, {24, 4}, DType::kFloat32)});
  EXPECT_EQ(words(results[0]), expected("categorical_many"));
}

TEST(HardwareBits, DependOnTheKeyOnly) {
  auto draw = [](uint32_t seed) {
    return with_key([](Tensor key) { return Tensors{hardware_bits(key, {64})}; }, key_array({0, seed}))[0];
  };
  EXPECT_TRUE(draw(1).identical(draw(1)));
  EXPECT_FALSE(draw(1).identical(draw(2)));
}

}  // namespace
}  // namespace t5x::ops::control_tests
