// SPDX-License-Identifier: Apache-2.0
//
// Which token ids to keep for a head: one at a time, the id that brings most mass back per row that
// it costs, to the query head that needs it, until the candidate passes or has its most ids. What
// is learned of an id is additive, so the recovery with the ids is that of the policy, not an
// estimate, but for the rounding of sums. The harm with them is one (recovery_table.hpp).
//
// For the KV heads that share a choice: O(ids learned * ids seen * query heads), memory O(ids seen
// * query heads). Reads a measurement that nobody changes meanwhile: any number of threads, each
// with its own search. The learned sets are an extension of FastGen's special tokens
// (arXiv:2310.01801).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headwise/profile/classify.hpp"
#include "headwise/profile/measurement.hpp"

HEADWISE_NAMESPACE_BEGIN

// The KV heads that share one choice: one, or all of a layer.
struct head_scope {
  std::uint32_t layer = 0;
  std::uint32_t first_kv_head = 0;
  std::uint32_t kv_heads = 1;
};

namespace detail {

class id_search {
 public:
  // candidate: in the table; learner: the same candidate among those that learn.
  id_search(const measurement& sums, const model_shape& shape, head_scope scope,
            std::size_t candidate, std::size_t learner, group_aggregation aggregation)
      : sums_(sums),
        scope_(scope),
        group_(shape.group_size()),
        candidate_(candidate),
        learner_(learner),
        aggregation_(aggregation),
        regained_(std::size_t{scope.kv_heads} * group_, 0.0),
        recoveries_(regained_.size()) {
    update_recoveries();
  }

  void run(double required, std::size_t max_ids) {
    while (slots_.size() < max_ids && recovery(worst_kv_head()) < required) {
      if (gains_.empty()) gather_gains();
      const std::uint32_t slot = best_slot();
      if (slot == learned_mass::no_slot) return;
      slots_.push_back(slot);
      for (std::size_t head = 0; head < regained_.size(); ++head)
        regained_[head] += gain(head, slot);
      update_recoveries();
    }
  }

  // kv_head: from 0 to the scope's kv_heads - 1.
  [[nodiscard]] double recovery(std::size_t kv_head) const noexcept {
    return aggregate({recoveries_.data() + kv_head * group_, group_}, aggregation_);
  }
  [[nodiscard]] double harm(std::size_t kv_head) const {
    std::vector<double> averted;  // negative: less is worse, as with recoveries
    for (std::size_t head = kv_head * group_; head < (kv_head + 1) * group_; ++head)
      averted.push_back(
          -sums_.table.harm(scope_.layer, query_head(head), candidate_, regained_[head]));
    return -aggregate(averted, aggregation_);
  }
  [[nodiscard]] judged_candidate result(std::size_t kv_head) const {
    judged_candidate judged;
    judged.recovery = recovery(kv_head);
    judged.harm = harm(kv_head);
    id_cost added;
    for (const std::uint32_t slot : slots_) {
      const id_cost cost = sums_.learned.cost(slot, learner_);
      added.rows += cost.rows;
      added.forever += cost.forever;
      judged.ids.push_back(sums_.learned.ids()[slot]);
    }
    std::sort(judged.ids.begin(), judged.ids.end());
    judged.resident_rows = sums_.table.resident_rows(candidate_, added.rows);
    judged.forever_fraction = sums_.table.forever_fraction(candidate_, added.forever);
    return judged;
  }

 private:
  [[nodiscard]] std::uint32_t query_head(std::size_t head) const noexcept {
    return static_cast<std::uint32_t>(scope_.first_kv_head * group_ + head);
  }
  [[nodiscard]] double gain(std::size_t head, std::size_t slot) const noexcept {
    return gains_[head * sums_.learned.ids().size() + slot];
  }

  void gather_gains() {
    const std::size_t ids = sums_.learned.ids().size();
    gains_.resize(regained_.size() * ids);
    for (std::uint32_t slot = 0; slot < ids; ++slot)
      for (std::size_t head = 0; head < regained_.size(); ++head)
        gains_[head * ids + slot] =
            sums_.learned.gain(slot, scope_.layer, query_head(head), learner_);
  }
  void update_recoveries() noexcept {
    for (std::size_t head = 0; head < recoveries_.size(); ++head)
      recoveries_[head] =
          sums_.table.recovery(scope_.layer, query_head(head), candidate_, regained_[head]);
  }

  [[nodiscard]] std::size_t worst_kv_head() const noexcept {
    std::size_t worst = 0;
    for (std::size_t kv_head = 1; kv_head < scope_.kv_heads; ++kv_head)
      if (recovery(kv_head) < recovery(worst)) worst = kv_head;
    return worst;
  }
  // The query heads [first, last) whose gain lifts the aggregate of the worst KV head.
  [[nodiscard]] std::pair<std::size_t, std::size_t> needy_heads() const noexcept {
    const std::size_t first = worst_kv_head() * group_;
    if (aggregation_ == group_aggregation::mean) return {first, first + group_};
    const auto begin = recoveries_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(group_);
    const auto head = aggregation_ == group_aggregation::worst ? std::min_element(begin, end)
                                                               : std::max_element(begin, end);
    const std::size_t at = static_cast<std::size_t>(head - recoveries_.begin());
    return {at, at + 1};
  }

  // Most mass per row, then most mass, then the lower id; no_slot where no id brings any mass.
  [[nodiscard]] std::uint32_t best_slot() const noexcept {
    const auto [first, last] = needy_heads();
    std::uint32_t best = learned_mass::no_slot;
    double best_rate = 0.0, best_mass = 0.0;
    const std::span<const std::int32_t> ids = sums_.learned.ids();
    for (std::uint32_t slot = 0; slot < ids.size(); ++slot) {
      double mass = 0.0;
      for (std::size_t head = first; head < last; ++head) mass += gain(head, slot);
      if (!(mass > 0.0) || std::find(slots_.begin(), slots_.end(), slot) != slots_.end()) continue;
      // An id that occurs only behind the stated length costs no row there; it counts as one, or
      // it would be preferred to any.
      const std::uint64_t rows =
          std::max<std::uint64_t>(1, sums_.learned.cost(slot, learner_).rows);
      const double rate = mass / static_cast<double>(rows);
      const bool better =
          best == learned_mass::no_slot || rate > best_rate ||
          (rate == best_rate && (mass > best_mass || (mass == best_mass && ids[slot] < ids[best])));
      if (better) best = slot, best_rate = rate, best_mass = mass;
    }
    return best;
  }

  const measurement& sums_;
  head_scope scope_;
  std::size_t group_;
  std::size_t candidate_, learner_;
  group_aggregation aggregation_;
  std::vector<double> regained_, recoveries_;  // [query heads of the scope]
  std::vector<double> gains_;                  // [query heads of the scope, ids]
  std::vector<std::uint32_t> slots_;           // chosen
};

}  // namespace detail

HEADWISE_NAMESPACE_END
