// SPDX-License-Identifier: Apache-2.0
//
// local_window{w}: the last w tokens, the query's own among them.
#pragma once

#include <string_view>

#include "headwise/policy/concepts.hpp"

HEADWISE_NAMESPACE_BEGIN

class local_window {
 public:
  static constexpr std::string_view kind = "local_window";

  constexpr local_window() = default;
  // window: in tokens, at least 1. Throws error(invalid_argument) on 0.
  constexpr explicit local_window(token_count window) : window_(window) {
    if (window == 0) raise(error_code::invalid_argument, "local_window", "0", "at least 1 token");
  }
  [[nodiscard]] constexpr token_count window() const noexcept { return window_; }

  [[nodiscard]] constexpr token_count lifetime(const token&) const noexcept { return window_; }
  [[nodiscard]] constexpr lifetime_set lifetimes() const noexcept { return {window_}; }
  friend constexpr bool operator==(const local_window&, const local_window&) = default;

 private:
  token_count window_ = 1;
};

HEADWISE_NAMESPACE_END
