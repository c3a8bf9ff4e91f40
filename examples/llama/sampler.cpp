// SPDX-License-Identifier: Apache-2.0

#include "sampler.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "headwise/core/error.hpp"

namespace llama_example {

std::int32_t greedy(std::span<const float> logits) noexcept {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

sampler::sampler(const sampling& settings) : settings_(settings), random_(settings.seed) {
  const auto refuse = [](const char* name, float got, const char* expected) {
    headwise::raise(headwise::error_code::invalid_argument, name, std::to_string(got), expected);
  };
  if (!(settings.temperature >= 0.0F) || std::isinf(settings.temperature)) {
    refuse("temperature", settings.temperature, "a finite number, at least 0");
  }
  if (!(settings.top_p > 0.0F && settings.top_p <= 1.0F)) {
    refuse("top_p", settings.top_p, "a number over 0, at most 1");
  }
}

std::int32_t sampler::pick(std::span<const float> logits) {
  const std::int32_t best = greedy(logits);
  if (settings_.temperature == 0.0F) return best;

  const double greatest = double{logits[static_cast<std::size_t>(best)]};
  double total = 0.0;
  candidates_.clear();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const double weight = std::exp((double{logits[id]} - greatest) / double{settings_.temperature});
    candidates_.push_back({static_cast<std::int32_t>(id), weight});
    total += weight;
  }

  // The likeliest are moved to the back one by one, until they hold top_p of the probability.
  const auto less_likely = [](const candidate& a, const candidate& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.id > b.id;
  };
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  auto kept = candidates_.end();
  double held = 0.0;
  do {
    std::pop_heap(candidates_.begin(), kept, less_likely);
    held += (--kept)->weight;
  } while (held < double{settings_.top_p} * total && kept != candidates_.begin());

  double left = static_cast<double>(random_() >> 11U) * 0x1p-53 * held;
  for (auto drawn = candidates_.end() - 1; drawn != kept; --drawn) {
    if (left < drawn->weight) return drawn->id;
    left -= drawn->weight;
  }
  return kept->id;
}

}  // namespace llama_example
