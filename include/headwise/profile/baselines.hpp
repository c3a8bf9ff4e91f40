// SPDX-License-Identifier: Apache-2.0
//
// Plans that no profile made, to measure a profiled one against, as in FastGen's ablation
// (arXiv:2310.01801): one window or one pool of heavy hitters for all heads, global heads chosen at
// random or by need, the same classes on the wrong heads, random classes, and a rule of thumb.
// largest_within() sizes any of them for a budget.
//
// Their recoveries were not measured: head_plan::recovery is 0 and there are no candidates.
//
// A plan: O(heads). A window for rows: O(log length), of a blueprint O(heads * length). Pure, and
// the same seed gives the same plan on every platform: any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// A head of a plan that nobody profiled. `policy` keeps no tokens for good but its sinks, or all of
// them. Throws error(invalid_argument) on a length of 0.
[[nodiscard]] inline head_plan unprofiled_head(std::string name, policy_spec policy,
                                               const token_rules& rules, token_count length) {
  if (length == 0)
    raise(error_code::invalid_argument, "plan '" + name + "'", "a length of 0 tokens",
          "at least 1 token");
  head_plan head;
  head.name = std::move(name);
  head.policy = std::move(policy);
  head.recovery = 0.0;
  head.forever_fraction = 0.0;
  head.resident_fraction = expected_rows(head, rules, length) / length;
  return head;
}
// The last `window` tokens, and behind them the sinks, as in StreamingLLM (arXiv:2309.17453).
[[nodiscard]] inline head_plan window_head(token_count window, bool with_sinks,
                                           const token_rules& rules, token_count length) {
  const local_window local(window);
  const std::string name = "local(" + std::to_string(window) + ")";
  if (!with_sinks) return unprofiled_head(name, make_spec(local), rules, length);
  const special_tokens sinks(token_classes::sink);
  return unprofiled_head("sinks+" + name, make_spec(union_of(sinks, local)), rules, length);
}
// The last tokens and as many of the most attended ones behind them, as in H2O (arXiv:2306.14048).
[[nodiscard]] inline head_plan heavy_hitter_head(token_count rows, const token_rules& rules,
                                                 token_count length) {
  const token_count recent = std::max<token_count>(1, rows - rows / 2);
  const heavy_hitters pool(rows / 2);
  return unprofiled_head("local(" + std::to_string(recent) + ")+frequent",
                         make_spec(union_of(local_window(recent), pool)), rules, length);
}

// One policy on every head.
[[nodiscard]] inline blueprint uniform_plan(const blueprint& like, const head_plan& head,
                                            token_count length) {
  blueprint plan = detail::blank_plan(like);
  plan.origin.length = length;
  plan.heads.assign(plan.heads.size(), head);
  return plan;
}
// A window on every head, without sinks. Throws error(invalid_argument) on a length of 0.
[[nodiscard]] inline blueprint window_plan(const blueprint& like, token_count window,
                                           token_count length) {
  return uniform_plan(like, window_head(window, false, like.tokens, length), length);
}

// The first `globals` heads of `order` keep everything, all others are `local`: two classes of
// heads after DuoAttention (arXiv:2410.10819). Which are global is learned there, a gate for each
// head by training; here order_by_need() counts the attention that heads lose. order: [heads], each
// once; globals: at most that many.
[[nodiscard]] inline blueprint two_class_plan(const blueprint& like,
                                              std::span<const std::size_t> order,
                                              std::size_t globals, const head_plan& local) {
  HEADWISE_EXPECTS(order.size() == like.heads.size() && globals <= order.size(),
                   "an order of all heads of the model");
  blueprint plan = detail::blank_plan(like);
  plan.heads.assign(plan.heads.size(), local);
  for (const std::size_t head : order.first(globals)) plan.heads[head] = head_plan{};
  return plan;
}
[[nodiscard]] inline std::vector<std::size_t> random_order(std::size_t heads, std::uint64_t seed) {
  std::vector<std::size_t> order(heads);
  for (std::size_t i = 0; i < heads; ++i) order[i] = i;
  std::mt19937_64 random(seed);
  for (std::size_t i = heads; i > 1; --i) std::swap(order[i - 1], order[detail::draw(random, i)]);
  return order;
}
// The heads that lose most with a candidate come first, equals in their order. Throws
// error(missing) where it was not measured of every head.
[[nodiscard]] inline std::vector<std::size_t> order_by_need(const blueprint& profiled,
                                                            std::string_view candidate) {
  std::vector<std::pair<double, std::size_t>> heads;
  for (const head_plan& head : profiled.heads) {
    const auto found = std::find_if(head.candidates.begin(), head.candidates.end(),
                                    [&](const auto& c) { return c.name == candidate; });
    if (found == head.candidates.end())
      raise(error_code::missing, "candidates of the heads", "no '" + std::string(candidate) + "'",
            "a candidate that was measured of every head");
    heads.emplace_back(found->recovery, heads.size());
  }
  std::sort(heads.begin(), heads.end());
  std::vector<std::size_t> order;
  for (const auto& [recovery, head] : heads) order.push_back(head);
  return order;
}

// The largest n from 1 to `most` whose plan_of(n) is expected to hold at most `rows` rows of a head
// on average at the end of `length` tokens; nullopt where that of 1 holds more. Plans must not
// shrink as n grows. O(log most) plans.
template <class PlanOf>
[[nodiscard]] std::optional<std::size_t> largest_within(double rows, token_count length,
                                                        std::size_t most, const PlanOf& plan_of) {
  std::size_t low = 0, high = most;
  while (low < high) {
    const std::size_t middle = high - (high - low) / 2;
    if (expected_rows(plan_of(middle), length) <= rows)
      low = middle;
    else
      high = middle - 1;
  }
  return low == 0 ? std::nullopt : std::optional(low);
}

// The same policies, each on as many heads, but on random ones: what knowing the heads is worth.
[[nodiscard]] inline blueprint shuffled_plan(const blueprint& like, std::uint64_t seed) {
  blueprint plan = detail::blank_plan(like);
  const std::vector<std::size_t> order = random_order(plan.heads.size(), seed);
  for (std::size_t i = 0; i < order.size(); ++i)
    plan.heads[i] = detail::unmeasured(like.heads[order[i]]);
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
