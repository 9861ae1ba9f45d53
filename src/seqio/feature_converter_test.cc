#include "seqio/feature_converter.h"

#include <gmock/gmock.h>

#include "base/error.h"
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

struct Case {
  std::string key;
  FeatureConverterPtr converter;
  std::string examples = "examples";
  SequenceLength lengths = {{"inputs", 24}, {"targets", 16}};
};

std::vector<Case> cases() {
  auto encdec = [](ConverterOptions options) { return std::make_shared<EncDecFeatureConverter>(options); };
  auto lm = [](bool pack) { return std::make_shared<LMFeatureConverter>(ConverterOptions{.pack = pack}); };
  auto prefix = [](bool pack, bool only = true) {
    return std::make_shared<PrefixLMFeatureConverter>(ConverterOptions{.pack = pack}, only);
  };
  return {
      {"EncDec(pack=True)", encdec({})},
      {"EncDec(pack=True,bos_id=2)", encdec({.bos_id = 2})},
      {"EncDec(pack=False)", encdec({.pack = false})},
      {"EncDec(pack=False,bos_id=2)", encdec({.pack = false, .bos_id = 2})},
      {"PrefixLM(pack=True)", prefix(true)},
      {"PrefixLM(pack=False)", prefix(false)},
      {"PrefixLM(pack=True,loss_on_targets_only=False)", prefix(true, false)},
      {"PrefixLM(pack=False,loss_on_targets_only=False)", prefix(false, false)},
      {"Decoder(pack=True) targets only", lm(true), "examples", {{"targets", 16}}},
      {"Decoder(pack=False) targets only", lm(false), "examples", {{"targets", 16}}},
      {"EncDec(pack=True) lengths2 64/48", encdec({}), "examples", {{"inputs", 64}, {"targets", 48}}},
      {"LM(pack=True) lengths2 targets 48", lm(true), "examples", {{"targets", 48}}},
      {"EncDec(pack=True) segment id drift with empty targets (lengths 8/6)",
       encdec({}),
       "drift_examples",
       {{"inputs", 8}, {"targets", 6}}},
  };
}

TEST(FeatureConverters, OutputsAreSeqios) {
  for (const Golden& golden : goldens("converters.json")) {
    size_t tested = 0;
    for (const Case& c : cases()) {
      if (!golden.json.at("cases").contains(c.key)) continue;
      ++tested;
      Dataset examples = Dataset::in_memory(examples_of(golden.json.at(c.examples)));
      expect_examples(c.converter->convert(examples, c.lengths), golden.json.at("cases").at(c.key),
                      golden.full, c.key);
    }
    EXPECT_GE(tested, 11u);
  }
}

TEST(FeatureConverters, OutputsHaveThePromisedNamesAndLengths) {
  Golden golden = goldens("converters.json")[0];
  for (const Case& c : cases()) {
    Dataset examples = Dataset::in_memory(examples_of(golden.json.at(c.examples)));
    SequenceLength lengths;
    Example first = collect(c.converter->convert(examples, c.lengths), 1).at(0);
    for (const auto& [name, value] : first) lengths[name] = std::get<Array>(value).shape()[0];
    EXPECT_EQ(lengths, c.converter->model_feature_lengths(c.lengths)) << c.key;
  }
}

TEST(MakeAutoregressiveInputs, IsSeqios) {
  for (const Golden& golden : goldens("converters.json")) {
    for (const Json& c : golden.json.at("make_autoregressive_inputs")) {
      auto targets = c.at("targets").get<std::vector<int32_t>>();
      std::vector<int32_t> ids, out(targets.size());
      if (!c.at("sequence_id").is_null()) ids = c.at("sequence_id").get<std::vector<int32_t>>();
      make_autoregressive_inputs(targets, ids, c.at("bos_id").get<int32_t>(), out);
      EXPECT_EQ(Json(out), c.at("out"));
    }
  }
}

TEST(TrimDataset, IsSeqios) {
  for (const Golden& golden : goldens("converters.json")) {
    Dataset examples =
        Dataset::in_memory(examples_of(golden.json.at("examples"))).map([](Example& e, uint64_t) {
          e.erase("suffixes");
        });
    expect_examples(trim_dataset(examples, {{"inputs", 5}}), golden.json.at("trim_dataset(inputs:5)"),
                    golden.full, "trim");
  }
}

Dataset one(int64_t inputs, DType dtype = DType::kInt32) {
  return Dataset::in_memory({{{"inputs", Array(dtype, Shape{inputs})}, {"targets", ints({1})}}});
}
const SequenceLength kLengths{{"inputs", 4}, {"targets", 4}};

TEST(FeatureConverters, OverlongExampleNamesFeatureAndLengths) {
  EncDecFeatureConverter converter;
  EXPECT_THAT(message_of([&] { collect(converter.convert(one(5), kLengths)); }),
              HasSubstr("feature 'inputs' has length 5, but its length was given as 4"));
}

TEST(FeatureConverters, OverlongExampleIsTrimmedWithoutTheCheck) {
  EncDecFeatureConverter converter({.pack = false, .apply_length_check = false});
  EXPECT_EQ(collect(converter.convert(one(5), kLengths))[0].array("encoder_input_tokens").size(), 4);
}

TEST(FeatureConverters, WrongDtypeIsAnError) {
  EncDecFeatureConverter converter;
  EXPECT_THAT(message_of([&] { collect(converter.convert(one(2, DType::kInt64), kLengths)); }),
              HasSubstr("feature 'inputs' should be int32 of rank 1, but is int64(2)"));
}

TEST(FeatureConverters, LengthsOfOtherFeaturesAreAnError) {
  EncDecFeatureConverter converter;
  EXPECT_THROW(converter.convert(one(2), {{"targets", 4}}), ConfigError);
  EXPECT_THROW(converter.convert(one(2), {{"inputs", 4}, {"targets", 4}, {"other", 4}}), ConfigError);
}

TEST(FeatureConverters, PassthroughNeedsNoPacking) {
  EXPECT_THROW(EncDecFeatureConverter({.passthrough_features = {"id"}}), ConfigError);
}

TEST(Packing, RowsEndWithTheirGroupOfMaxLengthExamples) {
  std::vector<Example> tiny(9, Example{{"targets", ints({7})}});
  // Groups of 4, each of one full row; the ninth example is alone.
  EXPECT_EQ(collect(trim_and_pack_dataset(Dataset::in_memory(tiny), {{"targets", 4}})).size(), 3u);
}

}  // namespace
}  // namespace t5x::seqio
