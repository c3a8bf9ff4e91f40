// SPDX-License-Identifier: Apache-2.0
//
// The vocabulary types: position, token, lifetime, model shape, head. All are small values.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "headwise/core/error.hpp"

HEADWISE_NAMESPACE_BEGIN

// Absolute index of a token in its sequence, 0-based, never renumbered by eviction.
using position = std::uint32_t;
// A number of tokens: lifetimes, windows, lengths.
using token_count = std::uint32_t;
// The lifetime of a token that no later query loses.
inline constexpr token_count forever = std::numeric_limits<token_count>::max();
// A sequence holds at most this many tokens, so that every position has a successor.
inline constexpr token_count max_length = std::numeric_limits<token_count>::max() - 1;

// The one predicate of this library: does the query at `query` see the token at `pos`?
[[nodiscard]] constexpr bool sees(position query, position pos, token_count lifetime) noexcept {
  return pos <= query && query - pos < lifetime;
}

// The oldest position that a query sees.
[[nodiscard]] constexpr position oldest_seen(position query, token_count lifetime) noexcept {
  return lifetime > query ? 0 : query - lifetime + 1;
}

// The order in a ranked pool, total over distinct positions: what drew less attention ranks below;
// of equals the later position does. A score that is not a number ranks below any number.
[[nodiscard]] constexpr bool ranks_below(double a_score, position a, double b_score,
                                         position b) noexcept {
  const bool a_is_nan = a_score != a_score;
  const bool b_is_nan = b_score != b_score;
  if (a_is_nan != b_is_nan) return a_is_nan;
  if (a_is_nan || a_score == b_score) return a > b;
  return a_score < b_score;
}

// What a token is, as a bit set. User classes (image, audio, tool output ...) from
// first_user_class.
enum class token_classes : std::uint32_t { none = 0, sink = 1, special = 2, punctuation = 4 };
inline constexpr std::uint32_t first_user_class = std::uint32_t{1} << 16;

[[nodiscard]] constexpr token_classes operator|(token_classes a, token_classes b) noexcept {
  return static_cast<token_classes>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
[[nodiscard]] constexpr token_classes operator&(token_classes a, token_classes b) noexcept {
  return static_cast<token_classes>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr token_classes& operator|=(token_classes& a, token_classes b) noexcept {
  return a = a | b;
}
[[nodiscard]] constexpr bool any(token_classes classes) noexcept {
  return classes != token_classes::none;
}

// An id that is not known. Policies that name ids refuse such tokens.
inline constexpr std::int32_t no_token_id = -1;

struct token {
  position pos = 0;
  std::int32_t id = no_token_id;
  token_classes classes = token_classes::none;
  friend constexpr bool operator==(const token&, const token&) = default;
};

// The part of a model that a cache depends on. group = the query heads that read one KV head.
struct model_shape {
  std::uint32_t layers = 0;
  std::uint32_t query_heads = 0;  // per layer
  std::uint32_t kv_heads = 0;     // per layer; divides query_heads
  std::uint32_t head_dim = 0;     // elements of one key or value row

  [[nodiscard]] constexpr std::uint32_t group_size() const noexcept {
    return query_heads / kv_heads;
  }
  [[nodiscard]] constexpr std::size_t heads() const noexcept {
    return std::size_t{layers} * kv_heads;
  }
  friend constexpr bool operator==(const model_shape&, const model_shape&) = default;
};

// Throws error(invalid_argument) naming the fields and their values.
inline void validate(const model_shape& shape, const std::string& place = "model_shape") {
  const auto positive = [&](const char* field, std::uint32_t value) {
    if (value == 0) raise(error_code::invalid_argument, place + "." + field, "0", "at least 1");
  };
  positive("layers", shape.layers);
  positive("query_heads", shape.query_heads);
  positive("kv_heads", shape.kv_heads);
  positive("head_dim", shape.head_dim);
  if (shape.query_heads % shape.kv_heads != 0) {
    raise(error_code::invalid_argument, place,
          "query_heads=" + std::to_string(shape.query_heads) +
              " with kv_heads=" + std::to_string(shape.kv_heads),
          "query_heads to be a multiple of kv_heads");
  }
}

// One (layer, KV head): the unit of storage and of the blueprint.
struct head_id {
  std::uint32_t layer = 0;
  std::uint32_t kv_head = 0;
  friend constexpr auto operator<=>(const head_id&, const head_id&) = default;
};

[[nodiscard]] inline std::string to_string(head_id head) {
  return "layer " + std::to_string(head.layer) + " head " + std::to_string(head.kv_head);
}

// The few distinct lifetimes that a policy gives, sorted ascending. A head has one stream for each.
class lifetime_set {
 public:
  static constexpr std::size_t capacity = 8;

  constexpr lifetime_set() = default;
  constexpr lifetime_set(std::initializer_list<token_count> lifetimes) noexcept {
    for (const token_count lifetime : lifetimes) insert(lifetime);
  }
  constexpr void insert(token_count lifetime) noexcept {
    std::size_t at = 0;
    while (at < size_ && values_[at] < lifetime) ++at;
    if (at < size_ && values_[at] == lifetime) return;
    // At every check level: one more would be written beyond the array.
    if (size_ == capacity)
      detail::contract_broken(__FILE__, __LINE__, "size < capacity",
                              "a policy gives at most 8 distinct lifetimes");
    for (std::size_t i = size_; i > at; --i) values_[i] = values_[i - 1];
    values_[at] = lifetime;
    ++size_;
  }
  [[nodiscard]] constexpr const token_count* begin() const noexcept { return values_.data(); }
  [[nodiscard]] constexpr const token_count* end() const noexcept { return values_.data() + size_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr token_count operator[](std::size_t i) const noexcept {
    return values_[i];
  }
  [[nodiscard]] constexpr bool contains(token_count lifetime) const noexcept {
    for (const token_count value : *this)
      if (value == lifetime) return true;
    return false;
  }
  friend constexpr bool operator==(const lifetime_set&, const lifetime_set&) = default;

 private:
  std::array<token_count, capacity> values_{};
  std::size_t size_ = 0;
};

HEADWISE_NAMESPACE_END
