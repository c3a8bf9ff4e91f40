// SPDX-License-Identifier: Apache-2.0
//
// mass_by_age: for each key of one map, the attention mass that it drew from queries that were at
// least so old: [ages, keys]. A policy loses, on a key of lifetime L, exactly the mass drawn at
// ages >= L: the queries for which sees(query, key, L) is false. So one pass over a map answers for
// every policy whose lifetimes are among the ages.
//
// The mass of a key only grows, and it is noted when the key comes to each age: what it drew from
// then on is the difference. So an error is at most 2^-53 of the key's whole mass for each query,
// and where nothing was drawn the difference is exactly 0.
//
// add_row O(keys + ages): each weight is added once, whatever the number of ages; finish
// O(ages * keys). Memory O(ages * keys). One thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headwise/core/types.hpp"
#include "headwise/profile/map_kernels.hpp"

HEADWISE_NAMESPACE_BEGIN

class mass_by_age {
 public:
  // lifetimes: any order; forever is left out, since nothing is lost at it. The width changes no
  // bit, but must be one that the processor has.
  explicit mass_by_age(std::vector<token_count> lifetimes = {}, simd_width width = widest_simd())
      : ages_(std::move(lifetimes)), width_(width) {
    std::sort(ages_.begin(), ages_.end());
    ages_.erase(std::unique(ages_.begin(), ages_.end()), ages_.end());
    if (!ages_.empty() && ages_.back() == forever) ages_.pop_back();
  }

  [[nodiscard]] std::size_t ages() const noexcept { return ages_.size(); }
  [[nodiscard]] simd_width width() const noexcept { return width_; }

  // The index of a lifetime among the ages; ages() for forever. The lifetime must be among them
  // (checked at level 1): a policy whose lifetime(t) is not in its lifetimes() breaks its contract.
  [[nodiscard]] std::size_t index(token_count lifetime) const noexcept {
    const auto found = std::lower_bound(ages_.begin(), ages_.end(), lifetime);
    HEADWISE_EXPECTS(lifetime == forever || (found != ages_.end() && *found == lifetime),
                     "a policy gave a lifetime that is not a member of its lifetimes()");
    return static_cast<std::size_t>(found - ages_.begin());
  }

  void start(std::size_t keys) {
    constexpr std::size_t step = detail::weights_at_once;
    keys_ = keys;
    end_ = 0;
    mass_.assign((keys + step - 1) / step * step, 0.0);
    tails_.assign(ages_.size() * keys, 0.0);
  }

  // Row `row` of the map, that of the query at `query`, which follows the one before; sum: of that
  // row, which counts as mass 1. The row is checked (map_check.hpp).
  void add_row(position query, const map_weights& weights, std::size_t row, double sum) noexcept {
    for (std::size_t age = 0; age < ages_.size() && ages_[age] <= query; ++age)
      tails_[age * keys_ + query - ages_[age]] = mass_[query - ages_[age]];
    detail::map_kernels_at(weights.type, width_)
        .add({weights.row(row).data(), std::size_t{query} + 1, keys_}, short_inverse(sum),
             mass_.data());
    end_ = query + 1;
  }

  // Between the last add_row and the first tail: turns what was noted into tails.
  void finish() noexcept {
    for (std::size_t age = 0; age < ages_.size(); ++age) {
      double* const tail = tails_.data() + age * keys_;
      const std::size_t old = end_ > ages_[age] ? end_ - ages_[age] : 0;  // keys that came to it
      for (std::size_t key = 0; key < old; ++key) tail[key] = mass_[key] - tail[key];
    }
  }

  // [keys]: the mass that each key drew at the age of that index or later.
  [[nodiscard]] std::span<const double> tail(std::size_t age) const noexcept {
    return {tails_.data() + age * keys_, keys_};
  }

 private:
  // 1 / sum in 29 significant bits. Its product with a float (24 bits) is exact in a double, so a
  // compiler that fuses it into the addition gives the same bytes as one that does not. The error,
  // under 2^-28 of a row's mass, is the profiler's greatest.
  [[nodiscard]] static double short_inverse(double sum) noexcept {
    constexpr std::uint64_t low_bits = (std::uint64_t{1} << 24) - 1;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0 / sum) & ~low_bits);
  }

  std::vector<token_count> ages_;  // ascending, finite
  simd_width width_;
  std::size_t keys_ = 0;
  std::size_t end_ = 0;        // one past the last query
  std::vector<double> mass_;   // [keys rounded up], so far
  std::vector<double> tails_;  // [ages, keys]; before finish(), the mass before that age
};

HEADWISE_NAMESPACE_END
