// SPDX-License-Identifier: Apache-2.0
//
// The rule for those who state what they can spend: of each head one choice, so that all together
// hold at most so many rows and do the least harm. FastGen's rule (classify.hpp, arXiv:2310.01801)
// asks the same of every head, whatever it costs; here rows go where they bring most. To choose so
// is a knapsack problem (multiple choice): least_harm() takes the best of three answers, each of
// which is good where another may not be, and says what that guarantees.
//
// Harm (recovery_table.hpp) is the share of attention that a prompt loses, to the fourth power: a
// head that loses much is worse than many that lose a little, and so is a prompt. Measured on
// SmolLM2-135M, 40 % of the rows at 1,024 tokens, 4,096 tokens of WikiText-2, where prompts of one
// kind weigh alike: perplexity 22.44 with the lost share itself (and one window fewer to choose
// from), 22.31 with its square, 22.16 with its fourth, 22.17 with its eighth and sixteenth power;
// 21.19 with every row.
//
// scopes: [heads, or layers][offers]. n of them with m offers in all: O(m log m), and up to 1,024
// scopes also O(m * 16,384) with 34 KiB for each of them. Pure: any number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "headwise/profile/classify.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

struct spending {
  double rows = 0.0, harm = 0.0;
};
// chosen: [scopes], an offer of each.
[[nodiscard]] inline spending spent_on(std::span<const std::vector<offer>> scopes,
                                       std::span<const std::size_t> chosen) noexcept {
  spending sum;
  for (std::size_t s = 0; s < scopes.size(); ++s) {
    sum.rows += scopes[s][chosen[s]].rows;
    sum.harm += scopes[s][chosen[s]].harm;
  }
  return sum;
}

// Of each scope the cheapest offer that recovers `required`.
[[nodiscard]] inline std::vector<std::size_t> cheapest_of_all(
    std::span<const std::vector<offer>> scopes, double required) {
  std::vector<std::size_t> chosen;
  for (const std::vector<offer>& offers : scopes) {
    const std::optional<std::size_t> choice = cheapest(offers, required);
    HEADWISE_EXPECTS(choice.has_value(), "global is a candidate and always passes");
    chosen.push_back(*choice);
  }
  return chosen;
}

// The same recovery asked of all, as much as the rows allow: FastGen's plan of this size. What is
// required fits.
[[nodiscard]] inline std::vector<std::size_t> best_threshold(
    std::span<const std::vector<offer>> scopes, double required, double rows) {
  std::vector<double> levels{required};
  for (const std::vector<offer>& offers : scopes)
    for (const offer& o : offers)
      if (o.recovery > required) levels.push_back(o.recovery);
  std::sort(levels.begin(), levels.end());
  const auto above = std::partition_point(levels.begin() + 1, levels.end(), [&](double level) {
    return spent_on(scopes, cheapest_of_all(scopes, level)).rows <= rows;
  });
  return cheapest_of_all(scopes, *(above - 1));
}

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
using efficient_scopes = std::vector<std::vector<std::size_t>>;  // [scopes][efficient offers]

// From one offer of a scope to a larger one.
struct budget_step {
  double gain = 0.0;  // harm undone by each row more
  std::size_t scope = 0, from = 0, to = 0;
};
// The steps of a scope along the lower convex hull of harm over rows: each brings less than the one
// before.
inline void add_steps(std::span<const offer> offers, std::span<const std::size_t> efficient,
                      std::size_t scope, std::vector<budget_step>& steps) {
  const std::size_t first = steps.size();
  for (std::size_t i = 1; i < efficient.size(); ++i) {
    const auto step_from = [&](std::size_t from) {
      const offer &low = offers[from], &high = offers[efficient[i]];
      return budget_step{(low.harm - high.harm) / (high.rows - low.rows), scope, from,
                         efficient[i]};
    };
    budget_step step = step_from(efficient[i - 1]);
    for (; steps.size() > first && step.gain >= steps.back().gain; steps.pop_back())
      step = step_from(steps.back().from);
    steps.push_back(step);
  }
}

// Step by step, those first that bring most for a row, as long as they fit. Until the first that
// does not, no choice of so many rows does less harm.
[[nodiscard]] inline std::vector<std::size_t> best_gains(std::span<const std::vector<offer>> scopes,
                                                         const efficient_scopes& efficient,
                                                         double rows) {
  std::vector<std::size_t> chosen;
  std::vector<budget_step> steps, taken;
  for (std::size_t s = 0; s < scopes.size(); ++s) {
    chosen.push_back(efficient[s].front());
    add_steps(scopes[s], efficient[s], s, steps);
  }
  std::sort(steps.begin(), steps.end(), [](const budget_step& a, const budget_step& b) {
    return std::tuple(-a.gain, a.scope, a.from) < std::tuple(-b.gain, b.scope, b.from);
  });
  double spent = spent_on(scopes, chosen).rows;
  for (const budget_step& step : steps) {
    const std::vector<offer>& offers = scopes[step.scope];
    const double more = offers[step.to].rows - offers[step.from].rows;
    if (chosen[step.scope] != step.from || spent + more > rows) continue;
    chosen[step.scope] = step.to;
    spent += more;
    taken.push_back(step);
  }
  // Summed in another order they may be a rounding more.
  for (; spent_on(scopes, chosen).rows > rows; taken.pop_back())
    chosen[taken.back().scope] = taken.back().from;
  return chosen;
}

// For every capacity up to the budget, and for every scope, the choice that does least harm
// together with the best ones of the scopes before it: exact, but for rows being counted in
// 16,384ths of the budget.
class budget_table {
 public:
  static constexpr std::size_t units = std::size_t{1} << 14;  // of the budget
  static constexpr std::size_t most_scopes = 1024, most_offers = std::size_t{1} << 16;

  budget_table(std::span<const std::vector<offer>> scopes, const efficient_scopes& efficient,
               double rows)
      : scopes_(scopes),
        efficient_(efficient),
        rows_(rows),
        harm_(units + scopes.size() + 1, 0.0) {  // rounded down, costs sum to more than the budget
    for (std::size_t s = 0; s < scopes.size(); ++s) add_scope(s);
  }

  // The offers of the scopes, by index. Costs are rounded, so the best choice for all units may be
  // too many rows, and the one for fewer is asked. nullopt where no rounded choice fits.
  [[nodiscard]] std::optional<std::vector<std::size_t>> choose() const {
    for (std::size_t capacity = harm_.size(); capacity-- > 0 && std::isfinite(harm_[capacity]);) {
      std::vector<std::size_t> chosen = trace(capacity);
      if (spent_on(scopes_, chosen).rows <= rows_) return chosen;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::size_t cost(const offer& o) const noexcept {
    const double share = o.rows < 2.0 * rows_ ? o.rows / rows_ : 2.0;
    return static_cast<std::size_t>(std::lround(share * units));
  }
  void add_scope(std::size_t scope) {
    std::vector<double> with(harm_.size(), std::numeric_limits<double>::infinity());
    std::vector<std::uint16_t>& picks = picks_.emplace_back(harm_.size(), std::uint16_t{0});
    for (std::size_t pick = 0; pick < efficient_[scope].size(); ++pick) {
      const offer& o = scopes_[scope][efficient_[scope][pick]];
      const std::size_t spent = cost(o);
      for (std::size_t capacity = spent; capacity < harm_.size(); ++capacity) {
        const double harm = harm_[capacity - spent] + o.harm;
        if (!(harm < with[capacity])) continue;
        with[capacity] = harm;
        picks[capacity] = static_cast<std::uint16_t>(pick);
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
  const efficient_scopes& efficient_;
  double rows_;
  std::vector<double> harm_;                       // [capacities]; infinity: it does not suffice
  std::vector<std::vector<std::uint16_t>> picks_;  // [scopes, capacities]
};

}  // namespace detail

// Of each scope the index of one offer that recovers at least `required`, all of which hold at most
// `rows` rows. Of the choices that do, none
//   - asks the same recovery of all scopes and does less harm;
//   - does less by as much as the largest step of one scope undoes, from one of its offers to a
//     larger one: of many scopes, little;
//   - does less and holds at most rows * (1 - scopes / 16,384), where there are at most 1,024
//     scopes.
// Each scope has an offer that recovers everything. Throws error(out_of_range) where those with the
// fewest rows hold more.
[[nodiscard]] inline std::vector<std::size_t> least_harm(std::span<const std::vector<offer>> scopes,
                                                         double required, double rows) {
  const double least = detail::spent_on(scopes, detail::cheapest_of_all(scopes, required)).rows;
  if (!(least <= rows))
    raise(error_code::out_of_range, "budget", std::to_string(rows) + " rows",
          "at least " + std::to_string(least) + ", which the heads need for what each is owed");
  detail::efficient_scopes efficient;
  bool has_table = scopes.size() <= detail::budget_table::most_scopes;
  for (const std::vector<offer>& offers : scopes) {
    efficient.push_back(detail::efficient_offers(offers, required));
    has_table = has_table && efficient.back().size() <= detail::budget_table::most_offers;
  }
  std::vector<std::size_t> best = detail::best_gains(scopes, efficient, rows);
  const auto consider = [&](std::vector<std::size_t> chosen) {
    if (detail::spent_on(scopes, chosen).harm < detail::spent_on(scopes, best).harm)
      best = std::move(chosen);
  };
  consider(detail::best_threshold(scopes, required, rows));
  if (has_table)
    if (auto chosen = detail::budget_table(scopes, efficient, rows).choose())
      consider(std::move(*chosen));
  return best;
}

HEADWISE_NAMESPACE_END
