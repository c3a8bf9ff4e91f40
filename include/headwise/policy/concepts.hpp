// SPDX-License-Identifier: Apache-2.0
//
// START HERE: the contract of a policy, on one screen.
//
// A policy maps a token to a lifetime: how many queries, its own first, may see the token. The
// query at q sees the token at pos iff q - pos < lifetime (sees() in core/types.hpp). That one rule
// decides offline, where the profiler asks what a policy would keep, and online, where the cache
// frees what no query can see any more; the two cannot drift apart.
//
//   lifetime(global, t)            = forever
//   lifetime(local_window{w}, t)   = w                      w counts the query's own token; w >= 1
//   lifetime(special_tokens{s}, t) = forever if t is in s, else 1
//   lifetime(heavy_hitters{k}, t)  = 1, and then the token competes for one of k places
//   lifetime(union_of<P...>, t)    = max(lifetime(P, t)...)
//
// A policy of your own is any regular type with the two functions below; see
// examples/05_own_policy.cpp. The classes are those of FastGen (arXiv:2310.01801).
#pragma once

#include <concepts>
#include <type_traits>

#include "headwise/core/types.hpp"

HEADWISE_NAMESPACE_BEGIN

// lifetime(t): pure, O(1) or O(log n), always >= 1 (a query sees its own token, so no softmax is
//              ever over nothing), always a member of lifetimes().
// lifetimes(): the few distinct values, sorted. A head has one stream of rows for each.
template <class P>
concept retention_policy = std::regular<P> && std::is_nothrow_copy_constructible_v<P> &&
    requires(const P& policy, const token& t) {
  { policy.lifetime(t) }
  noexcept->std::same_as<token_count>;
  { policy.lifetimes() }
  noexcept->std::same_as<lifetime_set>;
};

// A policy that ranks: of the tokens past their lifetime it keeps the pool_rows(length) that drew
// the most attention, in a sequence that was opened for `length` tokens. Its heads need the
// attention probabilities of every query (attend, head_view::observe); other heads have no such
// store.
template <class P>
concept ranked_policy = retention_policy<P> && requires(const P& policy, token_count length) {
  { policy.pool_rows(length) }
  noexcept->std::same_as<token_count>;
};

template <class P>
[[nodiscard]] constexpr token_count pool_rows(const P& policy,
                                              [[maybe_unused]] token_count length) noexcept {
  if constexpr (ranked_policy<P>)
    return policy.pool_rows(length);
  else
    return 0;
}

// A policy that decides by token id says so; the cache then refuses tokens without one.
template <class P>
[[nodiscard]] constexpr bool needs_token_ids(const P& policy) noexcept {
  if constexpr (requires {
                  { policy.needs_token_ids() } -> std::same_as<bool>;
                })
    return policy.needs_token_ids();
  else
    return false;
}

HEADWISE_NAMESPACE_END
