// SPDX-License-Identifier: Apache-2.0
//
// token_stream: the rows of one head that share one lifetime, oldest first. Positions ascend along
// the stream, so what a query sees of it is one contiguous range, and what no query can see any
// more is always at the front.
//
// A step: try_extend (slots for its rows, undone by cancel), next_slot for each row, then commit or
// cancel. Between try_extend and commit the rows before the step are not touched.
// Append and evict are O(1) amortized, rollback O(pages dropped). One thread at a time.
#pragma once

#include "headwise/store/packed_rows.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

class token_stream : public packed_rows {
 public:
  struct slot {
    position* pos;
    std::byte* key;
    std::byte* value;
  };

  token_stream(token_count lifetime, page_pool& pool) noexcept
      : packed_rows(pool, sizes_for(lifetime, pool)), lifetime_(lifetime) {}

  [[nodiscard]] token_count lifetime() const noexcept { return lifetime_; }
  // No query from `first` on can see a token at pos.
  [[nodiscard]] bool expired(position pos, position first) const noexcept {
    return pos < first && !sees(first, pos, lifetime_);
  }
  // Pages that try_extend(count) takes.
  [[nodiscard]] std::size_t pages_needed(std::size_t count) const noexcept {
    if (count == 0) return 0;
    const std::size_t room = room_in_last();
    const std::size_t copies = room > 0 && (*pages_.last())->references > 1 ? 1 : 0;
    return copies + pages_.sizes().pages_for(begin_ + rows_ + count) - pages_.size();
  }

  // Slots for `count` rows behind the last. False where the pool refuses; cancel() then undoes.
  [[nodiscard]] bool try_extend(std::size_t count) noexcept {
    step_ = {pages_.size(), rows_, count, nullptr, pages_.last(), pages_.size()};
    if (count == 0) return true;
    const bool has_room = room_in_last() > 0;
    if (has_room && (*pages_.last())->references > 1 && !try_own_last()) return false;
    while (room_in_last() < count)
      if (!pages_.try_append()) return false;
    if (has_room)
      --step_.index;
    else if (step_.index == 0)
      step_.writing = pages_.first();
    else
      ++step_.writing;
    return true;
  }
  [[nodiscard]] slot next_slot() noexcept {
    HEADWISE_EXPECTS(step_.promised > 0, "a policy answered differently for the same token");
    --step_.promised;
    page* const rows = *step_.writing;
    const page_layout& layout = pages_.sizes().of(step_.index);
    const std::size_t at = begin_ + rows_++ - pages_.sizes().slots_before(step_.index);
    if (at + 1 == layout.page_tokens) {
      ++step_.writing;
      ++step_.index;
    }
    return {rows->positions(layout) + at, rows->key(layout, at), rows->value(layout, at)};
  }

  // Keeps the step's rows and frees what no query from keep_from on can see. newest_skipped: the
  // last token of the step that was never given a slot because it had expired by its end.
  void commit(position keep_from, std::optional<position> newest_skipped) noexcept {
    HEADWISE_EXPECTS(step_.promised == 0, "a policy answered differently for the same token");
    if (step_.replaced != nullptr)
      pages_.pool().release_page(step_.replaced, pages_.sizes().of(step_.pages - 1));
    step_ = {};
    evict(keep_from);
    if (newest_skipped && (!last_evicted_ || *last_evicted_ < *newest_skipped))
      last_evicted_ = newest_skipped;
  }
  void cancel() noexcept {
    while (pages_.size() > step_.pages) pages_.drop_last();
    rows_ = step_.rows;
    if (step_.replaced != nullptr)
      pages_.pool().release_page(std::exchange(*pages_.last(), step_.replaced),
                                 pages_.sizes().of(step_.pages - 1));
    step_ = {};
  }

  // The oldest position that the query at `length` needs and that is gone; nullopt where a rollback
  // to `length` tokens is exact. Sparse streams may be refused more than they need once the
  // rollback passes their newest evicted token.
  [[nodiscard]] std::optional<position> missing_after_rollback(token_count length) const noexcept {
    if (!last_evicted_ || length == 0) return std::nullopt;
    const position newest = std::min<position>(*last_evicted_, length - 1);
    if (!sees(length, newest, lifetime_)) return std::nullopt;
    return oldest_seen(length, lifetime_);
  }
  // Drops the rows from position `length` on.
  void rollback(token_count length) noexcept {
    while (!pages_.empty()) {
      const part last = last_part();
      const std::uint32_t end = last.lower_bound(length);
      rows_ -= last.end - end;
      if (end > last.begin) break;
      drop_last();
    }
    if (length == 0)
      last_evicted_.reset();
    else if (last_evicted_)
      last_evicted_ = std::min<position>(*last_evicted_, length - 1);
  }

  // Appends to `copy`, an empty stream of the same lifetime, the same pages. Throws what the memory
  // resource throws; what was shared by then is freed with the copy by clear().
  void share_with(token_stream& copy) const {
    auto at = pages_.first();
    for (std::size_t i = 0; i < pages_.size(); ++i, ++at) copy.pages_.append_shared(*at);
    copy.begin_ = begin_;
    copy.rows_ = rows_;
    copy.last_evicted_ = last_evicted_;
  }
  void clear() noexcept {
    while (!pages_.empty()) drop_last();
    rows_ = 0;
  }

  // The row slots of the first page that are passed over are kept as well, so that a stream takes
  // as many pages after it was read as before. Throws as the archive does; false where pages
  // refuse; clear() then frees. Check is_sound() before any other use.
  template <class Archive>
  [[nodiscard]] bool transfer(Archive& archive) {
    std::uint64_t count = rows_;
    std::uint32_t passed_over = begin_;
    std::uint32_t evicted = last_evicted_ ? 1 : 0;
    position newest_evicted = last_evicted_.value_or(0);
    archive.number(count);
    archive.number(passed_over);
    archive.number(evicted);
    archive.number(newest_evicted);
    if constexpr (Archive::loading) {
      if (evicted != 0) last_evicted_ = newest_evicted;
      if (count > 0 && passed_over < pages_.sizes().of(0).page_tokens) begin_ = passed_over;
      for (; rows_ < count; ++rows_) {
        if (room_in_last() == 0 && !pages_.try_append()) return false;
        const std::size_t last = pages_.size() - 1;
        (*pages_.last())
            ->transfer_row(archive, pages_.sizes().of(last),
                           begin_ + rows_ - pages_.sizes().slots_before(last));
      }
    } else {
      for_each_part([&](const part& some) {
        for (std::uint32_t at = some.begin; at < some.end; ++at)
          some.rows->transfer_row(archive, *some.layout, at);
      });
    }
    return true;
  }

  // fn(slab) for what a query of first .. last sees, oldest first. Positions, which
  // lie far from all else, are read only where rows begin and end to be seen.
  template <class Fn>
  void for_each_slab(position first, position last, Fn& fn) const {
    const part newest = newest_part(last);
    if (newest.rows == nullptr) return;
    part_cursor at(*this);
    while (at->index != newest.index && expired(at->positions[at->end - 1], first)) ++at;
    part some = *at;
    if (expired(some.positions[some.begin], first))
      some.begin = some.lower_bound(oldest_seen(first, lifetime_));
    for (; some.index != newest.index; some = *++at) {
      at.prefetch();
      fn(some.as_slab());
    }
    if (newest.positions[newest.end - 1] > last) some.end = newest.lower_bound(last + 1);
    if (some.begin < some.end) fn(some.as_slab());
  }
  // The equation between steps: positions ascend below `length`, no row has expired at keep_from,
  // and there are as many pages as the rows need. O(rows).
  [[nodiscard]] bool is_sound(position keep_from, token_count length) const noexcept {
    if (pages_.size() != pages_in_use() || begin_ >= pages_.sizes().of(0).page_tokens) return false;
    bool sound = true;
    std::optional<position> before;
    for_each_position([&](position pos, std::size_t) {
      sound = sound && pos < length && !(before && pos <= *before) && !expired(pos, keep_from);
      before = pos;
    });
    return sound;
  }

 private:
  // What a step began with, so that it can be cancelled.
  struct step_state {
    std::size_t pages = 0;
    std::size_t rows = 0;
    std::size_t promised = 0;   // slots that are not handed out yet
    page* replaced = nullptr;   // the shared page behind the last one's copy
    page_list::cursor writing;  // where the next row goes
    std::size_t index = 0;      // of that page
  };

  // What a short window wastes at its ends counts, what a long one costs to read counts more; and
  // many a head keeps no more than a few sinks for good.
  [[nodiscard]] static page_sizes sizes_for(token_count lifetime, const page_pool& pool) noexcept {
    constexpr std::size_t short_window = 8;  // pages
    const bool is_short = lifetime <= short_window * pool.layout().page_tokens;
    const page_layout &small = pool.small_layout(), &large = pool.layout();
    if (is_short) return {&small, &small, 0};
    // As many as make up a large page, so that the large ones begin where they would without.
    return {&small, &large, lifetime == forever ? large.page_tokens / small.page_tokens : 0};
  }

  // Copy on write: the last page's rows move to a page of our own; the shared one waits for commit.
  [[nodiscard]] bool try_own_last() noexcept {
    const part from = last_part();
    const page_layout& layout = *from.layout;
    page* const own = pages_.pool().try_take_page(layout);
    if (own == nullptr) return false;
    const std::size_t first = from.begin, count = from.end - from.begin;
    std::memcpy(own->positions(layout) + first, from.positions + first, count * sizeof(position));
    std::memcpy(own->key(layout, first), from.rows->key(layout, first), count * layout.key_bytes);
    std::memcpy(own->value(layout, first), from.rows->value(layout, first),
                count * layout.value_bytes);
    step_.replaced = std::exchange(*pages_.last(), own);
    return true;
  }

  void evict(position keep_from) noexcept {
    if (lifetime_ == forever) return;
    while (rows_ > 0) {
      const part first = part_of(0, *pages_.first());
      while (begin_ < first.end && expired(first.positions[begin_], keep_from)) {
        last_evicted_ = first.positions[begin_++];
        --rows_;
      }
      if (begin_ < first.end) return;
      pages_.drop_first();
      begin_ = 0;
    }
  }

  token_count lifetime_;
  std::optional<position> last_evicted_;
  step_state step_;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
