// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * q K^T) V in double, over the rows that are given: the oracle of every attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace headwise_tests {

struct reference_output {
  std::vector<double> values;  // [head_dim]
  double lse = -std::numeric_limits<double>::infinity();
};

// keys, values: [rows][head_dim].
[[nodiscard]] inline reference_output reference_attention(
    std::span<const float> query, double scale, std::span<const std::span<const float>> keys,
    std::span<const std::span<const float>> values) {
  std::vector<double> logits;
  for (const auto& key : keys) {
    double dot = 0.0;
    for (std::size_t i = 0; i < query.size(); ++i) dot += double{query[i]} * double{key[i]};
    logits.push_back(scale * dot);
  }
  reference_output result{std::vector<double>(query.size(), 0.0)};
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (std::size_t r = 0; r < logits.size(); ++r) {
    const double weight = std::exp(logits[r] - top);
    sum += weight;
    for (std::size_t i = 0; i < query.size(); ++i)
      result.values[i] += weight * double{values[r][i]};
  }
  for (double& value : result.values) value /= sum;
  result.lse = top + std::log(sum);
  return result;
}

}  // namespace headwise_tests
