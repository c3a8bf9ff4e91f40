// SPDX-License-Identifier: Apache-2.0
//
// safetensors_reader: the tensors of a safetensors file, mapped. Opening parses and checks the
// header, O(header): sizes against shapes, no overlap, no hole, nothing behind the last tensor, so
// that every span it hands out lies in the file. Tensors start at any alignment. No allocation is
// larger than a multiple of what the file really holds. Any number of threads may read one.
//
// The file: 8 bytes little-endian n; n bytes of JSON {"name": {"dtype", "shape", "data_offsets"},
// "__metadata__": {text: text}}; the data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/io/element_type.hpp"
#include "headwise/io/mapped_file.hpp"
#include "headwise/io/strict_json.hpp"

HEADWISE_NAMESPACE_BEGIN

using text_map = std::map<std::string, std::string, std::less<>>;

namespace detail {

// "F32 [2, 3]"
[[nodiscard]] inline std::string describe(std::string_view type,
                                          std::span<const std::uint64_t> shape) {
  std::string text(type);
  text += " [";
  for (const std::uint64_t size : shape)
    text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  return text + "]";
}

// bytes * product(shape), or nullopt where that needs more than 64 bits.
[[nodiscard]] inline std::optional<std::uint64_t> tensor_bytes(
    std::uint64_t bytes, std::span<const std::uint64_t> shape) noexcept {
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  for (const std::uint64_t size : shape) {
    if (bytes > std::numeric_limits<std::uint64_t>::max() / size) return std::nullopt;
    bytes *= size;
  }
  return bytes;
}

}  // namespace detail

class safetensors_reader {
 public:
  struct tensor {
    std::string name;
    element_type type = element_type::f32;
    std::vector<std::uint64_t> shape;
    std::span<const std::byte> bytes;  // in the mapped file, any alignment
  };

  // The most bytes of header that the format allows.
  static constexpr std::uint64_t max_header_bytes = 100'000'000;

  // Throws error naming the file and the byte, tensor or field.
  explicit safetensors_reader(const std::filesystem::path& path) : file_(path) {
    const std::uint64_t header_bytes = check_header_length();
    const auto header = file_.bytes().subspan(length_bytes, header_bytes);
    const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
    if (text.front() != '{')
      raise(error_code::malformed, file_.path() + ": byte 8", in_quotes(text.substr(0, 1)),
            "a header that begins with '{'");
    const detail::json_value json = detail::parse_json(text, file_.path());
    data_ = file_.bytes().subspan(length_bytes + header_bytes);
    detail::json_cursor(json, file_.path())
        .for_each_member([&](const std::string& name, const detail::json_cursor& value) {
          if (name == "__metadata__")
            read_metadata(value);
          else
            read_tensor(name, value);
        });
    check_layout();
    std::sort(tensors_.begin(), tensors_.end(),
              [](const tensor& a, const tensor& b) { return a.name < b.name; });
  }

  [[nodiscard]] const mapped_file& file() const noexcept { return file_; }
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] const text_map& metadata() const noexcept { return metadata_; }
  // Sorted by name.
  [[nodiscard]] std::span<const tensor> tensors() const noexcept { return tensors_; }
  // nullptr: not there. O(log tensors).
  [[nodiscard]] const tensor* find(std::string_view name) const noexcept {
    const auto found =
        std::lower_bound(tensors_.begin(), tensors_.end(), name,
                         [](const tensor& t, std::string_view wanted) { return t.name < wanted; });
    return found == tensors_.end() || found->name != name ? nullptr : &*found;
  }
  // "file: tensor 'name'"
  [[nodiscard]] std::string place(std::string_view name) const {
    return path() + ": tensor " + in_quotes(name);
  }

 private:
  static constexpr std::size_t length_bytes = sizeof(std::uint64_t);

  [[nodiscard]] std::uint64_t check_header_length() const {
    const std::size_t size = file_.size();
    if (size < length_bytes)
      raise(error_code::truncated, path(), "a file of " + std::to_string(size) + " bytes",
            "at least 8 bytes with the header's length");
    const auto claimed = detail::load<std::uint64_t>(file_.bytes().data());
    const std::string got = "a header of " + std::to_string(claimed) + " bytes in a file of " +
                            std::to_string(size) + " bytes";
    if (claimed == 0 || claimed > max_header_bytes)
      raise(error_code::malformed, path() + ": byte 0", got,
            "a header of 2 to " + std::to_string(max_header_bytes) + " bytes");
    if (claimed > size - length_bytes)
      raise(error_code::truncated, path() + ": byte 0", got,
            "a header that ends with the file or before");
    return claimed;
  }

  void read_metadata(const detail::json_cursor& metadata) {
    metadata.for_each_member([&](const std::string& name, const detail::json_cursor& value) {
      metadata_.emplace(name, value.text());
    });
  }

  void read_tensor(const std::string& name, const detail::json_cursor& json) {
    json.require_known({"dtype", "shape", "data_offsets"});
    tensor result;
    result.name = name;
    const std::string& dtype = json.at("dtype").text();
    const auto type = element_type_named(dtype);
    if (!type)
      raise(
          error_code::unsupported, json.at("dtype").place(), in_quotes(dtype),
          "a dtype of safetensors: BOOL, U8, I8, F8_E4M3, F8_E5M2, I16, U16, F16, BF16, I32, U32, "
          "F32, I64, U64 or F64");
    result.type = *type;
    const detail::json_cursor shape = json.at("shape");
    for (std::size_t i = 0; i < shape.size(); ++i)
      result.shape.push_back(shape[i].integer<std::uint64_t>(0, max_number));
    result.bytes = read_range(result, json.at("data_offsets"));
    tensors_.push_back(std::move(result));
  }

  [[nodiscard]] std::span<const std::byte> read_range(const tensor& of,
                                                      const detail::json_cursor& offsets) const {
    if (offsets.size() != 2) offsets.fail(error_code::malformed, "[begin, end]");
    const auto begin = offsets[0].integer<std::uint64_t>(0, max_number);
    const auto end = offsets[1].integer<std::uint64_t>(0, max_number);
    const std::string got = "[" + std::to_string(begin) + ", " + std::to_string(end) + "]";
    if (begin > end) raise(error_code::malformed, offsets.place(), got, "begin <= end");
    const auto needed = detail::tensor_bytes(element_bytes(of.type), of.shape);
    const std::string kind = detail::describe(to_string(of.type), of.shape);
    if (!needed || *needed != end - begin)
      raise(error_code::shape_mismatch, offsets.place(),
            got + ", " + std::to_string(end - begin) + " bytes",
            (needed ? std::to_string(*needed) : "more than 2^64") + " bytes for " + kind);
    if (end > data_.size())
      raise(error_code::truncated, offsets.place(),
            "a file with " + std::to_string(data_.size()) + " bytes of data",
            std::to_string(end) + " bytes for " + kind + " at " + got);
    return data_.subspan(begin, end - begin);
  }

  // Every byte of data belongs to exactly one tensor.
  void check_layout() const {
    std::vector<const tensor*> by_offset;
    by_offset.reserve(tensors_.size());
    for (const tensor& t : tensors_) by_offset.push_back(&t);
    std::sort(by_offset.begin(), by_offset.end(), [&](const tensor* a, const tensor* b) {
      return std::pair(offset(*a), a->bytes.size()) < std::pair(offset(*b), b->bytes.size());
    });
    std::size_t end = 0;
    const tensor* before = nullptr;
    for (const tensor* t : by_offset) {
      if (offset(*t) < end)
        raise(error_code::malformed, place(t->name),
              "data from byte " + std::to_string(offset(*t)) + ", inside of tensor " +
                  in_quotes(before->name),
              "data from byte " + std::to_string(end));
      require_end(end, offset(*t));
      end += t->bytes.size();
      before = t;
    }
    require_end(end, data_.size());
  }
  void require_end(std::size_t end, std::size_t next) const {
    if (end == next) return;
    raise(error_code::malformed, path() + ": data byte " + std::to_string(end),
          std::to_string(next - end) + " bytes that belong to no tensor", "tensors without a gap");
  }
  [[nodiscard]] std::size_t offset(const tensor& t) const noexcept {
    return static_cast<std::size_t>(t.bytes.data() - data_.data());
  }

  // Offsets and sizes are taken as what they are or refused; a sum of two cannot wrap.
  static constexpr std::uint64_t max_number = std::numeric_limits<std::int64_t>::max();

  mapped_file file_;
  std::span<const std::byte> data_;
  text_map metadata_;
  std::vector<tensor> tensors_;
};

HEADWISE_NAMESPACE_END
