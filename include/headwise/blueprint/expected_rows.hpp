// SPDX-License-Identifier: Apache-2.0
//
// How many rows a head of a blueprint will hold at a length other than the one that it was profiled
// at. O(log ids) a head. Pure.
//
//   rows = s + f * b + (1 - f) * min(w, b), and min(k, what is left of the length) more
//
// s: the sinks, if the policy keeps them; b = length - s: the other tokens; f: forever_fraction,
// the share of them that never leaves; w: the policy's shortest lifetime, in which every other
// token is held; k: rows of its pool of heavy hitters in a sequence that is opened for that length.
// Exact where f is 0 or 1 and one finite lifetime is all there is (windows, sinks + windows,
// global, heavy hitters with them); an expectation where f is a share of tokens measured in the
// profile's prompts. A policy without a finite lifetime, or without any other, needs no f. Where a
// policy with both has none (nobody measured it), there is no answer: error(missing).
#pragma once

#include <algorithm>
#include <string>

#include "headwise/blueprint/blueprint.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

struct row_terms {
  token_count sinks = 0;
  token_count window = forever;
  double stays = 1.0;
  token_count pool = 0;

  [[nodiscard]] double rows(token_count length) const noexcept {
    const double held_sinks = std::min(sinks, length);
    const double others = length - held_sinks;
    const double held =
        held_sinks + stays * others + (1.0 - stays) * std::min<double>(window, others);
    return held + std::clamp(length - held, 0.0, static_cast<double>(pool));
  }
};

[[nodiscard]] inline double share_that_stays(const head_plan& plan, const lifetime_set& lifetimes) {
  if (*lifetimes.begin() == forever) return 1.0;
  if (!lifetimes.contains(forever)) return 0.0;
  if (!plan.forever_fraction)
    raise(error_code::missing, "forever_fraction of policy '" + plan.name + "'", "none",
          "the share of the tokens behind the sinks that it keeps, measured or set by hand");
  return *plan.forever_fraction;
}

// length: that a sequence is opened for.
template <class Policies>
[[nodiscard]] row_terms make_row_terms(const head_plan& plan, const token_rules& rules,
                                       token_count length) {
  const auto policy = make_policy<Policies>(plan.policy, "policy '" + plan.name + "'");
  row_terms terms;
  terms.window = *lifetimes_of(policy).begin();
  // An id of a sink is no sink's business: the class is what says that a policy keeps it.
  const token sink{0, no_token_id, token_classes::sink};
  if (lifetime_of(policy, sink) == forever) terms.sinks = rules.sink_count;
  terms.stays = share_that_stays(plan, lifetimes_of(policy));
  terms.pool = pool_rows_of(policy, length);
  return terms;
}

}  // namespace detail

// At the end of a sequence of `length` tokens. Throws as make_policy does, and error(missing).
template <class Policies = builtin_policies>
[[nodiscard]] double expected_rows(const head_plan& plan, const token_rules& rules,
                                   token_count length) {
  return detail::make_row_terms<Policies>(plan, rules, length).rows(length);
}

// Of one head on average: over all heads, at the end of a sequence of `length` tokens.
template <class Policies = builtin_policies>
[[nodiscard]] double expected_rows(const blueprint& plan, token_count length) {
  double sum = 0.0;
  for (const head_plan& head : plan.heads)
    sum += expected_rows<Policies>(head, plan.tokens, length);
  return plan.heads.empty() ? 0.0 : sum / static_cast<double>(plan.heads.size());
}

// The same on average over the lengths 1 .. length too: what a decode of `length` tokens holds
// while it runs. O(heads * length). Throws error(invalid_argument) on more than max_length.
template <class Policies = builtin_policies>
[[nodiscard]] double mean_expected_rows(const blueprint& plan, token_count length) {
  if (length > max_length)
    raise(error_code::invalid_argument, "mean_expected_rows", std::to_string(length) + " tokens",
          "at most " + std::to_string(max_length));
  double sum = 0.0;
  for (const head_plan& head : plan.heads) {
    const detail::row_terms terms = detail::make_row_terms<Policies>(head, plan.tokens, length);
    for (token_count now = 1; now <= length; ++now) sum += terms.rows(now);
  }
  return plan.heads.empty() || length == 0
             ? 0.0
             : sum / static_cast<double>(plan.heads.size()) / static_cast<double>(length);
}

HEADWISE_NAMESPACE_END
