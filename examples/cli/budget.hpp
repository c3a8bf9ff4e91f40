// SPDX-License-Identifier: Apache-2.0
//
// What a cache may hold, as people say it: "40%" of a full one, "64MiB", or "64MiB@2048", at that
// length; and what it may cost, "2%".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache_type.hpp"

#include "headwise/core/types.hpp"

namespace headwise_tool {

struct budget {
  std::optional<double> share;  // of a full cache; without it the bytes count
  std::uint64_t bytes = 0;      // of keys and values
  std::uint64_t length = 0;     // tokens; 0: the length at which rows are counted
};

// Throws usage_error naming the option where the text is none of these.
[[nodiscard]] budget parse_budget(const std::string& option, const std::string& text);

// "2%" as 0.02: by how much a perplexity may be higher. Throws usage_error naming the option where
// the text is no such percentage.
[[nodiscard]] double parse_loss(const std::string& option, const std::string& text);

// The share of a full cache of `length` tokens, at most 1.
[[nodiscard]] double share_of(const budget& limit, const headwise::model_shape& shape,
                              headwise::token_count length, cache_type type);

}  // namespace headwise_tool
