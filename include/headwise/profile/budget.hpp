// SPDX-License-Identifier: Apache-2.0
//
// The rule for those who state what they can spend: of each head one choice, so that all together
// hold at most so many rows and do the least harm. FastGen's rule (classify.hpp, arXiv:2310.01801)
// asks the same of every head, whatever it costs; here rows go where they bring most. Solved
// exactly, but for rows being counted in 16,384ths of the budget.
//
// Harm is the lost share of attention to the fourth power: a head that loses much is worse than
// many that lose a little. Measured on SmolLM2-135M, 40 % of the rows at 1,024 tokens, 4,096 tokens
// of WikiText-2: perplexity 22.44 with the lost share itself (and one window fewer to choose from),
// 22.31 with its square, 22.16 with its fourth, 22.17 with its eighth and sixteenth power; 21.19
// with every row.
//
// scopes: [heads, or layers][offers]. O(scopes * offers * 16,384), memory O(scopes * 16,384). Pure:
// any number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "headwise/profile/classify.hpp"

HEADWISE_NAMESPACE_BEGIN

[[nodiscard]] inline double harm_of(double recovery) noexcept {
  const double lost = 1.0 - recovery;
  return lost * lost * lost * lost;
}

namespace detail {

// Of one scope, the indices of the offers that recover enough and that no other one beats: from the
// fewest rows to the most, each doing less harm than the one before.
[[nodiscard]] inline std::vector<std::size_t> efficient_offers(std::span<const offer> offers,
                                                               double required) {
  std::vector<std::size_t> all, kept;
  for (std::size_t i = 0; i < offers.size(); ++i)
    if (offers[i].recovery >= required) all.push_back(i);
  std::sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(offers[a].rows, offers[a].harm, a) <
           std::tuple(offers[b].rows, offers[b].harm, b);
  });
  for (const std::size_t i : all)
    if (kept.empty() || offers[i].harm < offers[kept.back()].harm) kept.push_back(i);
  return kept;
}

// For every capacity up to the budget, and for every scope, the choice that does least harm
// together with the best ones of the scopes before it.
class budget_table {
 public:
  static constexpr std::size_t units = std::size_t{1} << 14;  // of the budget

  budget_table(std::span<const std::vector<offer>> scopes, double required, double rows)
      : scopes_(scopes),
        rows_(rows),
        harm_(units + scopes.size() + 1, 0.0) {  // rounded down, costs sum to more than the budget
    for (const std::vector<offer>& offers : scopes) {
      efficient_.push_back(efficient_offers(offers, required));
      picks_.emplace_back(harm_.size(), 0);
      add_scope(offers);
    }
  }

  // The offers of the scopes, by index. Costs are rounded, so the best choice for all units may be
  // too many rows, and the one for fewer is asked.
  [[nodiscard]] std::vector<std::size_t> choose() const {
    for (std::size_t capacity = harm_.size(); capacity-- > 0 && std::isfinite(harm_[capacity]);) {
      std::vector<std::size_t> chosen = trace(capacity);
      double rows = 0.0;
      for (std::size_t s = 0; s < scopes_.size(); ++s) rows += scopes_[s][chosen[s]].rows;
      if (rows <= rows_) return chosen;
    }
    std::vector<std::size_t> fewest_rows;
    for (const std::vector<std::size_t>& offers : efficient_) fewest_rows.push_back(offers.front());
    return fewest_rows;
  }

 private:
  [[nodiscard]] std::size_t cost(const offer& o) const noexcept {
    return static_cast<std::size_t>(std::lround(std::min(o.rows / rows_, 2.0) * units));
  }
  void add_scope(const std::vector<offer>& offers) {
    std::vector<double> with(harm_.size(), std::numeric_limits<double>::infinity());
    for (std::uint32_t pick = 0; pick < efficient_.back().size(); ++pick) {
      const offer& o = offers[efficient_.back()[pick]];
      const std::size_t spent = cost(o);
      for (std::size_t capacity = spent; capacity < harm_.size(); ++capacity) {
        const double harm = harm_[capacity - spent] + o.harm;
        if (!(harm < with[capacity])) continue;
        with[capacity] = harm;
        picks_.back()[capacity] = pick;
      }
    }
    harm_.swap(with);
  }
  [[nodiscard]] std::vector<std::size_t> trace(std::size_t capacity) const {
    std::vector<std::size_t> chosen(scopes_.size());
    for (std::size_t s = scopes_.size(); s-- > 0;) {
      chosen[s] = efficient_[s][picks_[s][capacity]];
      capacity -= cost(scopes_[s][chosen[s]]);
    }
    return chosen;
  }

  std::span<const std::vector<offer>> scopes_;
  double rows_;
  std::vector<double> harm_;                         // [capacities]; infinity: it does not suffice
  std::vector<std::vector<std::size_t>> efficient_;  // [scopes][efficient offers]
  std::vector<std::vector<std::uint32_t>> picks_;    // [scopes, capacities]
};

}  // namespace detail

// Of each scope the index of one offer that recovers at least `required`: all of them hold at most
// `rows` rows, and no such choice within rows * (1 - scopes / 16384) does less harm. Each scope has
// an offer that recovers everything. Throws error(out_of_range) where those with the fewest rows
// hold more.
[[nodiscard]] inline std::vector<std::size_t> least_harm(std::span<const std::vector<offer>> scopes,
                                                         double required, double rows) {
  double least = 0.0;
  for (const std::vector<offer>& offers : scopes) {
    const std::optional<std::size_t> choice = cheapest(offers, required);
    HEADWISE_EXPECTS(choice.has_value(), "global is a candidate and always passes");
    least += offers[*choice].rows;
  }
  if (!(least <= rows))
    raise(error_code::out_of_range, "budget", std::to_string(rows) + " rows",
          "at least " + std::to_string(least) + ", which the heads need for what each is owed");
  return detail::budget_table(scopes, required, rows).choose();
}

HEADWISE_NAMESPACE_END
