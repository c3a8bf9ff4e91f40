// SPDX-License-Identifier: Apache-2.0
//
// slot_pages: rows in numbered slots that are filled in order and then overwritten; what a ranked
// pool keeps its members in. Pages may be shared by forks and are copied before they are written.
//
//   slot s = page s / page_tokens, row s % page_tokens
//
// All pages that a step may need are taken when it begins, so put() cannot fail. O(1) a call, and
// the size of a page where one is copied. One thread at a time.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "headwise/store/page_pool.hpp"
#include "headwise/store/scores.hpp"
#include "headwise/store/slab.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

class slot_pages {
 public:
  slot_pages(page_pool& pool, std::pmr::memory_resource* memory)
      : pool_(&pool), pages_(memory), spares_(memory) {}
  // Gives `copy`, which is empty, the same rows. Throws what the memory resource throws, and then
  // has shared nothing.
  void share_with(slot_pages& copy) const {
    copy.pages_.reserve(pages_.size());
    for (page* const p : pages_) copy.pages_.push_back(page_pool::share_page(p));
    copy.rows_ = rows_;
  }

  // Slots below hold a row.
  [[nodiscard]] token_count rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t pages() const noexcept { return pages_.size(); }
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return pages_.held_bytes() + spares_.held_bytes();
  }
  [[nodiscard]] position pos(token_count slot) const noexcept {
    return pages_[slot / layout().page_tokens]->positions(layout())[slot % layout().page_tokens];
  }
  // fn(slab) for the rows in the slots begin .. end, by slot.
  template <class Fn>
  void for_each_slab(token_count begin, token_count end, Fn& fn) const {
    while (begin < end) {
      page* const p = pages_[begin / layout().page_tokens];
      const std::uint32_t at = begin % layout().page_tokens;
      const std::uint32_t count = std::min(end - begin, layout().page_tokens - at);
      fn(slab{p->positions(layout()) + at, p->key(layout(), at), p->value(layout(), at), count});
      begin += count;
    }
  }

  // Pages for that many slots, beyond those that are there.
  [[nodiscard]] std::size_t more_pages(std::size_t slots) const noexcept {
    return layout().pages_for(slots) - pages_.size();
  }
  // Pages that `writes` puts may have to copy.
  [[nodiscard]] std::size_t copies(std::size_t writes) const noexcept {
    const auto shared = static_cast<std::size_t>(std::count_if(
        pages_.begin(), pages_.end(), [](const page* p) { return p->references > 1; }));
    return std::min(shared, writes);
  }
  // Throws what the memory resource throws.
  void reserve(std::size_t slots, std::size_t writes) {
    pages_.reserve_amortized(layout().pages_for(slots));
    spares_.reserve_amortized(copies(writes));
  }
  // Takes the pages for `slots` slots and `writes` puts. False where the pool refuses; give_back()
  // then undoes. Room must be reserved.
  [[nodiscard]] bool try_take(std::size_t slots, std::size_t writes) noexcept {
    return try_take_into(spares_, copies(writes)) && try_take_into(pages_, more_pages(slots));
  }
  // Writes over the row of the slot, or the next one.
  void put(token_count slot, position pos, const slab& row) noexcept {
    page*& p = pages_[slot / layout().page_tokens];
    const std::uint32_t at = slot % layout().page_tokens;
    if (p->references > 1) {
      page* const own = spares_.back();
      spares_.pop_back();
      std::memcpy(own->positions(layout()), p->positions(layout()),
                  layout().page_bytes() - layout().positions_at());
      pool_->release_page(std::exchange(p, own), layout());
    }
    p->positions(layout())[at] = pos;
    std::memcpy(p->key(layout(), at), row.keys, layout().key_bytes);
    std::memcpy(p->value(layout(), at), row.values, layout().value_bytes);
    rows_ = std::max(rows_, slot + 1);
  }
  // Returns what was taken and is not needed for `slots` slots.
  void give_back(std::size_t slots) noexcept {
    release(spares_, 0);
    release(pages_, layout().pages_for(slots));
  }
  // With pages for `slots` slots, of which the first rows() hold a row. Throws as the archive does;
  // false where pages or memory refuse; clear() then frees.
  template <class Archive>
  [[nodiscard]] bool transfer(Archive& archive, std::size_t slots) {
    token_count count = rows_;
    archive.number(count);
    if constexpr (Archive::loading) {
      if (count > slots)
        archive.fail(error_code::malformed, std::to_string(count) + " rows of heavy hitters",
                     "at most one for each of " + std::to_string(slots) + " members");
      if (!memory_suffices([&] { reserve(slots, 0); })) return false;
      rows_ = count;
    }
    for (token_count slot = 0; slot < count; ++slot) {
      // A page when its first row is there: no file takes memory for rows that it does not hold.
      if constexpr (Archive::loading)
        if (!try_take(slot + 1, 0)) return false;
      pages_[slot / layout().page_tokens]->transfer_row(archive, layout(),
                                                        slot % layout().page_tokens);
    }
    if constexpr (Archive::loading) return try_take(slots, 0);
    return true;
  }
  void clear() noexcept {
    give_back(0);
    rows_ = 0;
  }

 private:
  [[nodiscard]] const page_layout& layout() const noexcept { return pool_->layout(); }
  [[nodiscard]] bool try_take_into(flat_vector<page*>& to, std::size_t count) noexcept {
    for (; count > 0; --count) {
      page* const taken = pool_->try_take_page(layout());
      if (taken == nullptr) return false;
      to.push_back(taken);
    }
    return true;
  }
  void release(flat_vector<page*>& from, std::size_t keep) noexcept {
    for (; from.size() > keep; from.pop_back()) pool_->release_page(from.back(), layout());
  }

  page_pool* pool_;
  token_count rows_ = 0;
  flat_vector<page*> pages_;
  flat_vector<page*> spares_;  // for copies within the step
};

}  // namespace detail
HEADWISE_NAMESPACE_END
