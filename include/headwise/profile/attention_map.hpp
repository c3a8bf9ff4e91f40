// SPDX-License-Identifier: Apache-2.0
//
// Recorded attention maps as the profiler reads them: the weights of one prompt, layer and query
// head, [queries, keys], rows summing to 1 over the keys up to the query. Views; nothing is owned.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <string_view>

#include "headwise/core/types.hpp"
#include "headwise/profile/map_weights.hpp"

HEADWISE_NAMESPACE_BEGIN

struct attention_map_view {
  std::uint64_t prompt = 0;  // numbered from 0 in the order of the source
  std::uint32_t layer = 0;
  std::uint32_t query_head = 0;
  position first_query = 0;     // row i is the query at position first_query + i
  map_weights weights;          // [queries, keys]; keys are the positions 0 .. keys - 1
  std::span<const token> keys;  // [keys]
  std::string_view place;       // file and tensor, for messages
};

// A share of a model's heads, to be measured apart from the others: of KV heads in turn, each with
// the query heads that read it. The default is all of them.
struct head_share {
  std::uint32_t index = 0;  // below count
  std::uint32_t count = 1;  // of shares

  [[nodiscard]] constexpr bool holds(const model_shape& shape, std::uint32_t layer,
                                     std::uint32_t query_head) const noexcept {
    const std::uint64_t kv_head = query_head / shape.group_size();
    return (std::uint64_t{layer} * shape.kv_heads + kv_head) % count == index;
  }
  friend bool operator==(const head_share&, const head_share&) = default;
};

// A source of maps: any order of layers and heads, but the maps of one prompt come together. A view
// stays valid until the next call of next(). nullopt: no more.
template <class S>
concept map_source = requires(S& source) {
  { source.shape() } -> std::same_as<model_shape>;
  { source.next() } -> std::same_as<std::optional<attention_map_view>>;
};

HEADWISE_NAMESPACE_END
