#include "checkpoint/msgpack.h"

#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"

namespace t5x::checkpoint {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kExtArray = 1, kExtComplex = 2, kExtScalar = 3;

class Decoder {
 public:
  // `base` is the offset of `bytes` in the file, for errors.
  Decoder(std::string_view bytes, size_t base, int depth, const std::string& label)
      : bytes_(bytes), base_(base), depth_(depth), label_(label) {}

  MsgpackValue decode_all() {
    MsgpackValue value = decode();
    if (position_ != bytes_.size()) fail("{} bytes follow the value", bytes_.size() - position_);
    return value;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_error<CheckpointError>(
        "'{}' is not whole msgpack: {} at byte {}; the file is damaged or of another kind", label_,
        fmt::format(format, std::forward<Args>(args)...), base_ + position_);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - position_)
      fail("{} bytes are announced where {} are left", count, bytes_.size() - position_);
    const std::string_view taken = bytes_.substr(position_, count);
    position_ += count;
    return taken;
  }

  uint64_t big_endian(size_t width) {
    uint64_t value = 0;
    for (char c : take(width)) value = (value << 8) | static_cast<uint8_t>(c);
    return value;
  }
  MsgpackValue signed_int(size_t width) {
    const unsigned shift = 64 - 8 * static_cast<unsigned>(width);
    return {std::bit_cast<int64_t>(big_endian(width) << shift) >> shift};
  }
  MsgpackValue unsigned_int(size_t width) {
    const uint64_t value = big_endian(width);
    if (value > INT64_MAX) return {value};
    return {static_cast<int64_t>(value)};
  }
  MsgpackValue string(uint64_t count) { return {std::string(take(count))}; }
  MsgpackValue binary(uint64_t count) { return {MsgpackBytes{std::string(take(count))}}; }

  void enter() {
    if (++depth_ > kMaxDepth) fail("values are nested deeper than {}", kMaxDepth);
  }

  MsgpackValue list(uint64_t count) {
    enter();
    MsgpackList items;
    for (uint64_t i = 0; i < count; ++i) items.push_back(decode());
    --depth_;
    return {std::move(items)};
  }

  MsgpackValue map(uint64_t count) {
    enter();
    MsgpackMap items;
    for (uint64_t i = 0; i < count; ++i) {
      MsgpackValue key = decode();
      auto* name = std::get_if<std::string>(&key.data);
      if (name == nullptr) fail("a map has a key that is not a string");
      std::string owned = std::move(*name);
      items.push_back({std::move(owned), decode()});
    }
    --depth_;
    return {std::move(items)};
  }

  MsgpackValue extension(uint64_t count) {
    const int type = static_cast<int8_t>(big_endian(1));
    const size_t payload_base = base_ + position_;
    const std::string_view payload = take(count);
    enter();
    Decoder inner(payload, payload_base, depth_, label_);
    MsgpackValue value;
    switch (type) {
      case kExtArray:
        value.data = inner.ndarray();
        break;
      case kExtScalar:
        value.data = NumpyScalar{inner.ndarray()};
        if (std::get<NumpyScalar>(value.data).array.size() != 1)
          fail("a NumPy scalar does not have one element");
        break;
      case kExtComplex:
        value.data = inner.complex();
        break;
      default:
        fail("extension type {} is not one of flax's (1, 2, 3)", type);
    }
    --depth_;
    return value;
  }

  std::complex<double> complex() {
    const MsgpackValue pair = decode_all();
    const MsgpackList* items = pair.as_list();
    if (items == nullptr || items->size() != 2 || !std::holds_alternative<double>((*items)[0].data) ||
        !std::holds_alternative<double>((*items)[1].data))
      fail("a complex number is not a pair of floats");
    return {std::get<double>((*items)[0].data), std::get<double>((*items)[1].data)};
  }

  Array ndarray() {
    MsgpackValue message = decode_all();
    auto* items = std::get_if<MsgpackList>(&message.data);
    if (items == nullptr || items->size() != 3) fail("an array is not [shape, dtype, bytes]");
    const MsgpackList* shape = (*items)[0].as_list();
    const std::string* dtype_name = (*items)[1].as_string();
    const auto* data = std::get_if<MsgpackBytes>(&(*items)[2].data);
    if (shape == nullptr || dtype_name == nullptr || data == nullptr)
      fail("an array is not [shape, dtype, bytes]");
    std::vector<int64_t> dims;
    for (const MsgpackValue& item : *shape) {
      const int64_t* dim = item.as_int();
      if (dim == nullptr || *dim < 0) fail("an array has a dimension that is not a count");
      dims.push_back(*dim);
    }
    std::optional<DType> dtype;
    try {
      dtype = dtype_from_name(*dtype_name);
    } catch (const ConfigError& e) {
      fail("an array has an {}", e.message());
    }
    uint64_t wanted = byte_size(*dtype);
    bool empty = false;
    for (int64_t dim : dims) {
      if (dim == 0) empty = true;
      if (dim != 0 && __builtin_mul_overflow(wanted, static_cast<uint64_t>(dim), &wanted))
        fail("the size of an array overflows");
    }
    if (wanted > INT64_MAX) fail("the size of an array overflows");
    if (empty) wanted = 0;
    Shape array_shape(std::move(dims));
    if (wanted != data->bytes.size())
      fail("an array {}{} needs {} bytes and has {}", *dtype_name, array_shape.to_string(), wanted,
           data->bytes.size());
    Array array = Array::uninitialized(*dtype, std::move(array_shape));
    if (wanted != 0) std::memcpy(array.bytes(), data->bytes.data(), wanted);
    return array;
  }

  MsgpackValue decode() {
    const auto head = static_cast<uint8_t>(take(1)[0]);
    if (head <= 0x7f) return {static_cast<int64_t>(head)};
    if (head <= 0x8f) return map(head & 0x0f);
    if (head <= 0x9f) return list(head & 0x0f);
    if (head <= 0xbf) return string(head & 0x1f);
    if (head >= 0xe0) return {static_cast<int64_t>(static_cast<int8_t>(head))};
    switch (head) {
      case 0xc0:
        return {};
      case 0xc2:
        return {false};
      case 0xc3:
        return {true};
      case 0xc4:
        return binary(big_endian(1));
      case 0xc5:
        return binary(big_endian(2));
      case 0xc6:
        return binary(big_endian(4));
      case 0xc7:
        return extension(big_endian(1));
      case 0xc8:
        return extension(big_endian(2));
      case 0xc9:
        return extension(big_endian(4));
      case 0xca:
        return {static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(big_endian(4))))};
      case 0xcb:
        return {std::bit_cast<double>(big_endian(8))};
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return unsigned_int(size_t{1} << (head - 0xcc));
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:
        return signed_int(size_t{1} << (head - 0xd0));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return extension(uint64_t{1} << (head - 0xd4));
      case 0xd9:
        return string(big_endian(1));
      case 0xda:
        return string(big_endian(2));
      case 0xdb:
        return string(big_endian(4));
      case 0xdc:
        return list(big_endian(2));
      case 0xdd:
        return list(big_endian(4));
      case 0xde:
        return map(big_endian(2));
      case 0xdf:
        return map(big_endian(4));
      default:
        fail("the byte 0x{:02x} begins no value", head);
    }
  }

  std::string_view bytes_;
  size_t base_;
  int depth_;
  const std::string& label_;
  size_t position_ = 0;
};

class Encoder {
 public:
  void encode(const MsgpackValue& value) {
    std::visit([&](const auto& held) { put(held); }, value.data);
  }
  std::string take() { return std::move(out_); }

 private:
  void byte(unsigned value) { out_.push_back(static_cast<char>(value)); }
  void big_endian(uint64_t value, size_t width) {
    for (size_t i = width; i-- > 0;) byte(static_cast<uint8_t>(value >> (8 * i)));
  }

  // The head of something with a count: the one byte form up to `fix_limit`, then 8, 16 and 32 bits. A
  // `head8` of 0 means that there is no 8 bit form.
  void head(uint64_t count, unsigned fix, uint64_t fix_limit, unsigned head8, unsigned head16) {
    if (fix != 0 && count <= fix_limit) {
      byte(fix | static_cast<unsigned>(count));
    } else if (head8 != 0 && count <= UINT8_MAX) {
      byte(head8);
      big_endian(count, 1);
    } else if (count <= UINT16_MAX) {
      byte(head16);
      big_endian(count, 2);
    } else if (count <= UINT32_MAX) {
      byte(head16 + 1);
      big_endian(count, 4);
    } else {
      throw_error<CheckpointError>("msgpack cannot hold a value of {} bytes or elements; write it as zarr",
                                   count);
    }
  }

  void put(std::monostate) { byte(0xc0); }
  void put(bool value) { byte(value ? 0xc3 : 0xc2); }
  void put(uint64_t value) {
    if (value <= 0x7f) return byte(static_cast<unsigned>(value));
    const size_t width = value <= UINT8_MAX ? 0 : value <= UINT16_MAX ? 1 : value <= UINT32_MAX ? 2 : 3;
    byte(0xcc + static_cast<unsigned>(width));
    big_endian(value, size_t{1} << width);
  }
  void put(int64_t value) {
    if (value >= 0) return put(static_cast<uint64_t>(value));
    if (value >= -32) return byte(static_cast<uint8_t>(value));
    const size_t width = value >= INT8_MIN ? 0 : value >= INT16_MIN ? 1 : value >= INT32_MIN ? 2 : 3;
    byte(0xd0 + static_cast<unsigned>(width));
    big_endian(static_cast<uint64_t>(value), size_t{1} << width);
  }
  void put(double value) {
    byte(0xcb);
    big_endian(std::bit_cast<uint64_t>(value), 8);
  }
  void put(const std::string& text) {
    head(text.size(), 0xa0, 31, 0xd9, 0xda);
    out_ += text;
  }
  void put(const MsgpackBytes& value) { put_bytes(value.bytes); }
  void put_bytes(std::string_view bytes) {
    head(bytes.size(), 0, 0, 0xc4, 0xc5);
    out_ += bytes;
  }
  void put(const MsgpackList& items) {
    head(items.size(), 0x90, 15, 0, 0xdc);
    for (const MsgpackValue& item : items) encode(item);
  }
  void put(const MsgpackMap& items) {
    head(items.size(), 0x80, 15, 0, 0xde);
    for (const auto& [key, value] : items) {
      put(key);
      encode(value);
    }
  }

  void put(const Array& array) { put_array(kExtArray, array); }
  void put(const NumpyScalar& scalar) { put_array(kExtScalar, scalar.array); }
  void put_array(int type, const Array& array) {
    Encoder inner;
    inner.head(3, 0x90, 15, 0, 0xdc);
    inner.head(array.shape().rank(), 0x90, 15, 0, 0xdc);
    for (int64_t dim : array.shape()) inner.put(dim);
    inner.put(std::string(name(array.dtype())));
    inner.put_bytes(array.as_bytes());
    put_extension(type, inner.out_);
  }
  void put(const std::complex<double>& value) {
    Encoder inner;
    inner.head(2, 0x90, 15, 0, 0xdc);
    inner.put(value.real());
    inner.put(value.imag());
    put_extension(kExtComplex, inner.out_);
  }
  void put_extension(int type, std::string_view payload) {
    if (std::has_single_bit(payload.size()) && payload.size() <= 16) {
      byte(0xd4 + static_cast<unsigned>(std::countr_zero(payload.size())));
    } else {
      head(payload.size(), 0, 0, 0xc7, 0xc8);
    }
    byte(static_cast<unsigned>(type));
    out_ += payload;
  }

  std::string out_;
};

}  // namespace

const MsgpackMap* MsgpackValue::as_map() const { return std::get_if<MsgpackMap>(&data); }
const MsgpackList* MsgpackValue::as_list() const { return std::get_if<MsgpackList>(&data); }
const std::string* MsgpackValue::as_string() const { return std::get_if<std::string>(&data); }
const int64_t* MsgpackValue::as_int() const { return std::get_if<int64_t>(&data); }

const MsgpackValue* MsgpackValue::find(std::string_view key) const {
  const MsgpackMap* map = as_map();
  if (map == nullptr) return nullptr;
  for (const auto& [name, value] : *map) {
    if (name == key) return &value;
  }
  return nullptr;
}

MsgpackValue decode_msgpack(std::string_view bytes, const std::string& label) {
  return Decoder(bytes, 0, 0, label).decode_all();
}

std::string encode_msgpack(const MsgpackValue& value) {
  Encoder encoder;
  encoder.encode(value);
  return encoder.take();
}

}  // namespace t5x::checkpoint
