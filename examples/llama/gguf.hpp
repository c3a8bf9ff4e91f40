// SPDX-License-Identifier: Apache-2.0
//
// A GGUF file (version 2 or 3, little-endian), read where it lies.
//
// The file is mapped, not copied: names, strings, arrays and tensors are views into the map and
// live as long as the gguf_file. Opening walks the whole header once and checks every count, length
// and offset against the bytes that are there, so a hostile file costs at most memory in proportion
// to its own size. Whatever is wrong ends in a headwise::error that names the file, the byte or
// the key, what was found and what was expected.
//
// Threads: immutable once built; any number of threads may read.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "dequantize.hpp"

#include "headwise/io/mapped_file.hpp"

namespace llama_example {

struct gguf_tensor {
  std::string_view name;
  tensor_type type;
  std::size_t columns;               // elements of a row: GGUF's first, fastest dimension
  std::size_t rows;                  // product of the other dimensions
  std::span<const std::byte> bytes;  // [rows, columns] in the type's blocks
};

enum class metadata_type : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};

struct metadata_array {
  metadata_type type;
  std::size_t count;
  std::span<const std::byte> bytes;  // the elements as the file encodes them
};

using metadata_value =
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, metadata_array>;

class gguf_file {
 public:
  explicit gguf_file(const std::filesystem::path& path);

  [[nodiscard]] const std::string& path() const noexcept { return map_.path(); }
  [[nodiscard]] const std::vector<gguf_tensor>& tensors() const noexcept { return tensors_; }
  [[nodiscard]] const gguf_tensor* find_tensor(std::string_view name) const noexcept;
  [[nodiscard]] bool has(std::string_view key) const noexcept { return find(key) != nullptr; }

  // Scalars. Absent keys give the default, or an error where there is none. A value of another
  // type, a negative count or one over `most` is an error in either case.
  [[nodiscard]] std::uint64_t count(std::string_view key, std::uint64_t most,
                                    std::optional<std::uint64_t> otherwise = {}) const;
  [[nodiscard]] double number(std::string_view key, std::optional<double> otherwise = {}) const;
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;
  [[nodiscard]] std::string_view text(std::string_view key,
                                      std::optional<std::string_view> otherwise = {}) const;

  // Whole arrays; the key must be there.
  [[nodiscard]] std::vector<std::string_view> strings(std::string_view key) const;
  [[nodiscard]] std::vector<float> floats(std::string_view key) const;
  [[nodiscard]] std::vector<std::int32_t> integers(std::string_view key) const;

  [[noreturn]] void refuse(std::string_view key, std::string got, std::string expected) const;

 private:
  class cursor;

  [[nodiscard]] const metadata_value* find(std::string_view key) const noexcept;
  [[nodiscard]] const metadata_array& array(std::string_view key, metadata_type type) const;
  void read_metadata(cursor& in, std::uint64_t entries);
  std::uint64_t read_tensor(cursor& in);
  void read_tensors(cursor& in, std::uint64_t entries);

  headwise::mapped_file map_;
  std::unordered_map<std::string_view, metadata_value> metadata_;
  std::unordered_map<std::string_view, std::size_t> tensor_index_;
  std::vector<gguf_tensor> tensors_;
};

}  // namespace llama_example
