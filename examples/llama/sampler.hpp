// SPDX-License-Identifier: Apache-2.0
//
// From logits to the next token. Deterministic: same logits, same settings, same seed, same ids, on
// every standard library.

#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace llama_example {

struct sampling {
  float temperature = 0.0F;  // 0: greedy
  float top_p = 1.0F;        // draws from the fewest likeliest tokens that hold this probability
  std::uint64_t seed = 0;
};

// The likeliest token, the lowest id of equals.
[[nodiscard]] std::int32_t greedy(std::span<const float> logits) noexcept;

class sampler {
 public:
  // Throws headwise::error unless temperature >= 0 and 0 < top_p <= 1.
  explicit sampler(const sampling& settings);

  // logits: [vocabulary], at least one.
  [[nodiscard]] std::int32_t pick(std::span<const float> logits);

 private:
  struct candidate {
    std::int32_t id;
    double weight;  // exp((logit - greatest) / temperature)
  };

  sampling settings_;
  std::mt19937_64 random_;
  std::vector<candidate> candidates_;
};

}  // namespace llama_example
