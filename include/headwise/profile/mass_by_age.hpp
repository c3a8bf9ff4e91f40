// SPDX-License-Identifier: Apache-2.0
//
// mass_by_age: for each key of one map, the attention mass that it drew from queries that were at
// least so old: [ages, keys]. A policy loses, on a key of lifetime L, exactly the mass drawn at
// ages >= L: the queries for which sees(query, key, L) is false. So one pass over a map answers for
// every policy whose lifetimes are among the ages.
//
// add_row O(keys + ages): each weight is added once, whatever the number of ages; add_up
// O(ages * keys). Memory O(ages * keys). One thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headwise/core/types.hpp"

HEADWISE_NAMESPACE_BEGIN

class mass_by_age {
 public:
  // lifetimes: any order; forever is left out, since nothing is lost at it.
  explicit mass_by_age(std::vector<token_count> lifetimes = {}) : ages_(std::move(lifetimes)) {
    std::sort(ages_.begin(), ages_.end());
    ages_.erase(std::unique(ages_.begin(), ages_.end()), ages_.end());
    if (!ages_.empty() && ages_.back() == forever) ages_.pop_back();
  }

  [[nodiscard]] std::size_t ages() const noexcept { return ages_.size(); }

  // The index of a lifetime among the ages; ages() for forever. The lifetime must be among them
  // (checked at level 1): a policy whose lifetime(t) is not in its lifetimes() breaks its contract.
  [[nodiscard]] std::size_t index(token_count lifetime) const noexcept {
    const auto found = std::lower_bound(ages_.begin(), ages_.end(), lifetime);
    HEADWISE_EXPECTS(lifetime == forever || (found != ages_.end() && *found == lifetime),
                     "a policy gave a lifetime that is not a member of its lifetimes()");
    return static_cast<std::size_t>(found - ages_.begin());
  }

  void start(std::size_t keys) {
    keys_ = keys;
    mass_.assign(ages_.size() * keys, 0.0);
  }

  // weights: [keys], the row of the query at `query`; sum: of that row, which counts as mass 1.
  void add_row(position query, std::span<const float> weights, double sum) noexcept {
    const double scale = short_inverse(sum);
    for (std::size_t age = 0; age < ages_.size(); ++age) {
      // The keys with ages_[age] <= query - key < ages_[age + 1].
      const std::size_t end = band_end(query, age);
      const std::size_t begin = age + 1 < ages_.size() ? band_end(query, age + 1) : 0;
      double* mass = mass_.data() + age * keys_;
      for (std::size_t key = begin; key < end; ++key)
        mass[key] += scale * static_cast<double>(weights[key]);
    }
  }

  // Turns bands into tails; between the last add_row and the first tail.
  void add_up() noexcept {
    for (std::size_t age = ages_.size(); age-- > 1;)
      for (std::size_t key = 0; key < keys_; ++key)
        mass_[(age - 1) * keys_ + key] += mass_[age * keys_ + key];
  }

  // [keys]: the mass that each key drew at the age of that index or later.
  [[nodiscard]] std::span<const double> tail(std::size_t age) const noexcept {
    return {mass_.data() + age * keys_, keys_};
  }

 private:
  // One past the youngest key that is at least ages_[age] old.
  [[nodiscard]] std::size_t band_end(position query, std::size_t age) const noexcept {
    return query >= ages_[age] ? std::size_t{query} - ages_[age] + 1 : 0;
  }
  // 1 / sum in 29 significant bits. Its product with a float (24 bits) is exact in a double, so a
  // compiler that fuses it into the addition gives the same bytes as one that does not. The error,
  // under 2^-28 of a row's mass, is the profiler's only rounding beside that of its sums.
  [[nodiscard]] static double short_inverse(double sum) noexcept {
    constexpr std::uint64_t low_bits = (std::uint64_t{1} << 24) - 1;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0 / sum) & ~low_bits);
  }

  std::vector<token_count> ages_;  // ascending, finite
  std::size_t keys_ = 0;
  std::vector<double> mass_;  // [ages, keys]
};

HEADWISE_NAMESPACE_END
