// SPDX-License-Identifier: Apache-2.0
//
// held_heads: the query heads of a share of a model, numbered without holes, so that what is kept
// for each of them takes no room for those of other shares. O(1). A value.
#pragma once

#include <cstdint>

#include "headwise/profile/attention_map.hpp"

HEADWISE_NAMESPACE_BEGIN

class held_heads {
 public:
  held_heads() = default;
  explicit held_heads(const model_shape& shape, head_share share = {}) noexcept
      : shape_(shape), share_(share) {}

  // Query heads.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::size_t kv_heads = std::size_t{shape_.layers} * shape_.kv_heads;
    return kv_heads <= share_.index
               ? 0
               : ((kv_heads - share_.index - 1) / share_.count + 1) * shape_.group_size();
  }
  [[nodiscard]] bool holds(std::uint32_t layer, std::uint32_t query_head) const noexcept {
    return layer < shape_.layers && query_head < shape_.query_heads &&
           share_.holds(shape_, layer, query_head);
  }
  // Of a head that it holds, below size(); by layers, then by query heads.
  [[nodiscard]] std::size_t index(std::uint32_t layer, std::uint32_t query_head) const noexcept {
    const std::size_t group = shape_.group_size();
    const std::size_t kv_head = std::size_t{layer} * shape_.kv_heads + query_head / group;
    return kv_head / share_.count * group + query_head % group;
  }
  // fn(layer, query head) of each, as they are numbered.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (std::uint32_t layer = 0; layer < shape_.layers; ++layer)
      for (std::uint32_t head = 0; head < shape_.query_heads; ++head)
        if (holds(layer, head)) fn(layer, head);
  }

 private:
  model_shape shape_{0, 1, 1, 1};
  head_share share_;
};

HEADWISE_NAMESPACE_END
