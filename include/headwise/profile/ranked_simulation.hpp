// SPDX-License-Identifier: Apache-2.0
//
// ranked_simulation: what a cache keeps of one prompt on one KV head whose policy ranks, by the
// recorded attention of the group. The rule is that of store/ranked_pool.hpp (H2O,
// arXiv:2306.14048): query i sees the tokens with sees(i, pos, lifetime) and the members of the
// pool; what it gave them, renormalised over what it sees as in a decode with this very policy, is
// added to their scores over the group's query heads; then the tokens whose lifetime ends with i
// compete by ranks_below().
//
// Scores are double, where a cache adds float: the two may part where scores differ by less than
// the rounding of float.
//
//   ranked_simulation head(lifetimes, pool_rows);      // [keys]
//   for each query: head.attend(weights, seen_mass);   // [group, keys], [group]
//                   head.kept()                        // for the next query, beside its own token
//
// A query: O(seen * group + lifetimes * (seen + pool)), whatever the number of keys; lifetimes
// being the distinct finite ones. Memory O(keys). One thread at a time.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "headwise/core/rows.hpp"
#include "headwise/core/types.hpp"

HEADWISE_NAMESPACE_BEGIN

class ranked_simulation {
 public:
  // lifetimes: [keys], of the prompt's tokens. pool_rows: 0 is no pool.
  ranked_simulation(std::vector<token_count> lifetimes, token_count pool_rows)
      : lifetimes_(std::move(lifetimes)),
        finite_(lifetimes_),
        scores_(lifetimes_.size(), 0.0),
        pool_rows_(pool_rows) {
    std::sort(finite_.begin(), finite_.end());
    finite_.erase(std::unique(finite_.begin(), finite_.end()), finite_.end());
    if (!finite_.empty() && finite_.back() == forever) finite_.pop_back();
  }

  [[nodiscard]] position next_query() const noexcept { return next_query_; }
  // What the next query sees beside its own token, ascending.
  [[nodiscard]] std::span<const position> kept() const noexcept { return kept_; }

  // The next query attends. weights: [query heads of the group, keys], by position; only what it
  // sees is read. seen_mass: [query heads], set to the sums of that. Where all of it is 0 there is
  // nothing to renormalise: such a query head adds to no score.
  void attend(rows<const float> weights, std::span<double> seen_mass) {
    HEADWISE_EXPECTS(next_query_ < lifetimes_.size(), "there is no further query");
    HEADWISE_EXPECTS(weights.count == seen_mass.size(), "one mass for each query head");
    kept_.push_back(next_query_);
    for (std::size_t head = 0; head < weights.count; ++head) {
      const float* const row = weights[head].data();
      double sum = 0.0;
      for (const position pos : kept_) sum += static_cast<double>(row[pos]);
      seen_mass[head] = sum;
    }
    for (const position pos : kept_) {
      double sum = 0.0;
      for (std::size_t head = 0; head < weights.count; ++head)
        if (seen_mass[head] > 0.0) sum += static_cast<double>(weights[head][pos]) / seen_mass[head];
      scores_[pos] += sum;
    }
    expire();
  }

 private:
  // The tokens whose lifetime ends with the query compete.
  void expire() {
    const position after = ++next_query_;
    for (const token_count lifetime : finite_) {
      if (lifetime > after) break;
      const position pos = after - lifetime;
      if (lifetimes_[pos] == lifetime) compete(pos);
    }
  }
  void compete(position pos) {
    if (members_.size() < pool_rows_) {
      members_.push_back(pos);
      return;
    }
    const auto low = std::min_element(members_.begin(), members_.end(),
                                      [&](position a, position b) { return is_below(a, b); });
    if (low == members_.end() || is_below(pos, *low)) {
      drop(pos);
    } else {
      drop(*low);
      *low = pos;
    }
  }
  [[nodiscard]] bool is_below(position a, position b) const noexcept {
    return ranks_below(scores_[a], a, scores_[b], b);
  }
  void drop(position pos) noexcept {
    kept_.erase(std::lower_bound(kept_.begin(), kept_.end(), pos));
  }

  std::vector<token_count> lifetimes_;  // [keys]
  std::vector<token_count> finite_;     // the distinct finite ones, ascending
  std::vector<double> scores_;          // [keys]
  std::vector<position> kept_;          // ascending
  std::vector<position> members_;       // of the pool, at most pool_rows_
  token_count pool_rows_;
  position next_query_ = 0;
};

HEADWISE_NAMESPACE_END
