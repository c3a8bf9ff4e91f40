// SPDX-License-Identifier: Apache-2.0
//
// recovery_table: what each candidate policy keeps, measured: the recovery of every query head
// [layers, query_heads, candidates], and the rows that a cache would hold [candidates]. A value
// that can be filled prompt by prompt and merged; the empty table is the identity of merge.
//
// Recovery is the mean over the calibration queries of the mass on visible keys. The table keeps
// the mass lost: nothing lost is a recovery of exactly 1, and no recovery is above 1.
//
// Harm is the mean over the prompts of the share lost to the fourth power: what is lost much in one
// prompt is worse than what is lost a little in all of them.
//
// add_prompt, add_map O(candidates), add_lost O(1), merge O(size), every question O(1). Memory
// O(layers * query_heads * candidates), whatever the number of prompts. Heads and candidates that
// the table does not have are a broken contract (checked at level 1). One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headwise/profile/held_heads.hpp"

HEADWISE_NAMESPACE_BEGIN

// What a cache of one policy holds of one prompt that is cut or continued to the stated length.
struct resident_count {
  std::uint64_t rows = 0;     // tokens that the query at length - 1 sees
  std::uint64_t forever = 0;  // tokens behind the sinks whose lifetime is forever
  std::uint64_t behind = 0;   // tokens behind the sinks
  friend bool operator==(const resident_count&, const resident_count&) = default;
};

// lost: a share, from 0 to 1.
[[nodiscard]] constexpr double harm_of_loss(double lost) noexcept {
  const double square = lost * lost;
  return square * square;
}

class recovery_table {
 public:
  recovery_table() = default;
  recovery_table(const model_shape& shape, std::size_t candidates, head_share share = {})
      : heads_(shape, share),
        candidates_(candidates),
        lost_(heads_.size() * candidates, 0.0),
        harm_(lost_.size(), 0.0),
        queries_(heads_.size(), 0),
        resident_(candidates) {}

  [[nodiscard]] std::size_t candidates() const noexcept { return candidates_; }
  [[nodiscard]] std::uint64_t prompts() const noexcept { return prompts_; }
  // Of one query head, over all prompts.
  [[nodiscard]] std::uint64_t queries(std::uint32_t layer,
                                      std::uint32_t query_head) const noexcept {
    return queries_[index(layer, query_head)];
  }

  // counts: [candidates].
  void add_prompt(std::span<const resident_count> counts) noexcept {
    HEADWISE_EXPECTS(counts.size() == candidates_, "one count for each candidate");
    for (std::size_t c = 0; c < candidates_; ++c) add(resident_[c], counts[c]);
    ++prompts_;
  }
  // lost: [candidates], summed over `queries` queries of one map, which is all of its prompt.
  void add_map(std::uint32_t layer, std::uint32_t query_head, std::span<const double> lost,
               std::uint64_t queries) noexcept {
    HEADWISE_EXPECTS(lost.size() == candidates_, "one lost mass for each candidate");
    for (std::size_t c = 0; c < candidates_; ++c) add_lost(layer, query_head, c, lost[c], queries);
    queries_[index(layer, query_head)] += queries;
  }
  // The same of one candidate, of which add_map() was told that nothing is lost.
  void add_lost(std::uint32_t layer, std::uint32_t query_head, std::size_t candidate, double lost,
                std::uint64_t queries) noexcept {
    HEADWISE_EXPECTS(candidate < candidates_, "there is no such candidate in the table");
    if (queries == 0) return;
    const std::size_t at = index(layer, query_head) * candidates_ + candidate;
    lost_[at] += lost;
    harm_[at] += harm_of_loss(std::clamp(lost / static_cast<double>(queries), 0.0, 1.0));
  }
  // Whether both were told of the same prompts, as far as residents show.
  [[nodiscard]] bool has_prompts_of(const recovery_table& other) const noexcept {
    return prompts_ == other.prompts_ && resident_ == other.resident_;
  }
  // Of all heads, of parts that each measured its share of them on the same prompts.
  [[nodiscard]] static recovery_table join(const model_shape& shape,
                                           std::span<const recovery_table* const> parts) {
    recovery_table whole(shape, parts.front()->candidates_);
    whole.prompts_ = parts.front()->prompts_;
    whole.resident_ = parts.front()->resident_;
    for (const recovery_table* const part : parts)
      part->heads_.for_each([&](std::uint32_t layer, std::uint32_t query_head) {
        const std::size_t from = part->index(layer, query_head);
        const std::size_t to = whole.index(layer, query_head);
        whole.queries_[to] = part->queries_[from];
        const auto copy = [&](const std::vector<double>& of_part, std::vector<double>& of_whole) {
          std::copy_n(of_part.data() + from * whole.candidates_, whole.candidates_,
                      of_whole.data() + to * whole.candidates_);
        };
        copy(part->lost_, whole.lost_);
        copy(part->harm_, whole.harm_);
      });
    return whole;
  }
  // Throws error(shape_mismatch) where the two were made for other heads or candidates.
  void merge(const recovery_table& other) {
    if (other.lost_.empty()) return;
    if (lost_.empty()) {
      *this = other;
      return;
    }
    if (other.lost_.size() != lost_.size() || other.candidates_ != candidates_)
      raise(error_code::shape_mismatch, "recovery_table.merge",
            std::to_string(other.lost_.size()) + " recoveries of " +
                std::to_string(other.candidates_) + " candidates",
            std::to_string(lost_.size()) + " of " + std::to_string(candidates_));
    for (std::size_t i = 0; i < lost_.size(); ++i) {
      lost_[i] += other.lost_[i];
      harm_[i] += other.harm_[i];
    }
    for (std::size_t i = 0; i < queries_.size(); ++i) queries_[i] += other.queries_[i];
    for (std::size_t c = 0; c < candidates_; ++c) add(resident_[c], other.resident_[c]);
    prompts_ += other.prompts_;
  }

  // Summed over queries.
  [[nodiscard]] double lost_mass(std::uint32_t layer, std::uint32_t query_head,
                                 std::size_t candidate) const noexcept {
    HEADWISE_EXPECTS(candidate < candidates_, "there is no such candidate in the table");
    return lost_[index(layer, query_head) * candidates_ + candidate];
  }
  // regained: lost mass that the candidate does not lose after all, since ids were added to it.
  [[nodiscard]] double recovery(std::uint32_t layer, std::uint32_t query_head,
                                std::size_t candidate, double regained = 0.0) const noexcept {
    const double count = static_cast<double>(queries(layer, query_head));
    return 1.0 - std::clamp((lost_mass(layer, query_head, candidate) - regained) / count, 0.0, 1.0);
  }

  // As if what is regained were the same share of what is lost in every prompt: an estimate, too
  // low where ids serve the prompts that lose little.
  [[nodiscard]] double harm(std::uint32_t layer, std::uint32_t query_head, std::size_t candidate,
                            double regained = 0.0) const noexcept {
    const double lost = lost_mass(layer, query_head, candidate);
    if (!(lost > 0.0)) return 0.0;
    return harm_of_loss(std::clamp(1.0 - regained / lost, 0.0, 1.0)) *
           harm_[index(layer, query_head) * candidates_ + candidate] /
           static_cast<double>(prompts_);
  }

  // Mean over prompts of the rows held at the stated length.
  [[nodiscard]] double resident_rows(std::size_t candidate,
                                     std::uint64_t added = 0) const noexcept {
    return static_cast<double>(resident(candidate).rows + added) / static_cast<double>(prompts_);
  }
  // Share of the tokens behind the sinks that never leave; 1 where no token is behind them.
  [[nodiscard]] double forever_fraction(std::size_t candidate,
                                        std::uint64_t added = 0) const noexcept {
    const resident_count& counts = resident(candidate);
    return counts.behind == 0
               ? 1.0
               : static_cast<double>(counts.forever + added) / static_cast<double>(counts.behind);
  }

 private:
  [[nodiscard]] std::size_t index(std::uint32_t layer, std::uint32_t query_head) const noexcept {
    HEADWISE_EXPECTS(heads_.holds(layer, query_head), "there is no such query head in the table");
    return heads_.index(layer, query_head);
  }
  [[nodiscard]] const resident_count& resident(std::size_t candidate) const noexcept {
    HEADWISE_EXPECTS(candidate < candidates_, "there is no such candidate in the table");
    return resident_[candidate];
  }
  static void add(resident_count& sum, const resident_count& more) noexcept {
    sum.rows += more.rows;
    sum.forever += more.forever;
    sum.behind += more.behind;
  }

  held_heads heads_;
  std::size_t candidates_ = 0;
  std::uint64_t prompts_ = 0;
  std::vector<double> lost_;              // [heads, candidates]
  std::vector<double> harm_;              // [heads, candidates], summed over prompts
  std::vector<std::uint64_t> queries_;    // [heads]
  std::vector<resident_count> resident_;  // [candidates], summed over prompts
};

HEADWISE_NAMESPACE_END
