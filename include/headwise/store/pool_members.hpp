// SPDX-License-Identifier: Apache-2.0
//
// pool_members: who is in a ranked pool, at the newest query and at those before it that can still
// be asked for. A slot has a settled member, whose row lies in the pool's pages, and perhaps newer
// entries, whose rows lie elsewhere until they settle.
//
//   the members at query q = the settled ones, changed by the entries with entry.query < q
//
// compete: O(capacity). One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "headwise/core/types.hpp"
#include "headwise/store/scores.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

// A token that took a slot.
struct pool_entry {
  position query;  // after whose attention it did
  position pos;
  token_count slot;
  float score;
  std::uint64_t previous;  // the entry before it on the slot, by running number
  std::uint32_t stream;    // that holds the row
  std::uint32_t fresh;     // 1: the slot was free; no bool, so that an entry has no padding
};
static_assert(sizeof(pool_entry) == 32);

class pool_members {
 public:
  struct member {
    position pos;
    float score;
  };

  pool_members(token_count capacity, std::pmr::memory_resource* memory)
      : capacity_(capacity), slots_(memory), entries_(memory) {}

  [[nodiscard]] token_count capacity() const noexcept { return capacity_; }
  [[nodiscard]] token_count size() const noexcept {
    return static_cast<token_count>(slots_.size());
  }
  [[nodiscard]] std::size_t entries() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return slots_.held_bytes() + entries_.held_bytes();
  }
  // Room for that many in all. Throws what the memory resource throws.
  void reserve(std::size_t slots, std::size_t entries) {
    slots_.reserve_amortized(slots);
    entries_.reserve_amortized(entries);
  }

  // The newest entry on the slot from before `query`; nullptr where the settled member stands, or
  // at slots from `settled rows` on none.
  [[nodiscard]] const pool_entry* entry_before(position query, token_count slot) const noexcept {
    std::uint64_t number = slots_[slot].newest;
    while (number >= first_entry_ && entries_[number - first_entry_].query >= query)
      number = entries_[number - first_entry_].previous;
    return number < first_entry_ ? nullptr : &entries_[number - first_entry_];
  }
  // The score of the member at `query`; slot as for entry_before.
  [[nodiscard]] float& score_before(position query, token_count slot) noexcept {
    const pool_entry* const e = entry_before(query, slot);
    return e == nullptr ? slots_[slot].score
                        : entries_[static_cast<std::size_t>(e - entries_.data())].score;
  }
  [[nodiscard]] member settled(token_count slot) const noexcept {
    return {slots_[slot].pos, slots_[slot].score};
  }
  [[nodiscard]] member newest(token_count slot) const noexcept {
    if (slots_[slot].newest < first_entry_) return settled(slot);
    const pool_entry& e = entries_[slots_[slot].newest - first_entry_];
    return {e.pos, e.score};
  }

  // The token competes after the attention of `query`, which is not before that of other entries.
  void compete(std::uint32_t stream, position pos, float score, position query) noexcept {
    const bool fresh = size() < capacity_;
    if (fresh) slots_.push_back({});
    const token_count slot = fresh ? size() - 1 : lowest();
    if (!fresh && ranks_below(score, pos, newest(slot).score, newest(slot).pos)) return;
    const std::uint64_t before = slots_[slot].newest;
    if (before >= first_entry_ && entries_[before - first_entry_].query == query) {
      // Nobody can ask between two entries of one query: one takes the other's place.
      pool_entry& same = entries_[before - first_entry_];
      same.pos = pos;
      same.score = score;
      same.stream = stream;
      return;
    }
    slots_[slot].newest = first_entry_ + entries_.size();
    entries_.push_back({query, pos, slot, score, before, stream, fresh ? 1U : 0U});
  }
  // Takes back the entries of `query` and later.
  void take_back(position query) noexcept {
    std::size_t kept = slots_.size();
    for (; !entries_.empty() && entries_.back().query >= query; entries_.pop_back()) {
      slots_[entries_.back().slot].newest = entries_.back().previous;
      kept -= entries_.back().fresh;
    }
    slots_.resize(kept);  // fresh slots are the last, in any order within a query
  }
  // The entries of `query` and later.
  [[nodiscard]] std::span<const pool_entry> entries_from(position query) const noexcept {
    const auto first =
        std::lower_bound(entries_.begin(), entries_.end(), query,
                         [](const pool_entry& e, position q) { return e.query < q; });
    return {first, entries_.end()};
  }
  // Orders the entries of the newest query by position.
  void sort_newest(position query) noexcept {
    const auto first = entries_.end() - static_cast<std::ptrdiff_t>(entries_from(query).size());
    std::sort(first, entries_.end(),
              [](const pool_entry& a, const pool_entry& b) { return a.pos < b.pos; });
    for (auto e = first; e != entries_.end(); ++e)
      slots_[e->slot].newest = first_entry_ + static_cast<std::uint64_t>(e - entries_.begin());
  }
  // Settles the entries from before `query`: put(entry) for those that are still members then.
  template <class Put>
  void settle(position query, Put&& put) noexcept {
    std::size_t count = 0;
    for (; count < entries_.size() && entries_[count].query < query; ++count) {
      const pool_entry& e = entries_[count];
      if (entry_before(query, e.slot) != &e) continue;
      put(e);
      slots_[e.slot].pos = e.pos;
      slots_[e.slot].score = e.score;
    }
    entries_.erase_front(count);
    first_entry_ += count;
  }
  template <class Archive>
  void transfer(Archive& archive) {
    archive.number(first_entry_);
    archive.numbers(slots_);
    if constexpr (Archive::loading)
      if (slots_.size() > capacity_)
        archive.fail(error_code::malformed, std::to_string(slots_.size()) + " heavy hitters",
                     "at most " + std::to_string(capacity_));
    archive.numbers(entries_);
  }
  // The equation: entries by query, all of them linked from their slots back to the settled member,
  // if there is one below `settled`; slots that only entries fill last; members at positions below
  // `length`, from streams below `streams`. O(members + entries).
  [[nodiscard]] bool is_sound(std::size_t settled, position length,
                              std::size_t streams) const noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / 2;
    if (size() > capacity_ || settled > size() || first_entry_ == 0 || first_entry_ > most)
      return false;
    std::size_t fresh = 0, fresh_before = 0;  // of all queries so far; of those before this one
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const pool_entry& e = entries_[i];
      if (i > 0 && entries_[i - 1].query != e.query) fresh_before = fresh;
      fresh += e.fresh;
      if (e.query >= length || e.pos > e.query || e.slot >= size() || e.stream >= streams ||
          e.previous >= first_entry_ + i || (i > 0 && entries_[i - 1].query > e.query) ||
          e.fresh != (e.slot >= settled && e.previous < first_entry_ ? 1U : 0U) ||
          (e.fresh == 1 && e.slot < settled + fresh_before))
        return false;
      if (e.previous >= first_entry_ && entries_[e.previous - first_entry_].slot != e.slot)
        return false;
    }
    if (fresh != size() - settled) return false;
    std::size_t linked = 0;
    for (token_count a = 0; a < size(); ++a) {
      std::uint64_t number = slots_[a].newest;
      if (number >= first_entry_ + entries_.size() || (number < first_entry_ && a >= settled) ||
          (number >= first_entry_ && entries_[number - first_entry_].slot != a) ||
          newest(a).pos >= length)
        return false;
      for (; number >= first_entry_; number = entries_[number - first_entry_].previous) ++linked;
    }
    return linked == entries_.size();
  }
  [[nodiscard]] std::span<const pool_entry> all_entries() const noexcept {
    return {entries_.begin(), entries_.end()};
  }
  void clear() noexcept {
    slots_.clear();
    entries_.clear();
    first_entry_ = 1;
  }

 private:
  struct slot_state {
    std::uint64_t newest = 0;  // entry, by running number; below first_entry_: the settled member
    position pos = 0;          // of the settled member
    float score = 0.0F;
  };
  static_assert(sizeof(slot_state) == 16);

  [[nodiscard]] token_count lowest() const noexcept {
    token_count found = 0;
    member low = newest(0);
    for (token_count slot = 1; slot < size(); ++slot) {
      const member m = newest(slot);
      if (!ranks_below(m.score, m.pos, low.score, low.pos)) continue;
      found = slot;
      low = m;
    }
    return found;
  }

  token_count capacity_;
  std::uint64_t first_entry_ = 1;  // running number of entries_[0]
  flat_vector<slot_state> slots_;
  flat_vector<pool_entry> entries_;  // by query
};

}  // namespace detail
HEADWISE_NAMESPACE_END
