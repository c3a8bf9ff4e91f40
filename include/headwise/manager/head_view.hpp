// SPDX-License-Identifier: Apache-2.0
//
// head_view: what the queries of one head see, as slabs. The engine's own kernel reads it, or
// attend/attend.hpp does.
// A view: valid until the next commit, cancel, rollback or close of its sequence. Const and free of
// state, so any number of threads may read.
#pragma once

#include <span>

#include "headwise/codec/concepts.hpp"
#include "headwise/store/token_stream.hpp"

HEADWISE_NAMESPACE_BEGIN

template <row_codec Key, row_codec Value>
class head_view {
 public:
  using key_codec = Key;
  using value_codec = Value;

  head_view(std::span<const detail::token_stream> streams, const page_layout& layout,
            std::uint32_t head_dim, position first_query, position last_query) noexcept
      : streams_(streams),
        layout_(&layout),
        head_dim_(head_dim),
        first_query_(first_query),
        last_query_(last_query) {}

  [[nodiscard]] std::uint32_t head_dim() const noexcept { return head_dim_; }
  // The first query that is answered exactly: of the open step, else the newest of the sequence
  // (or as far back as rollback_horizon says); after a rollback perhaps only the next one.
  [[nodiscard]] position first_query() const noexcept { return first_query_; }
  // The last one: the newest token of the open step, else the token that comes next.
  [[nodiscard]] position last_query() const noexcept { return last_query_; }
  // Rows held, whether or not a query sees them: no query sees more. O(streams).
  [[nodiscard]] std::size_t resident_rows() const noexcept {
    std::size_t count = 0;
    for (const auto& stream : streams_) count += stream.rows();
    return count;
  }

  // fn(const slab&) for the rows that `query` sees: sees(query, pos, lifetime) and nothing else.
  // Streams by ascending lifetime, each oldest first. query: first_query() .. last_query().
  // O(pages).
  template <class Fn>
  void for_each_slab(position query, Fn&& fn) const {
    HEADWISE_EXPECTS(query >= first_query_, "a query asks for rows that may be gone by now");
    HEADWISE_EXPECTS(query <= last_query_, "a query lies beyond the tokens that were appended");
    for (const auto& stream : streams_) stream.for_each_slab(query, *layout_, fn);
  }

 private:
  std::span<const detail::token_stream> streams_;
  const page_layout* layout_;
  std::uint32_t head_dim_;
  position first_query_;
  position last_query_;
};

HEADWISE_NAMESPACE_END
