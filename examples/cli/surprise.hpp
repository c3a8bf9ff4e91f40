// SPDX-License-Identifier: Apache-2.0
//
// How little a model expected what came next.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace headwise_tool {

// -log of the probability of `next`. logits: [vocabulary].
[[nodiscard]] inline double surprise(std::span<const float> logits, std::int32_t next) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) sum += static_cast<double>(std::exp(logit - top));
  const float chosen = logits[static_cast<std::size_t>(next)];
  return std::log(sum) + static_cast<double>(top) - static_cast<double>(chosen);
}

}  // namespace headwise_tool
