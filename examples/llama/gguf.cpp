// SPDX-License-Identifier: Apache-2.0

#include "gguf.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "headwise/core/error.hpp"
#include "headwise/core/printable.hpp"

namespace llama_example {

using headwise::error_code;
using headwise::raise;

namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place, little-endian");

constexpr std::uint32_t magic = 0x46554747;  // "GGUF"
constexpr std::uint32_t most_dimensions = 4;
constexpr std::uint64_t default_alignment = 32;
constexpr std::uint64_t most_alignment = 1U << 20U;

template <class T>
T load(const std::byte* source) noexcept {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

// Bytes of one element; 0 for the types without a fixed size and for numbers that are no type.
std::size_t element_bytes(metadata_type type) noexcept {
  switch (type) {
    case metadata_type::u8:
    case metadata_type::i8:
    case metadata_type::boolean:
      return 1;
    case metadata_type::u16:
    case metadata_type::i16:
      return 2;
    case metadata_type::u32:
    case metadata_type::i32:
    case metadata_type::f32:
      return 4;
    case metadata_type::u64:
    case metadata_type::i64:
    case metadata_type::f64:
      return 8;
    case metadata_type::string:
    case metadata_type::array:
      return 0;
  }
  return 0;
}

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) noexcept {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

std::string type_number(metadata_type type) {
  return "value type " + std::to_string(static_cast<std::uint32_t>(type));
}

}  // namespace

// Walks the header. Everything that is taken was first counted against what is left.
class gguf_file::cursor {
 public:
  cursor(const std::string& path, std::span<const std::byte> bytes) : path_(path), bytes_(bytes) {}

  [[nodiscard]] std::size_t position() const noexcept { return position_; }

  [[nodiscard]] std::string place(std::size_t position) const {
    return path_ + ", byte " + std::to_string(position);
  }

  [[noreturn]] void refuse(error_code code, std::string got, std::string expected) const {
    raise(code, place(position_), std::move(got), std::move(expected));
  }

  std::span<const std::byte> take(std::uint64_t count, const char* what) {
    const std::size_t left = bytes_.size() - position_;
    if (count > left) {
      refuse(error_code::truncated, std::to_string(left) + " bytes left in the file",
             std::to_string(count) + " bytes of " + what);
    }
    const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += taken.size();
    return taken;
  }

  template <class T>
  T read(const char* what) {
    return load<T>(take(sizeof(T), what).data());
  }

  std::string_view string(const char* what) {
    const auto length = read<std::uint64_t>(what);
    const auto text = take(length, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  metadata_array array() {
    const auto type = static_cast<metadata_type>(read<std::uint32_t>("an array's element type"));
    const auto count = read<std::uint64_t>("an array's length");
    const std::size_t begin = position_;
    if (type == metadata_type::string) {
      for (std::uint64_t i = 0; i < count; ++i) string("a string of an array");
    } else if (const std::size_t size = element_bytes(type); size != 0) {
      if (count > (bytes_.size() - position_) / size) {
        refuse(error_code::truncated, "an array of " + std::to_string(count) + " elements",
               "at most " + std::to_string((bytes_.size() - position_) / size) +
                   ", which is what the file has left");
      }
      take(count * size, "an array");
    } else {
      refuse(error_code::unsupported, "an array with element " + type_number(type),
             "an array of scalars or strings");
    }
    return {type, static_cast<std::size_t>(count), bytes_.subspan(begin, position_ - begin)};
  }

  metadata_value value() {
    const auto type = static_cast<metadata_type>(read<std::uint32_t>("a value type"));
    switch (type) {
      case metadata_type::u8:
        return std::uint64_t{read<std::uint8_t>("a value")};
      case metadata_type::u16:
        return std::uint64_t{read<std::uint16_t>("a value")};
      case metadata_type::u32:
        return std::uint64_t{read<std::uint32_t>("a value")};
      case metadata_type::u64:
        return read<std::uint64_t>("a value");
      case metadata_type::i8:
        return std::int64_t{read<std::int8_t>("a value")};
      case metadata_type::i16:
        return std::int64_t{read<std::int16_t>("a value")};
      case metadata_type::i32:
        return std::int64_t{read<std::int32_t>("a value")};
      case metadata_type::i64:
        return read<std::int64_t>("a value");
      case metadata_type::f32:
        return double{read<float>("a value")};
      case metadata_type::f64:
        return read<double>("a value");
      case metadata_type::boolean:
        return read<std::uint8_t>("a value") != 0;
      case metadata_type::string:
        return string("a string value");
      case metadata_type::array:
        return array();
    }
    refuse(error_code::malformed, type_number(type), "a value type from 0 to 12");
  }

 private:
  const std::string& path_;
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

gguf_file::gguf_file(const std::filesystem::path& path) : map_(path) {
  cursor in(map_.path(), map_.bytes());
  if (const auto found = in.read<std::uint32_t>("the magic number"); found != magic) {
    raise(error_code::malformed, in.place(0), "magic number " + std::to_string(found), "\"GGUF\"");
  }
  const auto version = in.read<std::uint32_t>("the version");
  if (version != 2 && version != 3) {
    raise(error_code::unsupported, in.place(4), "version " + std::to_string(version),
          "version 2 or 3, little-endian");
  }
  const auto tensors = in.read<std::uint64_t>("the tensor count");
  const auto entries = in.read<std::uint64_t>("the metadata count");
  read_metadata(in, entries);
  read_tensors(in, tensors);
}

void gguf_file::read_metadata(cursor& in, std::uint64_t entries) {
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::size_t begin = in.position();
    const std::string_view key = in.string("a metadata key");
    if (!metadata_.emplace(key, in.value()).second) {
      raise(error_code::duplicate, in.place(begin),
            "key " + headwise::in_quotes(key) + " a second time", "each key once");
    }
  }
}

namespace {

struct tensor_shape {
  std::uint64_t columns = 0;
  std::optional<std::uint64_t> rows = 1;  // empty past 2^64
};

// Bytes of a tensor; empty where rows are not whole blocks, and for nothing or more than 2^64.
std::optional<std::uint64_t> encoded_bytes(const tensor_shape& shape, const block_format& format) {
  if (!shape.rows || shape.columns % format.elements != 0) return std::nullopt;
  const auto blocks = product(*shape.rows, shape.columns / format.elements);
  const auto bytes = blocks ? product(*blocks, format.bytes) : std::nullopt;
  return bytes == std::uint64_t{0} ? std::nullopt : bytes;
}

}  // namespace

// One entry of the tensor table. Its bytes get their size here and their place in place_tensors.
std::uint64_t gguf_file::read_tensor(cursor& in) {
  const std::size_t begin = in.position();
  const std::string_view name = in.string("a tensor name");
  const std::string label = "tensor " + headwise::in_quotes(name);
  const auto rank = in.read<std::uint32_t>("a tensor's rank");
  if (rank == 0 || rank > most_dimensions) {
    raise(error_code::malformed, in.place(begin), label + " of rank " + std::to_string(rank),
          "a rank from 1 to 4");
  }
  tensor_shape shape{in.read<std::uint64_t>("a dimension")};
  for (std::uint32_t d = 1; d < rank; ++d) {
    const auto dimension = in.read<std::uint64_t>("a dimension");
    if (shape.rows) shape.rows = product(*shape.rows, dimension);
  }
  const auto type = static_cast<tensor_type>(in.read<std::uint32_t>("a tensor's type"));
  const auto format = block_format_of(type);
  if (!format) {
    raise(error_code::unsupported, in.place(begin),
          label + " of type " + std::to_string(static_cast<std::uint32_t>(type)),
          "one of " + known_tensor_types());
  }
  const auto size = encoded_bytes(shape, *format);
  if (!size || *size > map_.bytes().size()) {
    raise(error_code::malformed, in.place(begin),
          label + " with rows of " + std::to_string(shape.columns) + " elements and " +
              (size ? std::to_string(*size) : std::string("an impossible number of")) + " bytes",
          "rows in whole blocks of " + std::to_string(format->elements) + ", within the " +
              std::to_string(map_.bytes().size()) + " bytes of the file");
  }
  if (!tensor_index_.emplace(name, tensors_.size()).second) {
    raise(error_code::duplicate, in.place(begin), label + " a second time", "each tensor once");
  }
  tensors_.push_back({name, type, static_cast<std::size_t>(shape.columns),
                      static_cast<std::size_t>(*shape.rows),
                      map_.bytes().first(static_cast<std::size_t>(*size))});
  return in.read<std::uint64_t>("a tensor's offset");
}

void gguf_file::read_tensors(cursor& in, std::uint64_t entries) {
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i < entries; ++i) offsets.push_back(read_tensor(in));

  const std::uint64_t alignment = count("general.alignment", most_alignment, default_alignment);
  if (!std::has_single_bit(alignment)) {
    refuse("general.alignment", std::to_string(alignment), "a power of two");
  }
  const std::uint64_t data = (in.position() + alignment - 1) / alignment * alignment;
  const std::uint64_t end = map_.bytes().size();
  std::uint64_t total = 0;  // cannot wrap: each part fits the file
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    gguf_tensor& tensor = tensors_[i];
    const std::uint64_t size = tensor.bytes.size();
    if (offsets[i] % alignment != 0 || data > end || offsets[i] > end - data ||
        size > end - data - offsets[i]) {
      raise(error_code::truncated, path() + ", tensor " + headwise::in_quotes(tensor.name),
            std::to_string(size) + " bytes at offset " + std::to_string(offsets[i]),
            "an offset in steps of " + std::to_string(alignment) + " that ends within the " +
                std::to_string(end > data ? end - data : 0) + " bytes of tensor data");
    }
    total += size;
    if (total > end - data) {
      raise(error_code::malformed, path() + ", tensor " + headwise::in_quotes(tensor.name),
            "tensors that overlap", "at most " + std::to_string(end - data) + " bytes in all");
    }
    tensor.bytes = map_.bytes().subspan(static_cast<std::size_t>(data + offsets[i]),
                                        static_cast<std::size_t>(size));
  }
}

const gguf_tensor* gguf_file::find_tensor(std::string_view name) const noexcept {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

const metadata_value* gguf_file::find(std::string_view key) const noexcept {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

void gguf_file::refuse(std::string_view key, std::string got, std::string expected) const {
  const auto code = has(key) ? error_code::malformed : error_code::missing;
  raise(code, path() + ", key " + headwise::in_quotes(key), std::move(got), std::move(expected));
}

std::uint64_t gguf_file::count(std::string_view key, std::uint64_t most,
                               std::optional<std::uint64_t> otherwise) const {
  const metadata_value* value = find(key);
  if (value == nullptr) {
    if (otherwise) return *otherwise;
    refuse(key, "no such key", "a whole number");
  }
  std::optional<std::uint64_t> result;
  if (const auto* plain = std::get_if<std::uint64_t>(value)) result = *plain;
  if (const auto* signed_value = std::get_if<std::int64_t>(value);
      signed_value && *signed_value >= 0) {
    result = static_cast<std::uint64_t>(*signed_value);
  }
  if (!result || *result > most) {
    refuse(key, result ? std::to_string(*result) : "a negative number or another type",
           "a whole number up to " + std::to_string(most));
  }
  return *result;
}

double gguf_file::number(std::string_view key, std::optional<double> otherwise) const {
  const metadata_value* value = find(key);
  if (value == nullptr && otherwise) return *otherwise;
  const double* result = value == nullptr ? nullptr : std::get_if<double>(value);
  if (result == nullptr || !std::isfinite(*result)) {
    refuse(key, value == nullptr ? "no such key" : "another type or no finite value",
           "a finite floating-point number");
  }
  return *result;
}

bool gguf_file::flag(std::string_view key, bool otherwise) const {
  const metadata_value* value = find(key);
  if (value == nullptr) return otherwise;
  const bool* result = std::get_if<bool>(value);
  if (result == nullptr) refuse(key, "another type", "true or false");
  return *result;
}

std::string_view gguf_file::text(std::string_view key,
                                 std::optional<std::string_view> otherwise) const {
  const metadata_value* value = find(key);
  if (value == nullptr && otherwise) return *otherwise;
  const std::string_view* result =
      value == nullptr ? nullptr : std::get_if<std::string_view>(value);
  if (result == nullptr) refuse(key, value == nullptr ? "no such key" : "another type", "a string");
  return *result;
}

const metadata_array& gguf_file::array(std::string_view key, metadata_type type) const {
  const metadata_value* value = find(key);
  if (value == nullptr) refuse(key, "no such key", "an array");
  const metadata_array* result = std::get_if<metadata_array>(value);
  if (result == nullptr || result->type != type) {
    refuse(key, result == nullptr ? "no array" : "an array of " + type_number(result->type),
           "an array of " + type_number(type));
  }
  return *result;
}

std::vector<std::string_view> gguf_file::strings(std::string_view key) const {
  const metadata_array& found = array(key, metadata_type::string);
  cursor in(path(), found.bytes);
  std::vector<std::string_view> result(found.count);
  for (std::string_view& text : result) text = in.string("a string of an array");
  return result;
}

std::vector<float> gguf_file::floats(std::string_view key) const {
  const metadata_array& found = array(key, metadata_type::f32);
  std::vector<float> result(found.count);
  if (!result.empty()) std::memcpy(result.data(), found.bytes.data(), found.bytes.size());
  return result;
}

std::vector<std::int32_t> gguf_file::integers(std::string_view key) const {
  const metadata_array& found = array(key, metadata_type::i32);
  std::vector<std::int32_t> result(found.count);
  if (!result.empty()) std::memcpy(result.data(), found.bytes.data(), found.bytes.size());
  return result;
}

}  // namespace llama_example
