// SentencePiece models. Extra ids and normalizer overrides are added to the serialised ModelProto: fields
// appended to a protobuf message extend its repeated fields and overwrite its single ones, so the model need
// not be parsed. Field numbers are those of sentencepiece_model.proto.
#include <sentencepiece_processor.h>

#include <bit>

#include "base/error.h"
#include "base/file.h"
#include "seqio/vocabulary.h"

namespace t5x::seqio {
namespace {

constexpr char kUserDefined = 4;

void append_varint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
}

void append_message(std::string& bytes, int field, const std::string& message) {
  append_varint(bytes, static_cast<uint64_t>(field) << 3 | 2);
  append_varint(bytes, message.size());
  bytes += message;
}

// SentencePiece{piece = 1, score = 2 (float, 0), type = 3}
std::string user_defined_piece(const std::string& text) {
  std::string piece;
  append_message(piece, 1, text);
  piece += std::string("\x15\0\0\0\0", 5);
  piece += {'\x18', kUserDefined};
  return piece;
}

std::string normalizer_fields(const NormalizerOverrides& overrides) {
  std::string fields;
  auto add = [&](int field, std::optional<bool> value) {
    if (!value) return;
    append_varint(fields, static_cast<uint64_t>(field) << 3);
    append_varint(fields, *value ? 1 : 0);
  };
  add(3, overrides.add_dummy_prefix);
  add(4, overrides.remove_extra_whitespaces);
  add(5, overrides.escape_whitespaces);
  return fields;
}

std::optional<int32_t> id_or_nothing(int id) { return id < 0 ? std::nullopt : std::optional<int32_t>(id); }

}  // namespace

struct SentencePieceVocabulary::Model {
  sentencepiece::SentencePieceProcessor processor;
};

SentencePieceVocabulary::SentencePieceVocabulary(std::string model_file, SentencePieceOptions options)
    : Vocabulary(options.extra_ids),
      model_file_(std::move(model_file)),
      options_(options),
      model_(std::make_unique<Model>()) {
  std::string proto = read_file(model_file_);
  for (int32_t i = 0; i < options_.extra_ids; ++i) {
    int32_t k = options_.reverse_extra_ids ? options_.extra_ids - 1 - i : i;
    append_message(proto, 1, user_defined_piece("\xe2\x96\x81<extra_id_" + std::to_string(k) + ">"));
  }
  if (std::string fields = normalizer_fields(options_.normalizer); !fields.empty())
    append_message(proto, 3, fields);
  auto status = model_->processor.LoadFromSerializedProto(proto);
  if (!status.ok())
    throw_error<DataError>("'{}' is not a SentencePiece model: {}; give the .model file that spm_train wrote",
                           model_file_, status.error_message());
}

SentencePieceVocabulary::~SentencePieceVocabulary() = default;

std::optional<int32_t> SentencePieceVocabulary::eos_id() const {
  return id_or_nothing(model_->processor.eos_id());
}
std::optional<int32_t> SentencePieceVocabulary::unk_id() const {
  return id_or_nothing(model_->processor.unk_id());
}
std::optional<int32_t> SentencePieceVocabulary::bos_id() const {
  return id_or_nothing(model_->processor.bos_id());
}
int64_t SentencePieceVocabulary::base_vocab_size() const { return model_->processor.GetPieceSize(); }
std::string SentencePieceVocabulary::piece(int32_t id) const {
  if (id < 0 || id >= base_vocab_size())
    throw_error<DataError>("id {} is outside the vocabulary of {} pieces", id, base_vocab_size());
  return model_->processor.IdToPiece(id);
}

void SentencePieceVocabulary::encode(std::string_view text, std::vector<int32_t>& ids) const {
  static_assert(std::is_same_v<int, int32_t>);
  auto encode_into = [&](std::vector<int32_t>& to) {
    auto status = model_->processor.Encode({text.data(), text.size()}, &to);
    if (!status.ok())
      throw_error<DataError>("SentencePiece cannot encode a text: {}", status.error_message());
  };
  if (ids.empty()) return encode_into(ids);
  std::vector<int32_t> more;
  encode_into(more);
  ids.insert(ids.end(), more.begin(), more.end());
}

std::string SentencePieceVocabulary::decode_ids(std::span<const int32_t> ids) const {
  std::vector<int> known;
  for (int32_t id : ids) {
    if (id < 0) throw_error<DataError>("id {} is negative, so it cannot be decoded", id);
    known.push_back(id);
  }
  std::string text;
  auto status = model_->processor.Decode(known, &text);
  if (!status.ok()) throw_error<DataError>("SentencePiece cannot decode ids: {}", status.error_message());
  return text;
}

std::string SentencePieceVocabulary::describe() const {
  auto show = [](std::optional<bool> flag) { return !flag ? "model's" : *flag ? "true" : "false"; };
  return fmt::format(
      "SentencePieceVocabulary('{}', extra_ids={}, reverse_extra_ids={}, add_dummy_prefix={}, "
      "remove_extra_whitespaces={}, escape_whitespaces={})",
      model_file_, options_.extra_ids, options_.reverse_extra_ids, show(options_.normalizer.add_dummy_prefix),
      show(options_.normalizer.remove_extra_whitespaces), show(options_.normalizer.escape_whitespaces));
}

}  // namespace t5x::seqio
