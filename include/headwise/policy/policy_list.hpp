// SPDX-License-Identifier: Apache-2.0
//
// policy_list<P...>: the closed set of policy types that one cache chooses from, per head. The
// cache visits the variant once per head and call, never per token.
#pragma once

#include <variant>

#include "headwise/policy/concepts.hpp"
#include "headwise/policy/global.hpp"
#include "headwise/policy/heavy_hitters.hpp"
#include "headwise/policy/local_window.hpp"
#include "headwise/policy/special_tokens.hpp"
#include "headwise/policy/union_of.hpp"

HEADWISE_NAMESPACE_BEGIN

template <retention_policy... Ps>
struct policy_list {
  using variant = std::variant<Ps...>;
};

// A type of its own, not an alias: its short name is what symbols and messages show.
struct builtin_policies
    : policy_list<global, local_window, special_tokens, heavy_hitters,
                  union_of<special_tokens, local_window>, union_of<special_tokens, heavy_hitters>,
                  union_of<local_window, heavy_hitters>,
                  union_of<special_tokens, local_window, heavy_hitters>> {};

// What a cache must know of a policy before it sees a token; one visit, since each is compiled for
// every type of policy.
struct policy_facts {
  lifetime_set lifetimes;
  token_count pool_rows = 0;  // at the length that was asked for; 0: the policy does not rank
  bool needs_token_ids = false;
};
template <class Variant>
[[nodiscard]] policy_facts facts_of(const Variant& policy,
                                    token_count length = max_length) noexcept {
  return std::visit(
      [&](const auto& p) {
        return policy_facts{p.lifetimes(), pool_rows(p, length), needs_token_ids(p)};
      },
      policy);
}
template <class Variant>
[[nodiscard]] lifetime_set lifetimes_of(const Variant& policy) noexcept {
  return facts_of(policy).lifetimes;
}
template <class Variant>
[[nodiscard]] token_count lifetime_of(const Variant& policy, const token& t) noexcept {
  return std::visit([&](const auto& p) { return p.lifetime(t); }, policy);
}
// 0 on a head that does not rank.
template <class Variant>
[[nodiscard]] token_count pool_rows_of(const Variant& policy, token_count length) noexcept {
  return facts_of(policy, length).pool_rows;
}

HEADWISE_NAMESPACE_END
