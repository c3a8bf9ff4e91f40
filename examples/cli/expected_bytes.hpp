// SPDX-License-Identifier: Apache-2.0
//
// The bytes of keys and values that a plan is expected to hold, before anything runs. Exact for
// windows, sinks and global; where classes or learned ids are kept it rests on how often they
// occurred in the profile.
#pragma once

#include <cstdint>

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tool {

// What one cache holds of one head's rows.
struct cache_layout {
  headwise::token_count length = 0;  // tokens in the cache
  std::uint64_t batch = 1;           // sequences
  std::uint64_t row_bytes = 0;       // one key and one value
};

// Throw headwise::error(out_of_range) where 64 bits do not suffice.
[[nodiscard]] std::uint64_t expected_bytes(const headwise::head_plan& head,
                                           const headwise::token_rules& rules,
                                           const cache_layout& layout);
[[nodiscard]] std::uint64_t expected_bytes(const headwise::blueprint& plan,
                                           const cache_layout& layout);
[[nodiscard]] std::uint64_t expected_layer_bytes(const headwise::blueprint& plan,
                                                 std::uint32_t layer, const cache_layout& layout);
// heads full caches of `length` tokens each.
[[nodiscard]] std::uint64_t full_bytes(std::uint64_t heads, std::uint64_t length,
                                       std::uint64_t batch, std::uint64_t row_bytes);

}  // namespace headwise_tool
