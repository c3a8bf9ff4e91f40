// SPDX-License-Identifier: Apache-2.0
//
// head_view: what the queries of one head see, as slabs. The engine's own kernel reads it, or
// attend/attend.hpp does.
// A view: valid until the next commit, cancel, rollback or close of its sequence. Reading is const
// and free of state, so any number of threads may read; observe() is for the one that attends.
#pragma once

#include <algorithm>
#include <span>

#include "headwise/codec/concepts.hpp"
#include "headwise/core/rows.hpp"
#include "headwise/store/row_table.hpp"

HEADWISE_NAMESPACE_BEGIN

template <row_codec Key, row_codec Value>
class head_view {
 public:
  using key_codec = Key;
  using value_codec = Value;

  // observed: the pool that an open step shows its attention to, or nullptr.
  head_view(std::span<const detail::token_stream> streams, const detail::ranked_pool* pool,
            detail::ranked_pool* observed, std::uint32_t head_dim, std::uint32_t group_size,
            position first_query, position last_query) noexcept
      : streams_(streams),
        pool_(pool),
        observed_(observed),
        head_dim_(head_dim),
        group_size_(group_size),
        first_query_(first_query),
        last_query_(last_query) {}

  [[nodiscard]] std::uint32_t head_dim() const noexcept { return head_dim_; }
  // Query heads that read this head.
  [[nodiscard]] std::uint32_t group_size() const noexcept { return group_size_; }
  // The first query that is answered exactly: of the open step, else the newest of the sequence
  // (or as far back as rollback_horizon says); after a rollback perhaps only the next one.
  [[nodiscard]] position first_query() const noexcept { return first_query_; }
  // The last one: the newest token of the open step, else the token that comes next. On a head that
  // ranks, the first that has not been observed: what later ones see depends on it.
  [[nodiscard]] position last_query() const noexcept {
    return pool_ == nullptr ? last_query_ : std::min(last_query_, pool_->next_query());
  }
  // Rows held, whether or not a query sees them: no query sees more. O(streams).
  [[nodiscard]] std::size_t resident_rows() const noexcept {
    std::size_t count = 0;
    for (const auto& stream : streams_) count += stream.rows();
    return count + (pool_ == nullptr ? 0 : pool_->rows());
  }

  // The row of the query itself was appended, so that it can attend. O(streams).
  [[nodiscard]] bool shows_own_row(position query) const noexcept {
    return std::any_of(streams_.begin(), streams_.end(),
                       [&](const detail::token_stream& stream) { return stream.holds(query); });
  }
  // fn(const slab&) for the rows that `query` sees: those with sees(query, pos, lifetime), and the
  // heavy hitters of a head that ranks. Streams by ascending lifetime, each oldest first, then the
  // heavy hitters. query: first_query() .. last_query(). O(pages + heavy hitters).
  template <class Fn>
  void for_each_slab(position query, Fn&& fn) const {
    check_queries(query, query);
    for (const auto& stream : streams_) stream.for_each_slab(query, query, fn);
    if (pool_ != nullptr) pool_->for_each_slab(query, streams_, fn);
  }
  // fn(const slab&, lifetime) for the rows that any query of first .. last sees, on a head that
  // does not rank: query q sees those with sees(q, pos, lifetime), which lie side by side in the
  // slab.
  template <class Fn>
  void for_each_slab(position first, position last, Fn&& fn) const {
    HEADWISE_EXPECTS(!ranks(), "what a head that ranks shows is known for one query at a time");
    check_queries(first, last);
    for (const auto& stream : streams_) {
      const auto visit = [&](const slab& s) { fn(s, stream.lifetime()); };
      stream.for_each_slab(first, last, visit);
    }
  }
  // The head has heavy hitters, so its queries attend one by one.
  [[nodiscard]] bool ranks() const noexcept { return pool_ != nullptr; }

  // Finds rows at ascending positions, for those who copy them: find(position) is a slab of one
  // row, or nullopt where no stream holds it (heavy hitters are not looked for). O(streams) each.
  class row_finder {
   public:
    explicit row_finder(const head_view& view) noexcept : streams_(view.streams_.size()) {
      for (std::size_t s = 0; s < streams_; ++s)
        cursors_[s] = detail::token_stream::cursor(view.streams_[s]);
    }
    [[nodiscard]] std::optional<slab> find(position pos) noexcept {
      for (std::size_t s = 0; s < streams_; ++s)
        if (const auto found = cursors_[s].find(pos)) return found->row;
      return std::nullopt;
    }

   private:
    std::size_t streams_;
    detail::by_stream<detail::token_stream::cursor> cursors_{};
  };

  // The attention of `query` decides about heavy hitters and has not been counted: attend does so,
  // or the engine by observe().
  [[nodiscard]] bool awaits_attention(position query) const noexcept {
    return observed_ != nullptr && observed_->is_shown() && query == observed_->next_query() &&
           query <= last_query_;
  }
  // weights: the probabilities of `query`, [query heads, rows seen] in the order of for_each_slab
  // (or their sum over the group, [1, rows seen]). Queries in order, each once. O(rows + pool).
  void observe(position query, rows<const float> weights) const noexcept {
    HEADWISE_EXPECTS(awaits_attention(query),
                     "observe is for the next query of an open step on a head that ranks");
    HEADWISE_EXPECTS(weights.count == 1 || weights.count == group_size_,
                     "observe takes the weights of the whole group, or their sum");
    observed_->observe(query, weights, streams_);
  }
  // fn(position, score): the attention that each row drew so far, for the rows that the next query
  // may see and that may yet compete; none on a head that does not rank.
  template <class Fn>
  void for_each_score(Fn&& fn) const {
    if (pool_ != nullptr) pool_->for_each_scored(streams_, fn);
  }

 private:
  void check_queries([[maybe_unused]] position first, [[maybe_unused]] position last) const {
    HEADWISE_EXPECTS(first >= first_query_, "a query asks for rows that may be gone by now");
    HEADWISE_EXPECTS(first <= last && last <= last_query_,
                     "a query lies beyond the tokens that were appended");
    HEADWISE_EXPECTS(
        last <= last_query(),
        "a head that ranks is asked before the attention of earlier queries was shown");
  }

  std::span<const detail::token_stream> streams_;
  const detail::ranked_pool* pool_;
  detail::ranked_pool* observed_;
  std::uint32_t head_dim_;
  std::uint32_t group_size_;
  position first_query_;
  position last_query_;
};

HEADWISE_NAMESPACE_END
