// SPDX-License-Identifier: Apache-2.0

#include "vocabulary.hpp"

#include <limits>

#include "vocabulary/vocabulary_hash.hpp"

namespace llama_example {
namespace {

constexpr std::string_view tokens_key = "tokenizer.ggml.tokens";
constexpr std::string_view kinds_key = "tokenizer.ggml.token_type";

std::vector<token_kind> read_kinds(const gguf_file& file, std::size_t count) {
  if (!file.has(kinds_key)) return std::vector<token_kind>(count, token_kind::normal);
  std::vector<token_kind> kinds;
  for (const std::int32_t number : file.integers(kinds_key)) {
    if (number < 1 || number > 6) {
      file.refuse(kinds_key, std::to_string(number) + " at index " + std::to_string(kinds.size()),
                  "token types from 1 to 6");
    }
    kinds.push_back(static_cast<token_kind>(number));
  }
  if (kinds.size() != count) {
    file.refuse(kinds_key, std::to_string(kinds.size()) + " types",
                "one for each of the " + std::to_string(count) + " tokens");
  }
  return kinds;
}

}  // namespace

vocabulary::vocabulary(const gguf_file& file) {
  for (const std::string_view text : file.strings(tokens_key)) texts_.emplace_back(text);
  if (texts_.empty() || texts_.size() > std::numeric_limits<std::int32_t>::max()) {
    file.refuse(tokens_key, std::to_string(texts_.size()) + " tokens", "1 to 2^31 - 1 tokens");
  }
  kinds_ = read_kinds(file, texts_.size());
  for (std::size_t id = 0; id < texts_.size(); ++id) {
    ids_.emplace(texts_[id], static_cast<std::int32_t>(id));  // the first of equals counts
  }
  unknown_ = special_id(file, "tokenizer.ggml.unknown_token_id", texts_.size());
}

std::optional<std::int32_t> vocabulary::find(std::string_view text) const noexcept {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::string vocabulary::hash() const {
  headwise_vocabulary::vocabulary_hash hash;
  for (std::size_t id = 0; id < texts_.size(); ++id)
    hash.add(static_cast<std::int32_t>(kinds_[id]), texts_[id]);
  return hash.digits();
}

std::optional<std::int32_t> special_id(const gguf_file& file, std::string_view key,
                                       std::size_t vocabulary_size) {
  constexpr std::uint64_t none = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t id = file.count(key, none, none);
  if (id == none) return std::nullopt;
  if (id >= vocabulary_size) {
    file.refuse(key, std::to_string(id), "an id below " + std::to_string(vocabulary_size));
  }
  return static_cast<std::int32_t>(id);
}

}  // namespace llama_example
