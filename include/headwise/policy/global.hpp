// SPDX-License-Identifier: Apache-2.0
//
// global: every token, forever. What a full cache does, and the baseline of every comparison.
#pragma once

#include <string_view>

#include "headwise/policy/concepts.hpp"

HEADWISE_NAMESPACE_BEGIN

struct global {
  static constexpr std::string_view kind = "global";

  [[nodiscard]] constexpr token_count lifetime(const token&) const noexcept { return forever; }
  [[nodiscard]] constexpr lifetime_set lifetimes() const noexcept { return {forever}; }
  friend constexpr bool operator==(const global&, const global&) = default;
};

HEADWISE_NAMESPACE_END
