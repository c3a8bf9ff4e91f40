// SPDX-License-Identifier: Apache-2.0
//
// The heavy hitters of one head, done the plain way: for every length so far a copy of all scores
// and of the set of members. Scores are float, as the library says; what is added to what and who
// competes when is worked out here anew.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

#include "headwise/core/types.hpp"

namespace headwise_tests {

using headwise::position;
using headwise::token_count;

class reference_ranking {
 public:
  explicit reference_ranking(token_count pool_rows) : pool_rows_(pool_rows) {}

  [[nodiscard]] token_count pool_rows() const { return pool_rows_; }
  // Queries below have been ranked.
  [[nodiscard]] position known_until() const { return known_; }
  [[nodiscard]] bool contains(position query, position pos) const {
    const auto& members = state_at(query).members;
    return std::find(members.begin(), members.end(), pos) != members.end();
  }
  [[nodiscard]] std::size_t members(position query) const { return state_at(query).members.size(); }

  // Adds to the score that the next rank() goes by. query: what is being attended.
  void add(position query, position pos, float weight) {
    if (pending_.empty()) pending_.emplace_back(state_at(query));
    pending_.back().scores[pos] += weight;
  }
  // The candidates compete with the members; the result is what queries from `next` on see.
  void rank(position query, const std::vector<position>& candidates, position next) {
    state result = !pending_.empty() ? pending_.back() : state_at(query);
    pending_.clear();
    auto& members = result.members;
    members.insert(members.end(), candidates.begin(), candidates.end());
    std::sort(members.begin(), members.end(), [&](position a, position b) {
      const float x = result.scores[a], y = result.scores[b];
      if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
      if (std::isnan(x) || x == y) return a < b;
      return x > y;
    });
    if (members.size() > pool_rows_) members.resize(pool_rows_);
    history_[next] = std::move(result);
    known_ = next;
  }
  void rollback(token_count length) {
    pending_.clear();
    history_.erase(history_.upper_bound(length), history_.end());
    known_ = std::min<position>(known_, length);
  }

 private:
  struct state {
    std::map<position, float> scores;
    std::vector<position> members;
  };

  [[nodiscard]] const state& state_at(position query) const {
    static const state empty;
    const auto after = history_.upper_bound(query);
    return after == history_.begin() ? empty : std::prev(after)->second;
  }

  token_count pool_rows_;
  position known_ = 0;
  std::vector<state> pending_;         // at most one
  std::map<position, state> history_;  // by the first query that sees it
};

}  // namespace headwise_tests
