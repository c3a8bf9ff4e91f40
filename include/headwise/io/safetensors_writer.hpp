// SPDX-License-Identifier: Apache-2.0
//
// safetensors_writer: a safetensors file whose tensors are declared first and then written in any
// order, part by part, so that nothing is held in memory. The data starts at a multiple of 8. The
// file appears under its name at finish(), whole, or not at all. Equal input gives equal bytes. One
// thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/io/json_writer.hpp"
#include "headwise/io/replacing_file.hpp"
#include "headwise/io/safetensors_reader.hpp"

HEADWISE_NAMESPACE_BEGIN

struct tensor_declaration {
  std::string name;
  element_type type = element_type::f32;
  std::vector<std::uint64_t> shape;
};

class safetensors_writer {
 public:
  // Throws error(duplicate) on a name given twice, error(invalid_argument) on more than 2^62 bytes
  // in all, on a header that safetensors_reader would refuse and on names that are no UTF-8,
  // error(unreadable) where the file cannot be made.
  safetensors_writer(const std::filesystem::path& path, const text_map& metadata,
                     std::span<const tensor_declaration> tensors)
      : safetensors_writer(path, layout(path.string(), metadata, tensors)) {}

  // bytes: a part of the tensor `name` (which was declared) that starts at its byte `offset`.
  // Throws error(out_of_range) where it does not fit in. That parts do not overlap is the caller's
  // to see to.
  void write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes) {
    const auto found =
        std::lower_bound(entries_.begin(), entries_.end(), name,
                         [](const entry& e, std::string_view wanted) { return e.name < wanted; });
    if (found == entries_.end() || found->name != name)
      raise(error_code::missing, place(name), "no such tensor", "a tensor that was declared");
    if (offset > found->size || bytes.size() > found->size - offset)
      raise(error_code::out_of_range, place(name),
            std::to_string(bytes.size()) + " bytes at " + std::to_string(offset),
            "a part of its " + std::to_string(found->size) + " bytes");
    file_.write_at(found->begin + offset, bytes);
    found->written += bytes.size();
  }

  // Throws error(missing) naming a tensor of which fewer bytes were written, overlaps counted
  // twice, than it has.
  void finish() {
    for (const entry& e : entries_)
      if (e.written < e.size)
        raise(error_code::missing, place(e.name), std::to_string(e.written) + " bytes written",
              std::to_string(e.size) + " bytes");
    file_.commit();
  }

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

 private:
  struct entry {
    std::string name;
    std::uint64_t begin = 0;  // in the file
    std::uint64_t size = 0;
    std::uint64_t written = 0;
  };
  struct file_layout {
    std::string header;  // with its length in front
    std::vector<entry> entries;
    std::uint64_t size = 0;
  };

  safetensors_writer(const std::filesystem::path& path, file_layout layout)
      : file_(path, layout.size), entries_(std::move(layout.entries)) {
    file_.write_at(0, std::as_bytes(std::span(layout.header)));
    std::sort(entries_.begin(), entries_.end(),
              [](const entry& a, const entry& b) { return a.name < b.name; });
    const auto twice =
        std::adjacent_find(entries_.begin(), entries_.end(),
                           [](const entry& a, const entry& b) { return a.name == b.name; });
    if (twice != entries_.end())
      raise(error_code::duplicate, place(twice->name), "two of them", "each name once");
  }

  [[nodiscard]] static file_layout layout(const std::string& place, const text_map& metadata,
                                          std::span<const tensor_declaration> tensors) {
    file_layout result;
    std::string json = "{\"__metadata__\":{";
    for (const auto& [name, value] : metadata) {
      check_header_length(json.size() + name.size() + value.size(), place);
      if (json.back() != '{') json += ',';
      detail::append_json_text(json, name, place);
      json += ':';
      detail::append_json_text(json, value, place);
    }
    json += '}';
    for (const tensor_declaration& tensor : tensors) {
      const std::uint64_t bytes = declared_bytes(tensor, result.size, place);
      json += ',';
      append_declaration(json, tensor, result.size, result.size + bytes, place);
      result.entries.push_back({tensor.name, result.size, bytes, 0});
      result.size += bytes;
    }
    json += '}';
    json.append((8 - json.size() % 8) % 8, ' ');
    check_header_length(json.size(), place);
    result.header = length_prefix(json.size()) + json;
    for (entry& e : result.entries) e.begin += result.header.size();
    result.size += result.header.size();
    return result;
  }

  // bytes: that it has at least.
  static void check_header_length(std::uint64_t bytes, const std::string& place) {
    if (bytes > safetensors_reader::max_header_bytes)
      raise(error_code::invalid_argument, place,
            "a header of " + std::to_string(bytes) + " bytes or more",
            "at most " + std::to_string(safetensors_reader::max_header_bytes) + " bytes");
  }

  // before: bytes of the tensors in front of it.
  [[nodiscard]] static std::uint64_t declared_bytes(const tensor_declaration& tensor,
                                                    std::uint64_t before,
                                                    const std::string& place) {
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    const auto bytes = detail::tensor_bytes(element_bytes(tensor.type), tensor.shape);
    if (!bytes || *bytes > most - before)
      raise(error_code::invalid_argument, place + ": tensor " + in_quotes(tensor.name),
            detail::describe(to_string(tensor.type), tensor.shape) + " behind " +
                std::to_string(before) + " bytes",
            "at most 2^62 bytes in all");
    return *bytes;
  }

  static void append_declaration(std::string& json, const tensor_declaration& tensor,
                                 std::uint64_t begin, std::uint64_t end, const std::string& place) {
    detail::append_json_text(json, tensor.name, place);
    json += ":{\"dtype\":\"" + std::string(to_string(tensor.type)) + "\",\"shape\":[";
    for (const std::uint64_t size : tensor.shape)
      json += (json.back() == '[' ? "" : ",") + std::to_string(size);
    json += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  }

  [[nodiscard]] static std::string length_prefix(std::uint64_t length) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>((length >> (8 * i)) & 0xffU);
    return bytes;
  }

  [[nodiscard]] std::string place(std::string_view name) const {
    return path() + ": tensor " + in_quotes(name);
  }

  replacing_file file_;
  std::vector<entry> entries_;  // sorted by name
};

HEADWISE_NAMESPACE_END
