#include "seqio/vocabulary.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "seqio/golden_test_util.h"

namespace t5x::seqio {
namespace {

using Ids = std::vector<int32_t>;

SentencePieceVocabulary uni2k(SentencePieceOptions options = {}) {
  return SentencePieceVocabulary(golden_path("uni2k.model"), options);
}

TEST(ByteVocabulary, IdIsByteAndThree) {
  ByteVocabulary vocabulary;
  EXPECT_EQ(vocabulary.encode("a\xc3\xa9"), (Ids{100, 198, 172}));
  EXPECT_EQ(vocabulary.decode(Ids{100, 198, 172}), "a\xc3\xa9");
  EXPECT_EQ(vocabulary.vocab_size(), 259);
}

TEST(ByteVocabulary, DecodeDropsExtraIdsAndInvalidUtf8) {
  ByteVocabulary vocabulary(20);
  EXPECT_EQ(vocabulary.vocab_size(), 279);
  EXPECT_EQ(vocabulary.decode(Ids{100, 270, 0, 2, 258, 101, 5000}), "ab");
}

TEST(Vocabulary, DecodeStopsAfterTheFirstEndOfSequence) {
  EXPECT_EQ(ByteVocabulary().decode(Ids{100, 1, 101, 1}), "a");
}

TEST(PassThroughVocabulary, CannotEncodeText) {
  EXPECT_THROW(PassThroughVocabulary(10).encode("a"), DataError);
  EXPECT_EQ(PassThroughVocabulary(10).decode(Ids{3, 99}), "3 99");
}

TEST(SentencePieceVocabulary, ExtraIdZeroIsTheLastId) {
  auto vocabulary = uni2k({.extra_ids = 100});
  EXPECT_EQ(vocabulary.vocab_size(), 2100);
  EXPECT_EQ(vocabulary.piece(2099), "\xe2\x96\x81<extra_id_0>");
  EXPECT_EQ(vocabulary.piece(2000), "\xe2\x96\x81<extra_id_99>");
  EXPECT_EQ(vocabulary.encode("<extra_id_1>"), (Ids{2098}));
  EXPECT_EQ(vocabulary.pad_id(), 0);
  EXPECT_EQ(vocabulary.eos_id(), 1);
  EXPECT_EQ(vocabulary.unk_id(), 2);
}

TEST(SentencePieceVocabulary, ForwardExtraIdsCountUpwards) {
  auto vocabulary = uni2k({.extra_ids = 100, .reverse_extra_ids = false});
  EXPECT_EQ(vocabulary.piece(2000), "\xe2\x96\x81<extra_id_0>");
}

TEST(SentencePieceVocabulary, TextSurvivesTheRoundTrip) {
  auto vocabulary = uni2k();
  for (const char* text : {"a small test of words", "numbers 12 and 345", "one, two; three."})
    EXPECT_EQ(vocabulary.decode(vocabulary.encode(text)), text);
}

TEST(SentencePieceVocabulary, NormalizerOverrideKeepsBlanks) {
  auto vocabulary = uni2k({.normalizer = {.add_dummy_prefix = false, .remove_extra_whitespaces = false}});
  EXPECT_NE(vocabulary.encode("two  blanks"), uni2k().encode("two  blanks"));
  EXPECT_EQ(vocabulary.decode(vocabulary.encode("two  blanks")), "two  blanks");
}

TEST(SentencePieceVocabulary, InvalidUtf8BecomesUnknown) { EXPECT_EQ(uni2k().encode("\xff").back(), 2); }

TEST(SentencePieceVocabulary, MissingModelNamesTheFile) {
  try {
    SentencePieceVocabulary("no/such.model");
    FAIL();
  } catch (const IoError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("no/such.model"));
  }
}

TEST(SentencePieceVocabulary, AFileThatIsNoModelIsAnError) {
  EXPECT_THROW(SentencePieceVocabulary(golden_path("README.md")), DataError);
}

TEST(Vocabulary, EqualityIsByConstructorArguments) {
  EXPECT_TRUE(uni2k() == uni2k());
  EXPECT_FALSE(uni2k() == uni2k({.extra_ids = 1}));
}

class FullGolden : public testing::TestWithParam<std::string> {};

std::unique_ptr<Vocabulary> full_golden_vocabulary(const std::string& name) {
  std::string models = full_golden_dir() + "/models/";
  auto piece = [&](const char* file, SentencePieceOptions options) {
    return std::make_unique<SentencePieceVocabulary>(models + file, options);
  };
  if (name == "byte") return std::make_unique<ByteVocabulary>();
  if (name == "byte_extra20") return std::make_unique<ByteVocabulary>(20);
  if (name == "uni2k_extra100") return piece("uni2k.model", {.extra_ids = 100});
  if (name == "uni2k_extra100_fwd")
    return piece("uni2k.model", {.extra_ids = 100, .reverse_extra_ids = false});
  if (name == "uni2k_norm_override")
    return piece("uni2k.model",
                 {.normalizer = {.add_dummy_prefix = false, .remove_extra_whitespaces = false}});
  if (name == "uni1k_bytefb_extra10") return piece("uni1k_bytefb.model", {.extra_ids = 10});
  return piece("bpe1k_identity.model", {});
}

// Encoding is compared with encode_tf, which pipelines use; decoding with decode, which evaluation uses.
TEST_P(FullGolden, EveryStringIsEncodedAndDecodedAsBySeqio) {
  if (full_golden_dir().empty())
    GTEST_SKIP() << "T5X_GOLDEN_DIR is not set; it names the directory of full golden files";
  fs::path dir = full_golden_dir();
  Json strings = Json::parse(read_file(dir / "strings.json")).at("strings");
  Json golden = Json::parse(read_file(dir / ("tok_" + GetParam() + ".json")));
  auto vocabulary = full_golden_vocabulary(GetParam());
  EXPECT_EQ(vocabulary->vocab_size(), golden.at("vocab_size"));
  for (const Json& c : golden.at("cases")) {
    auto text = strings[c.at("i").get<size_t>()].get<std::string>();
    Ids ids = vocabulary->encode(text);
    EXPECT_EQ(Json(ids), c.contains("ids_tf") ? c.at("ids_tf") : c.at("ids")) << text;
    Json expected = c.at("dec");
    if (expected == true) expected = text;
    if (expected.is_string()) {
      EXPECT_EQ(vocabulary->decode(c.at("ids").get<Ids>()), expected.get<std::string>()) << text;
    }
  }
}

TEST_P(FullGolden, IdsOfEveryKindAreDecodedAsBySeqio) {
  if (full_golden_dir().empty())
    GTEST_SKIP() << "T5X_GOLDEN_DIR is not set; it names the directory of full golden files";
  Json golden = Json::parse(read_file(fs::path(full_golden_dir()) / "decode.json"));
  if (!golden.contains(GetParam())) GTEST_SKIP() << "decode.json has no such vocabulary";
  auto vocabulary = full_golden_vocabulary(GetParam());
  for (const Json& c : golden.at(GetParam())) {
    auto ids = c.at("ids").get<Ids>();
    if (c.at("dec").is_string()) {
      EXPECT_EQ(vocabulary->decode(ids), c.at("dec").get<std::string>()) << c.at("ids");
    } else {
      EXPECT_THROW(vocabulary->decode(ids), DataError) << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FullGolden,
                         testing::Values("byte", "byte_extra20", "uni2k_extra100", "uni2k_extra100_fwd",
                                         "uni2k_norm_override", "uni1k_bytefb_extra10", "bpe1k_identity"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace t5x::seqio
