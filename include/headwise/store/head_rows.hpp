// SPDX-License-Identifier: Apache-2.0
//
// head_rows: all rows of one head, as one thing that a step extends, keeps, cancels or rolls back:
// its streams, and its ranked pool where it has one. A handle; the sequence owns both.
// One thread at a time.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "headwise/store/ranked_pool.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

template <class T>
using by_stream = std::array<T, lifetime_set::capacity>;

// What a step asks of one head.
struct step_demand {
  by_stream<std::size_t> rows{};
  pool_demand pool;
};

// Rows of the finite streams whose lifetime ends with a query of first .. after.
[[nodiscard]] inline std::size_t expiring_rows(std::span<const token_stream> streams,
                                               position first, position after) noexcept {
  std::size_t count = 0;
  for (const token_stream& stream : streams) {
    const token_count lifetime = stream.lifetime();
    if (lifetime != forever && first < after)
      count += stream.index_of(oldest_seen(after, lifetime)) -
               stream.index_of(oldest_seen(first, lifetime));
  }
  return count;
}

struct head_rows {
  std::span<token_stream> streams;  // by ascending lifetime
  ranked_pool* pool;                // nullptr: the head does not rank

  // first, queries: the positions of the step; undo_from: as for ranked_pool::try_begin. False
  // where pages or memory refuse, and then nothing changed.
  [[nodiscard]] bool try_begin(const step_demand& demand, position first, token_count queries,
                               position undo_from) noexcept {
    bool begun =
        pool == nullptr || pool->try_begin(demand.pool, demand.rows, first, queries, undo_from);
    std::size_t s = 0;
    for (; begun && s < streams.size(); ++s) begun = streams[s].try_extend(demand.rows[s]);
    if (!begun) cancel(s);
    return begun;
  }
  void cancel() noexcept { cancel(streams.size()); }
  // after: the new length. keep_from: the first query that must still be answered; ranked_from: the
  // same on heads that rank. skipped: the newest token of the step that each stream never held.
  void commit(token_count after, position keep_from, position ranked_from,
              const by_stream<std::optional<position>>& skipped) noexcept {
    if (pool != nullptr) pool->commit(after, ranked_from, streams);
    for (std::size_t s = 0; s < streams.size(); ++s) streams[s].commit(keep_from, skipped[s]);
    if (pool != nullptr) pool->follow(streams, true);
  }
  void rollback(token_count length) noexcept {
    if (pool != nullptr) pool->rollback(length, streams);
    for (token_stream& stream : streams) stream.rollback(length);
    if (pool != nullptr) pool->follow(streams, false);
  }
  // Between steps. Throws as the archive does; false where pages or memory refuse. Check is_sound()
  // before any other use.
  template <class Archive>
  [[nodiscard]] bool transfer(Archive& archive) {
    for (token_stream& stream : streams)
      if (!stream.transfer(archive)) return false;
    return pool == nullptr || pool->transfer(archive);
  }
  // The equations of the streams and the pool, between steps. O(rows + members).
  // undo_floor: the first query that heads that rank take back.
  [[nodiscard]] bool is_sound(position keep_from, position undo_floor,
                              token_count length) noexcept {
    std::size_t newest = 0;
    for (const token_stream& stream : streams) {
      if (!stream.is_sound(keep_from, length)) return false;
      newest += stream.rows() - stream.index_of(keep_from);
    }
    // A query sees its own token, whatever the policy: none from keep_from on has left.
    if (newest != length - keep_from) return false;
    return pool == nullptr || pool->is_sound(undo_floor, length, streams);
  }
  // No query from `first` on sees a row twice. Only where is_sound(). Throws what the memory
  // resource throws. O(rows * log(page_tokens)).
  [[nodiscard]] bool holds_each_once(position first, std::pmr::memory_resource* memory) const {
    bool once = true;
    for (std::size_t s = 1; s < streams.size(); ++s)
      for (std::size_t earlier = 0; earlier < s; ++earlier) {
        token_stream::cursor row(streams[earlier]);
        streams[s].for_each_position(
            [&](position pos, std::size_t) { once = once && !row.find(pos).has_value(); });
      }
    return once && (pool == nullptr || pool->holds_each_once(first, streams, memory));
  }

 private:
  // The pool, and the streams below `extended`.
  void cancel(std::size_t extended) noexcept {
    if (pool != nullptr) pool->cancel(streams);
    for (std::size_t s = 0; s < extended; ++s) streams[s].cancel();
    if (pool != nullptr) pool->follow(streams, false);
  }
};

}  // namespace detail
HEADWISE_NAMESPACE_END
