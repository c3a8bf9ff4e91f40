// SPDX-License-Identifier: Apache-2.0
//
// row_table: the rows of all heads of one sequence: a few streams for each head, and a ranked pool
// for each head that ranks. A table without such heads has no store for them.
// Heads may be used by different threads; the table itself is made by one.
#pragma once

#include <limits>
#include <utility>

#include "headwise/store/head_rows.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

class row_table {
 public:
  // lifetimes_of(head), pool_rows_of(head): of each of `heads`. Throws what the memory resource
  // throws.
  template <class LifetimesOf, class PoolRowsOf>
  row_table(std::size_t heads, const LifetimesOf& lifetimes_of, const PoolRowsOf& pool_rows_of,
            page_pool& pages, std::pmr::memory_resource* memory)
      : pages_(&pages),
        first_stream_(memory),
        streams_(memory),
        pool_of_(memory),
        pools_(count_pools(heads, pool_rows_of), memory) {
    std::size_t streams = 0;
    for (std::size_t head = 0; head < heads; ++head) streams += lifetimes_of(head).size();
    first_stream_.reserve(heads + 1);
    streams_.reserve(streams);
    if (count_pools(heads, pool_rows_of) > 0) {
      pool_of_.reserve(heads);
      pool_of_.resize(heads, no_pool);
    }
    for (std::size_t head = 0; head < heads; ++head) {
      const lifetime_set lifetimes = lifetimes_of(head);
      HEADWISE_EXPECTS(lifetimes.size() > 0 && lifetimes[0] > 0,
                       "a policy gives no lifetimes, or one below 1");
      first_stream_.push_back(static_cast<std::uint32_t>(streams_.size()));
      for (const token_count lifetime : lifetimes)
        streams_.push_back(token_stream(lifetime, pages));
    }
    first_stream_.push_back(static_cast<std::uint32_t>(streams_.size()));
    for (std::size_t head = 0; head < heads; ++head)
      if (const token_count rows = pool_rows_of(head); rows > 0) {
        pool_of_[head] = static_cast<std::uint32_t>(pools_.size());
        pools_.emplace_back(rows, std::as_const(*this).streams(head), pages, memory);
      }
  }
  row_table(const row_table&) = delete;
  row_table& operator=(const row_table&) = delete;
  ~row_table() {
    for (token_stream& stream : streams_) stream.clear();
    for (ranked_pool& pool : pools_) pool.clear();
  }
  // Gives `copy`, an empty table of the same heads, the same rows. Throws what the memory resource
  // throws; the copy then holds what was shared by that time.
  void share_with(row_table& copy) const {
    for (std::size_t i = 0; i < streams_.size(); ++i) streams_[i].share_with(copy.streams_[i]);
    for (std::size_t i = 0; i < pools_.size(); ++i) pools_[i].share_with(copy.pools_[i]);
  }

  [[nodiscard]] std::span<const token_stream> streams(std::size_t head) const noexcept {
    return {streams_.data() + first_stream_[head], streams_.data() + first_stream_[head + 1]};
  }
  // nullptr on a head that does not rank.
  [[nodiscard]] const ranked_pool* pool(std::size_t head) const noexcept {
    return pool_of_.empty() || pool_of_[head] == no_pool ? nullptr : &pools_[pool_of_[head]];
  }
  [[nodiscard]] head_rows head(std::size_t head) noexcept {
    return {{streams_.data() + first_stream_[head], streams_.data() + first_stream_[head + 1]},
            const_cast<ranked_pool*>(pool(head))};
  }
  [[nodiscard]] page_pool& pages() const noexcept { return *pages_; }

  // head_rows::holds_each_once() of all heads; a query of one that ranks is not before ranked_from.
  [[nodiscard]] bool hold_each_once(position keep_from, position ranked_from) {
    for (std::size_t h = 0; h + 1 < first_stream_.size(); ++h) {
      const head_rows rows = head(h);
      const position first = rows.pool == nullptr ? keep_from : std::max(keep_from, ranked_from);
      if (!rows.holds_each_once(first, streams_.memory())) return false;
    }
    return true;
  }

  // Of all heads.
  [[nodiscard]] std::size_t rows() const noexcept {
    std::size_t sum = 0;
    for (const token_stream& stream : streams_) sum += stream.rows();
    for (const ranked_pool& pool : pools_) sum += pool.rows();
    return sum;
  }
  [[nodiscard]] std::size_t slots() const noexcept {
    std::size_t sum = 0;
    for (const token_stream& stream : streams_) sum += stream.pages().slots();
    for (const ranked_pool& pool : pools_) sum += pool.pages() * pages_->layout().page_tokens;
    return sum;
  }
  [[nodiscard]] std::size_t page_bytes() const noexcept {
    std::size_t sum = 0;
    for (const token_stream& stream : streams_) sum += stream.pages().bytes();
    for (const ranked_pool& pool : pools_) sum += pool.pages() * pages_->layout().page_bytes();
    return sum;
  }
  // Beside the pages: tables, lists of pages, scores.
  [[nodiscard]] std::size_t table_bytes() const noexcept {
    std::size_t bytes = (first_stream_.capacity() + pool_of_.capacity()) * sizeof(std::uint32_t) +
                        streams_.capacity() * sizeof(token_stream) + pools_.held_bytes();
    for (const token_stream& stream : streams_)
      bytes += stream.pages().blocks() * pages_->block_bytes();
    for (const ranked_pool& pool : pools_) bytes += pool.metadata_bytes();
    return bytes;
  }

 private:
  static constexpr std::uint32_t no_pool = std::numeric_limits<std::uint32_t>::max();

  template <class PoolRowsOf>
  [[nodiscard]] static std::size_t count_pools(std::size_t heads, const PoolRowsOf& pool_rows_of) {
    std::size_t count = 0;
    for (std::size_t head = 0; head < heads; ++head) count += pool_rows_of(head) > 0 ? 1U : 0U;
    return count;
  }

  page_pool* pages_;
  flat_vector<std::uint32_t> first_stream_;  // [heads + 1]
  flat_vector<token_stream> streams_;        // by head, then by ascending lifetime
  flat_vector<std::uint32_t> pool_of_;       // [heads], or empty where none ranks
  fixed_vector<ranked_pool> pools_;          // by head
};

}  // namespace detail
HEADWISE_NAMESPACE_END
