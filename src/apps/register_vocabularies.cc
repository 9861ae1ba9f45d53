// Vocabularies of seqio and t5.
#include "apps/register.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace t5x::apps {
namespace {

using gin::Args;
using gin::param;
using gin::Value;

// Stands for a vocabulary whose file is not here, in a dry run.
class MissingVocabulary : public seqio::Vocabulary {
 public:
  explicit MissingVocabulary(std::string file) : file_(std::move(file)) {}
  using seqio::Vocabulary::encode;
  std::optional<int32_t> eos_id() const override { return 1; }
  std::optional<int32_t> unk_id() const override { return 2; }
  void encode(std::string_view, std::vector<int32_t>&) const override { fail(); }
  std::string describe() const override { return "SentencePieceVocabulary('" + file_ + "', not read)"; }

 protected:
  int64_t base_vocab_size() const override { return 0; }
  std::string decode_ids(std::span<const int32_t>) const override { fail(); }

 private:
  [[noreturn]] void fail() const { throw_error<InternalError>("the vocabulary '{}' was not read", file_); }
  std::string file_;
};

Value vocabulary_value(const seqio::VocabularyPtr& vocabulary) { return Value::object(vocabulary); }

Value sentencepiece(const Args& args, const ContextPtr& context, const std::string& file,
                    const seqio::SentencePieceOptions& options) {
  const std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}", file, options.extra_ids, options.reverse_extra_ids,
                  static_cast<int>(options.normalizer.add_dummy_prefix.value_or(2)),
                  static_cast<int>(options.normalizer.remove_extra_whitespaces.value_or(2)),
                  static_cast<int>(options.normalizer.escape_whitespaces.value_or(2)));
  seqio::VocabularyPtr& known = context->vocabularies[key];
  if (known) return vocabulary_value(known);
  if (!is_file(file)) {
    const std::string what = fmt::format(
        "the vocabulary '{}' is not a file here{}; fetch it and set "
        "--gin.SentencePieceVocabulary.sentencepiece_model_file='\"PATH\"'",
        file, file.starts_with("gs://") ? " (buckets are not read)" : "");
    if (!context->dry_run) {
      context->vocabularies.erase(key);
      if (args.find("sentencepiece_model_file") == nullptr) throw ConfigError(what);
      args.fail("sentencepiece_model_file", what);
    }
    log_warning("{}", what);
    known = std::make_shared<const MissingVocabulary>(file);
  } else {
    known = std::make_shared<const seqio::SentencePieceVocabulary>(file, options);
  }
  return vocabulary_value(known);
}

seqio::SentencePieceOptions sentencepiece_options(const Args& args) {
  for (const char* name :
       {"modality_extra_id_n_frames", "hack_to_t5_start_tokens", "prefix_as_special_token"})
    reject(args, name, "it is for models of other modalities");
  seqio::SentencePieceOptions options;
  options.extra_ids = args.get_optional<int32_t>("extra_ids").value_or(0);
  options.reverse_extra_ids = args.get<bool>("reverse_extra_ids");
  if (!args.value("normalizer_options_override").is_none()) {
    for (const auto& [key, value] : args.get<std::map<std::string, bool>>("normalizer_options_override")) {
      if (key == "add_dummy_prefix")
        options.normalizer.add_dummy_prefix = value;
      else if (key == "remove_extra_whitespaces")
        options.normalizer.remove_extra_whitespaces = value;
      else if (key == "escape_whitespaces")
        options.normalizer.escape_whitespaces = value;
      else
        args.fail("normalizer_options_override", fmt::format("there is no option '{}'", key));
    }
  }
  return options;
}

}  // namespace

void register_vocabularies(gin::Registry& registry, const ContextPtr& context) {
  registry.add(
      {.name = "seqio.SentencePieceVocabulary",
       .params = {gin::required<std::string>("sentencepiece_model_file"),
                  param<int32_t>("extra_ids", nullptr),
                  param<std::map<std::string, bool>>("normalizer_options_override", nullptr),
                  param<bool>("reverse_extra_ids", true), param<Value>("modality_extra_id_n_frames", nullptr),
                  param<Value>("hack_to_t5_start_tokens", nullptr),
                  param<Value>("prefix_as_special_token", nullptr),
                  param<Value>("use_fast_tokenizer", false)},
       .call =
           [context](const Args& args) {
             return sentencepiece(args, context, args.get<std::string>("sentencepiece_model_file"),
                                  sentencepiece_options(args));
           },
       .help = "a SentencePiece model",
       .aliases = {"seqio.vocabularies.SentencePieceVocabulary"},
       .cheap = true});
  registry.add({.name = "t5.data.get_default_vocabulary",
                .params = {},
                .call =
                    [context](const Args& args) {
                      return sentencepiece(args, context,
                                           "gs://t5-data/vocabs/cc_all.32000/sentencepiece.model",
                                           {.extra_ids = 100});
                    },
                .help = "the vocabulary of T5 with 100 extra ids",
                .aliases = {"t5.data.utils.get_default_vocabulary"},
                .cheap = true});
  registry.add({.name = "seqio.ByteVocabulary",
                .params = {param<int32_t>("extra_ids", 0)},
                .call =
                    [](const Args& args) {
                      return vocabulary_value(
                          std::make_shared<seqio::ByteVocabulary>(args.get<int32_t>("extra_ids")));
                    },
                .help = "UTF-8 bytes",
                .aliases = {"seqio.vocabularies.ByteVocabulary"},
                .cheap = true});
  registry.add({.name = "seqio.PassThroughVocabulary",
                .params = {gin::required<int64_t>("size"), param<int32_t>("eos_id", nullptr)},
                .call =
                    [](const Args& args) {
                      return vocabulary_value(std::make_shared<seqio::PassThroughVocabulary>(
                          args.get<int64_t>("size"), args.get_optional<int32_t>("eos_id")));
                    },
                .help = "ids that are ids already",
                .aliases = {"seqio.vocabularies.PassThroughVocabulary"},
                .cheap = true});
}

}  // namespace t5x::apps
