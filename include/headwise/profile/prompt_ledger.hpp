// SPDX-License-Identifier: Apache-2.0
//
// prompt_ledger: are the maps of each prompt all there, once, and of one size? A layer whose maps
// were never recorded must not pass for a layer that was looked at.
//
// A map: O(1), the first of a prompt O(layers * query_heads), as is the memory. One thread at a
// time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "headwise/profile/held_heads.hpp"
#include "headwise/profile/map_check.hpp"

HEADWISE_NAMESPACE_BEGIN

class prompt_ledger {
 public:
  explicit prompt_ledger(const model_shape& shape, head_share share = {})
      : shape_(shape), heads_(shape, share), seen_(heads_.size(), false) {}

  // Is `map` the first of a prompt? Throws error(missing) where the one before is not complete, and
  // error(malformed) where the map belongs to a prompt that was already left.
  [[nodiscard]] bool opens_prompt(const attention_map_view& map) const {
    if (entered_ == 0) return true;
    if (map.prompt < prompt_)
      raise(error_code::malformed, detail::map_place(map),
            "a map of prompt " + std::to_string(map.prompt) + " after one of prompt " +
                std::to_string(prompt_),
            "the maps of one prompt together");
    if (map.prompt == prompt_) return false;
    require_complete();
    return true;
  }

  // Throws error(duplicate or shape_mismatch) naming the map.
  void enter(const attention_map_view& map) {
    if (entered_ == 0 || map.prompt != prompt_) {
      prompt_ = map.prompt;
      queries_ = map.weights.count;
      first_query_ = map.first_query;
      seen_.assign(seen_.size(), false);
    }
    if (map.weights.count != queries_ || map.first_query != first_query_)
      raise(error_code::shape_mismatch, detail::map_place(map),
            std::to_string(map.weights.count) + " queries from position " +
                std::to_string(map.first_query),
            std::to_string(queries_) + " from position " + std::to_string(first_query_) +
                ", as in the prompt's first map");
    const std::size_t at = heads_.index(map.layer, map.query_head);
    if (seen_[at])
      raise(error_code::duplicate, detail::map_place(map), "a second map", "one map for each head");
    seen_[at] = true;
    ++entered_;
  }

  // Throws error(missing) naming the prompt and the first layer or head without a map.
  void require_complete() const {
    if (maps() == 0) raise(error_code::missing, "maps", "none", "at least one prompt");
    if (entered_ == 0) return;
    std::vector<std::uint32_t> maps_of(shape_.layers, 0);
    heads_.for_each([&](std::uint32_t layer, std::uint32_t head) {
      if (seen_[heads_.index(layer, head)]) ++maps_of[layer];
    });
    heads_.for_each([&](std::uint32_t layer, std::uint32_t head) {
      if (seen_[heads_.index(layer, head)]) return;
      const std::string place =
          "prompt " + std::to_string(prompt_) + " layer " + std::to_string(layer);
      if (maps_of[layer] == 0)
        raise(error_code::missing, place, "no map (the layer is absent)",
              "maps of its " + std::to_string(shape_.query_heads) + " query heads");
      raise(error_code::missing, place + " query head " + std::to_string(head), "no map",
            "a map of every query head");
    });
  }

  [[nodiscard]] std::uint64_t maps() const noexcept { return entered_ + added_; }
  // Maps that were entered elsewhere, of whole prompts. They leave the prompt in hand as it is.
  void add_maps(std::uint64_t maps) noexcept { added_ += maps; }

 private:
  model_shape shape_;
  held_heads heads_;
  std::uint64_t entered_ = 0;  // maps, here
  std::uint64_t added_ = 0;    // elsewhere
  std::uint64_t prompt_ = 0;
  std::size_t queries_ = 0;
  position first_query_ = 0;
  std::vector<bool> seen_;  // [heads], of the prompt in hand
};

HEADWISE_NAMESPACE_END
