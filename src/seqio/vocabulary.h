// Vocabularies: text to ids and back, with seqio's rules for end-of-sequence, unknown and extra ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace t5x::seqio {

class Vocabulary {
 public:
  explicit Vocabulary(int32_t extra_ids = 0) : extra_ids_(extra_ids) {}
  virtual ~Vocabulary() = default;

  int32_t pad_id() const { return 0; }
  virtual std::optional<int32_t> eos_id() const = 0;
  virtual std::optional<int32_t> unk_id() const = 0;
  virtual std::optional<int32_t> bos_id() const { return std::nullopt; }
  // All ids, extra ids included; what the model's embedding must hold.
  virtual int64_t vocab_size() const { return base_vocab_size() + extra_ids_; }
  int32_t extra_ids() const { return extra_ids_; }

  // Appends the ids of `text`; no end-of-sequence. Invalid UTF-8 becomes U+FFFD or raw bytes, never an error.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  std::vector<int32_t> encode(std::string_view text) const;
  // Unknown ids become unk; what follows the first end-of-sequence is dropped.
  std::string decode(std::span<const int32_t> ids) const;
  // Whether features hold ids already, so that there is nothing to encode.
  virtual bool is_pass_through() const { return false; }
  // Kind and constructor arguments: two vocabularies are equal when these are.
  virtual std::string describe() const = 0;
  bool operator==(const Vocabulary& other) const { return describe() == other.describe(); }

 protected:
  // Without extra ids; decode() makes every id from here on unk.
  virtual int64_t base_vocab_size() const = 0;
  // `ids` are clean and end with the first end-of-sequence, if there is one.
  virtual std::string decode_ids(std::span<const int32_t> ids) const = 0;

 private:
  int32_t extra_ids_;
};

using VocabularyPtr = std::shared_ptr<const Vocabulary>;

// id = byte + 3 after pad 0, eos 1, unk 2; extra ids from 259 on decode to nothing.
class ByteVocabulary : public Vocabulary {
 public:
  explicit ByteVocabulary(int32_t extra_ids = 0) : Vocabulary(extra_ids) {}
  using Vocabulary::encode;
  std::optional<int32_t> eos_id() const override { return 1; }
  std::optional<int32_t> unk_id() const override { return 2; }
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  std::string describe() const override;

 protected:
  int64_t base_vocab_size() const override { return 259; }
  std::string decode_ids(std::span<const int32_t> ids) const override;
};

// Ids that are their own meaning. decode() prints them, separated by blanks.
class PassThroughVocabulary : public Vocabulary {
 public:
  explicit PassThroughVocabulary(int64_t size, std::optional<int32_t> eos_id = std::nullopt)
      : size_(size), eos_id_(eos_id) {}
  using Vocabulary::encode;
  std::optional<int32_t> eos_id() const override { return eos_id_; }
  std::optional<int32_t> unk_id() const override { return std::nullopt; }
  // Throws DataError: such a feature holds ids already.
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  bool is_pass_through() const override { return true; }
  std::string describe() const override;

 protected:
  int64_t base_vocab_size() const override { return size_; }
  std::string decode_ids(std::span<const int32_t> ids) const override;

 private:
  int64_t size_;
  std::optional<int32_t> eos_id_;
};

// Fields of a SentencePiece model's normalizer to set otherwise than the file does.
struct NormalizerOverrides {
  std::optional<bool> add_dummy_prefix = {}, remove_extra_whitespaces = {}, escape_whitespaces = {};
};

struct SentencePieceOptions {
  int32_t extra_ids = 0;
  // <extra_id_0> is the last id, as T5 has it.
  bool reverse_extra_ids = true;
  NormalizerOverrides normalizer = {};
};

// A SentencePiece model file; extra ids are user-defined pieces "▁<extra_id_i>" after the model's own.
class SentencePieceVocabulary : public Vocabulary {
 public:
  // Throws IoError when the file cannot be read, DataError when it is no model.
  explicit SentencePieceVocabulary(std::string model_file, SentencePieceOptions options = {});
  ~SentencePieceVocabulary() override;
  using Vocabulary::encode;
  std::optional<int32_t> eos_id() const override;
  std::optional<int32_t> unk_id() const override;
  std::optional<int32_t> bos_id() const override;
  int64_t vocab_size() const override { return base_vocab_size(); }
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  std::string describe() const override;
  // The piece of an id, as in the model: "▁the".
  std::string piece(int32_t id) const;

 protected:
  int64_t base_vocab_size() const override;
  std::string decode_ids(std::span<const int32_t> ids) const override;

 private:
  struct Model;
  std::string model_file_;
  SentencePieceOptions options_;
  std::unique_ptr<Model> model_;
};

}  // namespace t5x::seqio
