// SPDX-License-Identifier: Apache-2.0
//
// The FastGen rule (arXiv:2310.01801), made exact: of the candidates whose recovery reaches the
// target, the cheapest; cost is expected resident rows, ties go to the first in order. global keeps
// every token, so its recovery is exactly 1 and it always passes.
//
// aggregate: recoveries [query heads of a group], O(n). cheapest: candidates [n], O(n). Pure: any
// number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headwise/blueprint/blueprint.hpp"

HEADWISE_NAMESPACE_BEGIN

struct classify_options {
  double recovery_target = 0.95;  // from 0 to 1
  group_aggregation aggregation = group_aggregation::worst;
  recovery_criterion criterion = recovery_criterion::mass;
  plan_granularity granularity = plan_granularity::head;
  std::size_t max_learned_ids = 16;  // of one head
  // Share of the rows of a full cache at the stated length. With it recovery_target is what each
  // head is owed, and the budget goes where it brings most (budget.hpp).
  std::optional<double> budget = std::nullopt;
};

// The recovery (kept mass) that a candidate needs. Throws error(invalid_argument) on a target
// outside 0 .. 1. At most 1, also after rounding.
[[nodiscard]] inline double required_recovery(const classify_options& options) {
  const double target = options.recovery_target;
  if (!(target >= 0.0 && target <= 1.0))
    raise(error_code::invalid_argument, "recovery_target", std::to_string(target),
          "a number from 0 to 1");
  return options.criterion == recovery_criterion::mass ? target : (1.0 + target) / 2.0;
}

// recoveries: [n], n >= 1. The mean is summed in order and never above the best.
[[nodiscard]] inline double aggregate(std::span<const double> recoveries,
                                      group_aggregation aggregation) noexcept {
  HEADWISE_EXPECTS(!recoveries.empty(), "a group has at least one query head");
  const double best = *std::max_element(recoveries.begin(), recoveries.end());
  if (aggregation == group_aggregation::max) return best;
  if (aggregation == group_aggregation::worst)
    return *std::min_element(recoveries.begin(), recoveries.end());
  double sum = 0.0;
  for (const double recovery : recoveries) sum += recovery;
  return std::min(best, sum / static_cast<double>(recoveries.size()));
}

// One candidate for one KV head (or for all of a layer).
struct judged_candidate {
  double recovery = 0.0;  // aggregated
  double harm = 0.0;      // aggregated, see recovery_table
  double resident_rows = 0.0;
  double forever_fraction = 0.0;
  std::vector<std::int32_t> ids;  // learned, sorted
};

// What one scope (a KV head, or all of a layer) would hold and lose with a choice.
struct offer {
  double recovery = 0.0;  // of its worst KV head
  double rows = 0.0;      // resident, of all its KV heads
  double harm = 0.0;      // of its KV heads, summed
};

// The index of the offer with the fewest rows whose recovery is at least `required`, the first of
// equals; nullopt where none passes, which cannot be when global is among them and required is at
// most 1.
[[nodiscard]] inline std::optional<std::size_t> cheapest(std::span<const offer> offers,
                                                         double required) noexcept {
  std::optional<std::size_t> choice;
  for (std::size_t i = 0; i < offers.size(); ++i)
    if (offers[i].recovery >= required && (!choice || offers[i].rows < offers[*choice].rows))
      choice = i;
  return choice;
}

HEADWISE_NAMESPACE_END
