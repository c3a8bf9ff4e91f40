// SPDX-License-Identifier: Apache-2.0
//
// The naive cache that the real one is held against: for each head a plain list of every token, of
// which a query at q sees those with pos <= q and q - pos < lifetime, and the heavy hitters of that
// query (reference_ranking.hpp). It also remembers which rows a real cache has given up, since that
// decides which rollbacks are possible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headwise/core/types.hpp"
#include "headwise/manager/cache_config.hpp"
#include "support/reference_ranking.hpp"

namespace headwise_tests {

using headwise::token;

using lifetime_rule = std::function<token_count(const token&)>;

struct reference_payload {
  std::vector<std::byte> key_bytes, value_bytes;  // encoded
  std::vector<float> key, value;                  // decoded again: what a kernel computes with
};

struct reference_row {
  position pos = 0;
  token_count lifetime = 0;
  bool freed = false;
  std::shared_ptr<const reference_payload> payload;  // null until the head is written
};

class reference_cache {
 public:
  // pools: [heads], rows of heavy hitters; 0 where a head does not rank.
  reference_cache(std::vector<lifetime_rule> rules, const std::vector<token_count>& pools,
                  token_count horizon)
      : rules_(std::move(rules)), heads_(rules_.size()), horizon_(horizon) {
    for (const token_count pool : pools) rankings_.emplace_back(pool);
  }

  [[nodiscard]] token_count length() const { return length_; }
  [[nodiscard]] std::size_t heads() const { return heads_.size(); }
  // Those of the open step included.
  [[nodiscard]] std::span<const token> tokens() const { return tokens_; }
  [[nodiscard]] const std::shared_ptr<const reference_payload>& payload(std::size_t head,
                                                                        position pos) const {
    return heads_[head][pos].payload;
  }
  // The first query that must be answered: the later of what the rule asks for and what earlier
  // commits have left (a rollback does not bring rows back).
  [[nodiscard]] position first_query(std::size_t head) const {
    const position from = step_ ? step_->from : keep_from_;
    if (!ranks(head)) return from;
    return std::max(from, step_ && step_->prompt ? length_ + step_->count - 1 : ranked_from_);
  }
  [[nodiscard]] bool ranks(std::size_t head) const { return rankings_[head].pool_rows() > 0; }

  [[nodiscard]] bool has_full_pool(std::size_t head, position query) const {
    return ranks(head) && rankings_[head].members(query) == rankings_[head].pool_rows();
  }

  void begin(std::span<const token> tokens, headwise::attend_scope scope) {
    const auto count = static_cast<token_count>(tokens.size());
    const position attending =
        scope == headwise::attend_scope::every_query ? length_ : length_ + count - 1;
    const position from =
        count == 0 ? keep_from_ : std::max(keep_from_, std::min(attending, floor(length_ + count)));
    step_ = step{count, from, scope == headwise::attend_scope::last_query && count > 0};
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    for (std::size_t head = 0; head < heads_.size(); ++head)
      for (const token& t : tokens)
        heads_[head].push_back({t.pos, rules_[head](t), false, nullptr});
  }
  void write(std::size_t head, std::size_t i, std::shared_ptr<const reference_payload> payload) {
    heads_[head][length_ + i].payload = std::move(payload);
  }
  // weights: what the query gave to each row that it sees, ascending by position.
  void observe(std::size_t head, position query, std::span<const float> weights) {
    std::vector<const reference_row*> seen;
    visible(head, query, seen);
    for (std::size_t i = 0; i < seen.size(); ++i)
      rankings_[head].add(query, seen[i]->pos, weights[i]);
    rank_after(head, query);
  }
  // The prompt's column sums, by position: added to whatever the first query could still rank, and
  // all that the newest query cannot see is ranked once.
  void observe_prompt(std::size_t head, std::span<const float> column_sums) {
    const position newest = length_ + step_->count - 1;
    reference_ranking& ranking = rankings_[head];
    std::vector<position> candidates;
    for (const reference_row& row : heads_[head]) {
      const bool member = ranking.contains(length_, row.pos);
      if (!member && row.pos < length_ && !sees(length_, row)) continue;
      ranking.add(length_, row.pos, column_sums[row.pos]);
      if (!member && !sees(newest, row)) candidates.push_back(row.pos);
    }
    if (newest > length_) ranking.rank(length_, candidates, newest);
  }
  // A prompt's newest query competes too, whether or not anybody observed it.
  void rank_after(std::size_t head, position query) {
    std::vector<position> candidates;
    for (const reference_row& row : heads_[head])
      if (row.pos <= query && std::uint64_t{query} + 1 == std::uint64_t{row.pos} + row.lifetime)
        candidates.push_back(row.pos);
    rankings_[head].rank(query, candidates, query + 1);
  }
  void cancel() {
    tokens_.resize(length_);
    for (auto& rows : heads_) rows.resize(length_);
    for (reference_ranking& ranking : rankings_) ranking.rollback(length_);
    step_.reset();
  }
  void commit() {
    length_ += step_->count;
    if (step_->count > 0) {
      keep_from_ = std::max(keep_from_, std::min<position>(length_ - 1, floor(length_)));
      undo_floor_ = std::max(undo_floor_, step_->prompt ? length_ : floor(length_));
      if (step_->prompt) ranked_from_ = length_ - 1;
      for (std::size_t head = 0; head < heads_.size(); ++head)
        if (ranks(head) && rankings_[head].known_until() < length_) rank_after(head, length_ - 1);
    }
    settled_ = std::max(keep_from_, ranked_from_);
    for (auto& rows : heads_)
      for (reference_row& row : rows) row.freed = row.freed || !visible_from(row, keep_from_);
    step_.reset();
  }

  enum class verdict { must_succeed, may_refuse, must_refuse };
  // may_refuse: nothing that the next query sees is gone, but the rollback passes the newest freed
  // token of one lifetime, behind which a real cache need not look.
  [[nodiscard]] verdict judge_rollback(token_count length) const {
    verdict result = verdict::must_succeed;
    const bool any_ranks = std::any_of(rankings_.begin(), rankings_.end(),
                                       [](const auto& r) { return r.pool_rows() > 0; });
    if (any_ranks && length != 0 && length < undo_floor_) return verdict::must_refuse;
    for (const auto& rows : heads_)
      for (const reference_row& row : rows) {
        if (!row.freed || row.lifetime == 1) continue;
        if (row.pos < length && sees(length, row)) return verdict::must_refuse;
        if (row.pos >= length && length > 0) result = verdict::may_refuse;
      }
    return result;
  }
  void rollback(token_count length) {
    tokens_.resize(length);
    for (auto& rows : heads_) rows.resize(length);
    for (reference_ranking& ranking : rankings_) ranking.rollback(length);
    length_ = length;
    keep_from_ = std::min(keep_from_, length);
    if (length == 0) undo_floor_ = ranked_from_ = settled_ = 0;
  }

  // What the query sees, ascending by position. Rows of the open step count once written.
  void visible(std::size_t head, position query, std::vector<const reference_row*>& out) const {
    out.clear();
    for (const reference_row& row : heads_[head])
      if (row.payload && (sees(query, row) || rankings_[head].contains(query, row.pos)))
        out.push_back(&row);
  }
  // Of the open step, once its column sums are known: whether the head needs the row of a token,
  // for its streams or as a heavy hitter of the prompt.
  [[nodiscard]] bool stores(std::size_t head, position pos) const {
    return visible_from(heads_[head][pos], step_->from) ||
           rankings_[head].contains(length_ + step_->count - 1, pos);
  }
  // Between steps: whether a stream of the head holds the row; heavy hitters are not meant.
  [[nodiscard]] bool streams_hold(std::size_t head, position pos) const {
    return !heads_[head][pos].freed;
  }
  // Committed rows that must be held.
  [[nodiscard]] std::size_t resident(std::size_t head) const {
    const auto& rows = heads_[head];
    const auto held =
        std::count_if(rows.begin(), rows.end(), [](const auto& row) { return !row.freed; });
    return static_cast<std::size_t>(held) + rankings_[head].members(settled_);
  }
  [[nodiscard]] std::size_t resident() const {
    std::size_t sum = 0;
    for (std::size_t head = 0; head < heads_.size(); ++head) sum += resident(head);
    return sum;
  }

 private:
  struct step {
    token_count count;
    position from;
    bool prompt;
  };

  [[nodiscard]] static bool sees(position query, const reference_row& row) {
    return row.pos <= query && query - row.pos < row.lifetime;
  }
  [[nodiscard]] static bool visible_from(const reference_row& row, position first) {
    return row.pos >= first || sees(first, row);
  }
  [[nodiscard]] position floor(token_count length) const {
    return length > horizon_ ? length - horizon_ : 0;
  }

  std::vector<lifetime_rule> rules_;               // [heads]
  std::vector<token> tokens_;                      // [length + open step]
  std::vector<std::vector<reference_row>> heads_;  // [heads][length + open step]
  std::vector<reference_ranking> rankings_;        // [heads]
  token_count horizon_;
  token_count length_ = 0;
  position keep_from_ = 0;
  position undo_floor_ = 0;
  position ranked_from_ = 0;
  position settled_ = 0;
  std::optional<step> step_;
};

}  // namespace headwise_tests
