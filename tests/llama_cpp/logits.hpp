// SPDX-License-Identifier: Apache-2.0
//
// What tests ask of logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include <gtest/gtest.h>
#include <llama.h>

namespace headwise_tests {

inline llama_token greedy(std::span<const float> logits) {
  return static_cast<llama_token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// NaN where any of them is.
inline float most_apart(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float most = 0.0F;
  for (std::size_t i = 0; i < a.size() && !std::isnan(most); ++i)
    if (!(std::abs(a[i] - b[i]) <= most)) most = std::abs(a[i] - b[i]);
  return most;
}

}  // namespace headwise_tests
