// SPDX-License-Identifier: Apache-2.0
//
// Plans that no profile made, to measure a profiled one against, as in FastGen's ablation
// (arXiv:2310.01801): the plain window of the same size, the same classes on the wrong heads,
// random classes, and a rule of thumb. uniform_blueprint() (blueprint.hpp) is the further one: one
// policy everywhere.
//
// Their recoveries were not measured: head_plan::recovery is 0 and there are no candidates.
//
// A plan: O(heads). A window for rows: O(log length), of a blueprint O(heads * length). Pure, and
// the same seed gives the same plan on every platform: any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "headwise/blueprint/expected_rows.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

// Below `bound`, the same with every standard library. The bias is under bound / 2^64.
[[nodiscard]] inline std::size_t draw(std::mt19937_64& random, std::size_t bound) noexcept {
  return static_cast<std::size_t>(random() % bound);
}

[[nodiscard]] inline head_plan unmeasured(head_plan plan) {
  plan.recovery = 0.0;
  plan.candidates.clear();
  return plan;
}

// What a plan of other origin shares with `like`: model, token rules, stated length.
[[nodiscard]] inline blueprint blank_plan(const blueprint& like) {
  blueprint plan = like;
  plan.origin = {};
  plan.origin.length = like.origin.length;
  plan.origin.tool = like.origin.tool;
  return plan;
}

}  // namespace detail

// The smallest window that holds at least `rows` rows on average over the lengths 1 .. length:
// while it fills, a window holds less than its size. At most length, at least 1.
[[nodiscard]] inline token_count window_for_rows(double rows, token_count length) {
  const auto mean_rows = [&](token_count window) {
    const double w = window, n = length;
    return (w * (w + 1.0) / 2.0 + (n - w) * w) / n;
  };
  if (!(rows >= 0.0) || length == 0)
    raise(error_code::invalid_argument, "window_for_rows",
          std::to_string(rows) + " rows of " + std::to_string(length) + " tokens",
          "at least 0 rows and 1 token");
  token_count low = 1, high = length;
  while (low < high) {
    const token_count middle = low + (high - low) / 2;
    if (mean_rows(middle) >= rows)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// The window that holds, decoding `length` tokens, what the blueprint is expected to hold.
[[nodiscard]] inline token_count window_for_rows(const blueprint& plan, token_count length) {
  return window_for_rows(mean_expected_rows(plan, length), length);
}

// That window on every head, without sinks. Throws error(invalid_argument) on a length of 0.
[[nodiscard]] inline blueprint window_plan(const blueprint& like, token_count window,
                                           token_count length) {
  if (length == 0)
    raise(error_code::invalid_argument, "window_plan", "a length of 0 tokens", "at least 1 token");
  blueprint plan = detail::blank_plan(like);
  head_plan head;
  head.name = "local(" + std::to_string(window) + ")";
  head.policy = make_spec(local_window(window));
  head.recovery = 0.0;
  head.forever_fraction = 0.0;
  head.resident_fraction = expected_rows(head, like.tokens, length) / length;
  plan.origin.length = length;
  plan.heads.assign(plan.heads.size(), head);
  return plan;
}

// The same policies, each on as many heads, but on random ones: what knowing the heads is worth.
[[nodiscard]] inline blueprint shuffled_plan(const blueprint& like, std::uint64_t seed) {
  blueprint plan = detail::blank_plan(like);
  std::mt19937_64 random(seed);
  for (std::size_t i = plan.heads.size(); i > 1; --i)
    std::swap(plan.heads[i - 1], plan.heads[detail::draw(random, i)]);
  for (head_plan& head : plan.heads) head = detail::unmeasured(std::move(head));
  return plan;
}

// Each head one of `classes`, all as likely. Throws error(invalid_argument) where there is none.
[[nodiscard]] inline blueprint random_plan(const blueprint& like,
                                           std::span<const head_plan> classes, std::uint64_t seed) {
  if (classes.empty())
    raise(error_code::invalid_argument, "random_plan", "no classes", "at least one");
  blueprint plan = detail::blank_plan(like);
  std::mt19937_64 random(seed);
  for (head_plan& head : plan.heads)
    head = detail::unmeasured(classes[detail::draw(random, classes.size())]);
  return plan;
}

// What people write by hand: `local` in the lower third of the layers and in the upper one (rounded
// down, at least one layer each), `middle` (global, say) between. A model of one or two layers has
// no middle.
[[nodiscard]] inline blueprint rule_of_thumb_plan(const blueprint& like, const head_plan& local,
                                                  const head_plan& middle) {
  blueprint plan = detail::blank_plan(like);
  const std::uint32_t layers = plan.shape.layers, edge = std::max(1U, layers / 3);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const bool inside = layer >= edge && layer + edge < layers;
    for (std::uint32_t head = 0; head < plan.shape.kv_heads; ++head)
      plan.heads[std::size_t{layer} * plan.shape.kv_heads + head] =
          detail::unmeasured(inside ? middle : local);
  }
  return plan;
}

HEADWISE_NAMESPACE_END
