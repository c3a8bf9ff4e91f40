// SPDX-License-Identifier: Apache-2.0
//
// What is held, in rows and bytes. Counted, not estimated: held_bytes of the sequences (without
// forks) + idle_bytes of the manager = held_bytes of the manager, which the memory resource gave
// out. Plain values.
#pragma once

#include <cstddef>

#include "headwise/core/types.hpp"

HEADWISE_NAMESPACE_BEGIN

// Of one sequence. A page that forks share counts fully in each of them.
struct cache_stats {
  token_count length = 0;          // tokens appended and not rolled back
  std::size_t resident_rows = 0;   // over all heads
  std::size_t full_rows = 0;       // length x heads: the rows of a full cache
  std::size_t payload_bytes = 0;   // encoded keys and values of the resident rows
  std::size_t full_bytes = 0;      // payload of a full cache with the same codecs
  std::size_t metadata_bytes = 0;  // positions, page headers, page lists, streams, policies
  std::size_t reserved_bytes = 0;  // row slots that are taken but hold no resident row

  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return payload_bytes + metadata_bytes + reserved_bytes;
  }
  // Resident / full, of the same codecs; 1 for an empty sequence.
  [[nodiscard]] double kept_ratio() const noexcept {
    return full_bytes == 0 ? 1.0
                           : static_cast<double>(payload_bytes) / static_cast<double>(full_bytes);
  }
};

// Of a manager with all its sequences.
struct manager_stats {
  std::size_t held_bytes = 0;    // all that the memory resource gave out and has not got back
  std::size_t idle_bytes = 0;    // of these: reserved pages and their blocks that no sequence uses
  std::size_t pages_in_use = 0;  // shared pages counted once
  std::size_t pages_available = 0;  // until the limit
  std::size_t page_bytes = 0;       // of the greater size
  std::size_t sequences = 0;
};

// A rollback that is not exact any more: which head, what it would need, what it still has. On a
// head that ranks: the length that was asked for, and the least that its scores go back to.
struct rollback_refusal {
  head_id head;
  position needed = 0;       // the oldest position that the next query would see
  position oldest_kept = 0;  // the oldest that the head holds of that lifetime; none: the length
};

HEADWISE_NAMESPACE_END
