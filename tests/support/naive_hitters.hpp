// SPDX-License-Identifier: Apache-2.0
//
// The oracle of the profiler's heavy hitters: sets of positions, all sorted anew for every query.
// Of the library it uses nothing but the names of types.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <vector>

#include "headwise/core/types.hpp"

namespace headwise_tests {

using headwise::position;
using headwise::token_count;

struct naive_hitters {
  std::vector<std::set<position>> kept;   // [queries], after each of them
  std::vector<std::vector<double>> mass;  // [queries][query heads], on what the query saw
  // The least difference between two scores that were compared and not equal, relative to them.
  double margin = std::numeric_limits<double>::infinity();
};

// weights: [query heads][queries][keys], query i being at position i. lifetimes: [keys].
[[nodiscard]] inline naive_hitters follow_hitters(
    const std::vector<std::vector<std::vector<double>>>& weights,
    const std::vector<token_count>& lifetimes, token_count pool_rows) {
  naive_hitters result;
  std::vector<double> scores(lifetimes.size(), 0.0);
  std::set<position> pool;
  for (position query = 0; query < weights.front().size(); ++query) {
    std::set<position> seen = pool;
    for (position pos = 0; pos <= query; ++pos)
      if (query - pos < lifetimes[pos]) seen.insert(pos);
    std::vector<double> added(lifetimes.size(), 0.0), masses;
    for (const auto& head : weights) {
      double mass = 0.0;
      for (const position pos : seen) mass += head[query][pos];
      masses.push_back(mass);
      for (const position pos : seen)
        if (mass > 0.0) added[pos] += head[query][pos] / mass;
    }
    for (const position pos : seen) scores[pos] += added[pos];
    std::vector<position> ranked;
    for (const position pos : seen)
      if (pool.contains(pos) || query + 1 == pos + std::uint64_t{lifetimes[pos]})
        ranked.push_back(pos);
    std::sort(ranked.begin(), ranked.end(), [&](position a, position b) {
      return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
    });
    for (std::size_t i = pool_rows; i < ranked.size(); ++i) {
      const double last = pool_rows == 0 ? 0.0 : scores[ranked[pool_rows - 1]];
      if (last > scores[ranked[i]])
        result.margin = std::min(result.margin, (last - scores[ranked[i]]) / last);
      seen.erase(ranked[i]);
    }
    if (ranked.size() > pool_rows) ranked.resize(pool_rows);
    pool = std::set<position>(ranked.begin(), ranked.end());
    for (auto pos = seen.begin(); pos != seen.end();)
      pos = pool.contains(*pos) || query + 1 - *pos < lifetimes[*pos] ? std::next(pos)
                                                                      : seen.erase(pos);
    result.kept.push_back(std::move(seen));
    result.mass.push_back(std::move(masses));
  }
  return result;
}

}  // namespace headwise_tests
