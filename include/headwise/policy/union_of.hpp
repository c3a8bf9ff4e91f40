// SPDX-License-Identifier: Apache-2.0
//
// union_of<P...>: what any part keeps. The lifetime of a token is the longest that a part gives, so
// a token is never kept or counted twice, and order and nesting make no difference. Together the
// parts may give lifetime_set::capacity distinct lifetimes. O(parts) a token. A value; any thread.
#pragma once

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "headwise/policy/concepts.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

// All values of max(a, b), a from one set and b from the other.
[[nodiscard]] constexpr lifetime_set maxima(const lifetime_set& a, const lifetime_set& b) noexcept {
  lifetime_set result;
  for (const token_count x : a)
    for (const token_count y : b) result.insert(std::max(x, y));
  return result;
}

}  // namespace detail

template <retention_policy... Ps>
requires(sizeof...(Ps) >= 2) class union_of {
 public:
  static constexpr std::string_view kind = "union";

  constexpr union_of() = default;
  constexpr explicit union_of(Ps... parts) : parts_(std::move(parts)...) {}
  [[nodiscard]] constexpr const std::tuple<Ps...>& parts() const noexcept { return parts_; }

  [[nodiscard]] constexpr token_count lifetime(const token& t) const noexcept {
    return std::apply([&](const Ps&... parts) { return std::max({parts.lifetime(t)...}); }, parts_);
  }
  [[nodiscard]] constexpr lifetime_set lifetimes() const noexcept {
    return std::apply(
        [](const Ps&... parts) {
          lifetime_set result{1};  // 1 is the identity of max: every lifetime is at least 1
          ((result = detail::maxima(result, parts.lifetimes())), ...);
          return result;
        },
        parts_);
  }
  // Tokens that another part keeps are never in the pool, so of two pools the larger holds both.
  [[nodiscard]] constexpr token_count pool_rows(token_count length) const noexcept
      requires(ranked_policy<Ps> || ...) {
    return std::apply(
        [&](const Ps&... parts) { return std::max({headwise::pool_rows(parts, length)...}); },
        parts_);
  }
  [[nodiscard]] constexpr bool needs_token_ids() const noexcept {
    return std::apply([](const Ps&... parts) { return (headwise::needs_token_ids(parts) || ...); },
                      parts_);
  }
  friend constexpr bool operator==(const union_of&, const union_of&) = default;

 private:
  std::tuple<Ps...> parts_;
};

HEADWISE_NAMESPACE_END
