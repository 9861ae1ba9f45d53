#include "seqio/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"

namespace t5x::seqio {
namespace {

constexpr int32_t kByteOffset = 3;  // pad, eos, unk come first

// As Python's decode(errors="ignore"): bytes that are no UTF-8 are dropped.
std::string drop_invalid_utf8(std::string_view bytes) {
  std::string text;
  for (;;) {
    size_t bad = find_invalid_utf8(bytes);
    text += bytes.substr(0, bad);
    if (bad == std::string_view::npos) return text;
    bytes.remove_prefix(bad + 1);
  }
}

}  // namespace

std::vector<int32_t> Vocabulary::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode(text, ids);
  return ids;
}

std::string Vocabulary::decode(std::span<const int32_t> ids) const {
  std::vector<int32_t> clean(ids.begin(), ids.end());
  if (unk_id()) {
    int64_t size = base_vocab_size();
    for (int32_t& id : clean)
      if (id >= size) id = *unk_id();
  }
  if (eos_id()) {
    auto end = std::find(clean.begin(), clean.end(), *eos_id());
    if (end != clean.end()) clean.erase(end + 1, clean.end());
  }
  return decode_ids(clean);
}

void ByteVocabulary::encode(std::string_view text, std::vector<int32_t>& ids) const {
  ids.reserve(ids.size() + text.size());
  for (char c : text) ids.push_back(static_cast<uint8_t>(c) + kByteOffset);
}

std::string ByteVocabulary::decode_ids(std::span<const int32_t> ids) const {
  std::string bytes;
  for (int32_t id : ids)
    if (id >= kByteOffset && id < kByteOffset + 256) bytes.push_back(static_cast<char>(id - kByteOffset));
  return drop_invalid_utf8(bytes);
}

std::string ByteVocabulary::describe() const {
  return fmt::format("ByteVocabulary(extra_ids={})", extra_ids());
}

void PassThroughVocabulary::encode(std::string_view, std::vector<int32_t>&) const {
  throw_error<DataError>(
      "a PassThroughVocabulary cannot encode text: the feature must hold ids already, or needs another "
      "vocabulary");
}

std::string PassThroughVocabulary::decode_ids(std::span<const int32_t> ids) const {
  return fmt::format("{}", fmt::join(ids, " "));
}

std::string PassThroughVocabulary::describe() const {
  return fmt::format("PassThroughVocabulary(size={}, eos_id={})", size_,
                     eos_id_ ? std::to_string(*eos_id_) : "none");
}

}  // namespace t5x::seqio
