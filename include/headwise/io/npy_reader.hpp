// SPDX-License-Identifier: Apache-2.0
//
// npy_reader: one array of a .npy file (versions 1, 2 and 3), mapped: little- or big-endian floats
// of 2, 4 and 8 bytes and integers of 4 and 8, in C order. Nothing is unpickled or executed.
// Opening checks the header against the file's size, O(header). Any number of threads may read one.
//
// The file: "\x93NUMPY"; 2 bytes of version; the header's length in 2 bytes (version 1) or 4;
// a header such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }; the data.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/io/element_type.hpp"
#include "headwise/io/mapped_file.hpp"
#include "headwise/io/safetensors_reader.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

struct npy_header {
  std::string descr;
  std::vector<std::uint64_t> shape;
};

// Reads the header's dictionary, the literal of Python that numpy writes and nothing beyond it.
class npy_header_parser {
 public:
  npy_header_parser(std::string_view text, std::string place)
      : text_(text), place_(std::move(place)) {}

  [[nodiscard]] npy_header parse() {
    npy_header header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = read_text("a key");
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        header.descr = read_text("descr as a text (no fields)");
      } else if (key == "fortran_order" && !order) {
        order = true;
        read_c_order();
      } else if (key == "shape" && !shape) {
        shape = true;
        header.shape = read_shape();
      } else {
        fail("the key " + in_quotes(key), "descr, fortran_order and shape, once each");
      }
      if (!accept(',') && !at('}')) fail_here("',' or '}'");
    }
    skip_space();
    if (!text_.empty()) fail_here("nothing behind '}'");
    const auto required = [&](bool there, const char* key) {
      if (!there) raise(error_code::missing, place_, "no " + std::string(key), "all three keys");
    };
    required(descr, "descr");
    required(order, "fortran_order");
    required(shape, "shape");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string got, std::string expected) const {
    raise(error_code::malformed, place_, std::move(got), std::move(expected));
  }
  [[noreturn]] void fail_here(std::string expected) const {
    constexpr std::size_t shown = 24;
    fail(text_.empty() ? "the end of the header" : in_quotes(text_.substr(0, shown)),
         std::move(expected));
  }
  void skip_space() {
    const std::size_t next = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(std::min(next, text_.size()));
  }
  [[nodiscard]] bool at(char c) {
    skip_space();
    return !text_.empty() && text_.front() == c;
  }
  bool accept(char c) {
    if (!at(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail_here("'" + std::string(1, c) + "'");
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  [[nodiscard]] std::string read_text(const char* expected) {
    const char quote = at('"') ? '"' : '\'';
    if (!accept(quote)) fail_here(expected);
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail_here("a closing quote");
    std::string result(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return result;
  }
  void read_c_order() {
    if (accept_word("True"))
      raise(error_code::unsupported, place_, "fortran_order True",
            "C order (numpy.ascontiguousarray before saving)");
    if (!accept_word("False")) fail_here("fortran_order True or False");
  }
  [[nodiscard]] std::vector<std::uint64_t> read_shape() {
    std::vector<std::uint64_t> shape;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::uint64_t size = 0;
      const auto [end, problem] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (problem != std::errc()) fail_here("a size in shape");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      accept_word("L");  // Python 2
      shape.push_back(size);
      if (!accept(',') && !at(')')) fail_here("',' or ')' in shape");
    }
    return shape;
  }

  std::string_view text_;  // what is still to be read
  std::string place_;
};

}  // namespace detail

class npy_reader {
 public:
  // Throws error naming the file and the byte, key, descr or shape.
  explicit npy_reader(const std::filesystem::path& path) : file_(path) {
    const std::span<const std::byte> header = check_preamble();
    const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
    detail::npy_header parsed = detail::npy_header_parser(text, this->path() + ": header").parse();
    read_descr(parsed.descr);
    shape_ = std::move(parsed.shape);
    data_ = file_.bytes().subspan(
        static_cast<std::size_t>(header.data() + header.size() - file_.bytes().data()));
    const auto needed = detail::tensor_bytes(element_bytes(type_), shape_);
    if (needed && *needed == data_.size()) return;
    const bool too_few = !needed || *needed > data_.size();
    raise(too_few ? error_code::truncated : error_code::malformed, this->path(),
          std::to_string(data_.size()) + " bytes of data",
          (needed ? std::to_string(*needed) : "more than 2^64") + " bytes for " +
              detail::describe(to_string(type_), shape_));
  }

  [[nodiscard]] const mapped_file& file() const noexcept { return file_; }
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] element_type type() const noexcept { return type_; }
  [[nodiscard]] bool big_endian() const noexcept { return big_endian_; }
  [[nodiscard]] std::span<const std::uint64_t> shape() const noexcept { return shape_; }
  // In the mapped file, any alignment, in the file's byte order.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return data_; }

 private:
  [[nodiscard]] std::span<const std::byte> check_preamble() const {
    constexpr std::string_view magic = "\x93NUMPY";
    const auto bytes = file_.bytes();
    const auto require_bytes = [&](std::size_t count, const char* what) {
      if (bytes.size() < count)
        raise(error_code::truncated, path(), "a file of " + std::to_string(bytes.size()) + " bytes",
              std::to_string(count) + " bytes up to the end of the " + what);
    };
    require_bytes(magic.size() + 2, "version");
    if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
      raise(error_code::malformed, path() + ": byte 0", first_bytes(magic.size()),
            "93 4e 55 4d 50 59, the first bytes of a .npy file");
    const auto version = std::to_integer<unsigned>(bytes[magic.size()]);
    if (version < 1 || version > 3)
      raise(error_code::unsupported, path() + ": byte 6", "version " + std::to_string(version),
            "version 1, 2 or 3");
    const std::size_t length_at = magic.size() + 2;
    const std::size_t begin = length_at + (version == 1 ? 2 : 4);
    require_bytes(begin, "header's length");
    const std::size_t length = version == 1 ? detail::load<std::uint16_t>(&bytes[length_at])
                                            : detail::load<std::uint32_t>(&bytes[length_at]);
    if (length > bytes.size() - begin)
      raise(error_code::truncated, path() + ": byte 8",
            "a header of " + std::to_string(length) + " bytes in a file of " +
                std::to_string(bytes.size()) + " bytes",
            "a header that ends with the file or before");
    return bytes.subspan(begin, length);
  }

  [[nodiscard]] std::string first_bytes(std::size_t count) const {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const std::byte b : file_.bytes().first(count)) {
      if (!text.empty()) text += ' ';
      text += digits[std::to_integer<unsigned>(b) / 16];
      text += digits[std::to_integer<unsigned>(b) % 16];
    }
    return text;
  }

  void read_descr(const std::string& descr) {
    struct known {
      std::string_view name;
      element_type type;
    };
    constexpr std::array<known, 5> all{{{"f2", element_type::f16},
                                        {"f4", element_type::f32},
                                        {"f8", element_type::f64},
                                        {"i4", element_type::i32},
                                        {"i8", element_type::i64}}};
    const std::string_view text = descr;
    const auto found = std::find_if(all.begin(), all.end(), [&](const known& k) {
      return text.size() == 3 && text.substr(1) == k.name;
    });
    if (found == all.end() || std::string_view("<>=").find(text.front()) == std::string_view::npos)
      raise(error_code::unsupported, path() + ": descr", in_quotes(descr),
            "f2, f4, f8, i4 or i8 with '<', '>' or '=' in front");
    type_ = found->type;
    big_endian_ = text.front() == '>';
  }

  mapped_file file_;
  element_type type_ = element_type::f32;
  bool big_endian_ = false;
  std::vector<std::uint64_t> shape_;
  std::span<const std::byte> data_;
};

HEADWISE_NAMESPACE_END
