// SPDX-License-Identifier: Apache-2.0
//
// The token table of a GGUF file: what each id stands for, as bytes.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf.hpp"
#include "vocabulary/token_classes.hpp"

namespace llama_example {

using headwise_vocabulary::token_kind;

class vocabulary {
 public:
  explicit vocabulary(const gguf_file& file);  // throws headwise::error
  vocabulary(vocabulary&&) = default;
  vocabulary& operator=(vocabulary&&) = default;
  vocabulary(const vocabulary&) = delete;  // the index points into the texts
  vocabulary& operator=(const vocabulary&) = delete;
  ~vocabulary() = default;

  [[nodiscard]] std::size_t size() const noexcept { return texts_.size(); }
  [[nodiscard]] const std::string& text(std::size_t id) const noexcept { return texts_[id]; }
  [[nodiscard]] token_kind kind(std::size_t id) const noexcept { return kinds_[id]; }
  [[nodiscard]] std::optional<std::int32_t> find(std::string_view text) const noexcept;
  [[nodiscard]] std::optional<std::int32_t> unknown() const noexcept { return unknown_; }

  // As vocabulary/vocabulary_hash.hpp says.
  [[nodiscard]] std::string hash() const;

 private:
  std::vector<std::string> texts_;
  std::vector<token_kind> kinds_;
  std::unordered_map<std::string_view, std::int32_t> ids_;
  std::optional<std::int32_t> unknown_;
};

// The id under a metadata key, or none where the key is absent or holds the format's "no token",
// 2^32 - 1. Throws headwise::error where it lies outside of the vocabulary.
[[nodiscard]] std::optional<std::int32_t> special_id(const gguf_file& file, std::string_view key,
                                                     std::size_t vocabulary_size);

}  // namespace llama_example
