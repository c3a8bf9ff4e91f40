// SPDX-License-Identifier: Apache-2.0
//
// heavy_hitters{k}: the k tokens that drew the most attention so far, past their lifetime in the
// other parts of a union. FastGen's frequency class (arXiv:2310.01801); the rule is that of H2O
// (arXiv:2306.14048). What is kept is decided in store/ranked_pool.hpp, by ranks_below().
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

#include "headwise/policy/concepts.hpp"

HEADWISE_NAMESPACE_BEGIN

class heavy_hitters {
 public:
  static constexpr std::string_view kind = "heavy_hitters";
  static constexpr std::uint32_t one = 1'000'000;  // fractions are counted in millionths

  constexpr heavy_hitters() = default;
  // A pool of `rows` rows; 0 is no pool at all.
  constexpr explicit heavy_hitters(token_count rows) noexcept : cap_(rows) {}
  // 0.3 would be a pool of 0 rows: a fraction comes with its cap.
  template <std::floating_point Number>
  explicit heavy_hitters(Number) = delete;
  // fraction: of the length that a sequence is opened for, rounded up, at least one row and at most
  // `cap`; FastGen's r_f is 0.3. Throws error(out_of_range) unless 0 < fraction <= 1 and cap >= 1.
  heavy_hitters(double fraction, token_count cap)
      : heavy_hitters(of_millionths(millionths(fraction), cap)) {}
  [[nodiscard]] static heavy_hitters of_millionths(std::uint32_t fraction, token_count cap) {
    if (fraction == 0 || fraction > one)
      raise(error_code::out_of_range, "heavy_hitters.fraction",
            std::to_string(fraction) + " millionths", "more than 0, at most 1000000");
    if (cap == 0) raise(error_code::out_of_range, "heavy_hitters.cap", "0", "at least 1");
    heavy_hitters result(cap);
    result.millionths_ = fraction;
    return result;
  }

  // Rows of the pool, or the most where they depend on the length.
  [[nodiscard]] constexpr token_count cap() const noexcept { return cap_; }
  // 0 where the pool is a count.
  [[nodiscard]] constexpr std::uint32_t fraction_in_millionths() const noexcept {
    return millionths_;
  }

  [[nodiscard]] constexpr token_count lifetime(const token&) const noexcept { return 1; }
  [[nodiscard]] constexpr lifetime_set lifetimes() const noexcept { return {1}; }
  [[nodiscard]] constexpr token_count pool_rows(token_count length) const noexcept {
    if (millionths_ == 0) return cap_;
    const std::uint64_t share = (std::uint64_t{length} * millionths_ + (one - 1)) / one;
    return static_cast<token_count>(std::clamp<std::uint64_t>(share, 1, cap_));
  }
  friend constexpr bool operator==(const heavy_hitters&, const heavy_hitters&) = default;

 private:
  [[nodiscard]] static std::uint32_t millionths(double fraction) {
    if (!(fraction > 0.0 && fraction <= 1.0))
      raise(error_code::out_of_range, "heavy_hitters.fraction", std::to_string(fraction),
            "more than 0, at most 1");
    return static_cast<std::uint32_t>(std::max(1.0, std::round(fraction * one)));
  }

  token_count cap_ = 1;
  std::uint32_t millionths_ = 0;
};

HEADWISE_NAMESPACE_END
