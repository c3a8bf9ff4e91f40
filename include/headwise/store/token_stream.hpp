// SPDX-License-Identifier: Apache-2.0
//
// token_stream: the rows of one head that share one lifetime, oldest first, in linked pages.
// Positions ascend along the stream, so what a query sees of it is one contiguous range, and what
// no query can see any more is always at the front.
//
// A step: try_extend (slots for its rows, undone by cancel), next_slot for each row, then commit or
// cancel. Between try_extend and commit the rows before the step are not touched.
// Append and evict are O(1) amortized, rollback O(pages dropped). One thread at a time.
#pragma once

#include <optional>

#include "headwise/store/page_pool.hpp"
#include "headwise/store/slab.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

class token_stream {
 public:
  struct slot {
    position* pos;
    std::byte* key;
    std::byte* value;
  };

  struct located_row {
    slab row;           // of one row
    std::size_t index;  // rows before it in the stream
  };

  explicit token_stream(token_count lifetime) noexcept : lifetime_(lifetime) {}

  [[nodiscard]] token_count lifetime() const noexcept { return lifetime_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t pages() const noexcept { return pages_; }

  // No query from `first` on can see a token at pos.
  [[nodiscard]] bool expired(position pos, position first) const noexcept {
    return pos < first && !sees(first, pos, lifetime_);
  }
  // The position of the oldest row; nullopt when empty.
  [[nodiscard]] std::optional<position> oldest(const page_layout& layout) const noexcept {
    if (rows_ == 0) return std::nullopt;
    return head_->rows->positions(layout)[head_->begin];
  }

  // Pages that try_extend(count) takes.
  [[nodiscard]] std::size_t pages_needed(std::size_t count,
                                         const page_layout& layout) const noexcept {
    if (count == 0) return 0;
    const std::size_t room = tail_ == nullptr ? 0 : layout.page_tokens - tail_->end;
    const std::size_t copies = room > 0 && tail_->rows->references > 1 ? 1 : 0;
    const std::size_t beyond = count > room ? count - room : 0;
    return copies + layout.pages_for(beyond);
  }

  // Slots for `count` rows behind the last. False where the pool refuses; cancel() then undoes.
  [[nodiscard]] bool try_extend(std::size_t count, page_pool& pool) noexcept {
    step_ = {tail_, tail_ == nullptr ? 0 : tail_->end, count, nullptr, tail_};
    if (count == 0) return true;
    std::size_t room = 0;
    if (tail_ != nullptr && tail_->end < pool.layout().page_tokens) {
      room = pool.layout().page_tokens - tail_->end;
      if (tail_->rows->references > 1 && !try_own_tail(pool)) return false;
    }
    for (; room < count; room += pool.layout().page_tokens) {
      page_link* const link = pool.try_take();
      if (link == nullptr) return false;
      push_back(link);
    }
    if (step_.writing == nullptr) step_.writing = head_;
    return true;
  }
  [[nodiscard]] slot next_slot(const page_layout& layout) noexcept {
    HEADWISE_EXPECTS(step_.promised > 0, "a policy answered differently for the same token");
    --step_.promised;
    if (step_.writing->end == layout.page_tokens) step_.writing = step_.writing->next;
    page* const rows = step_.writing->rows;
    const std::uint32_t at = step_.writing->end++;
    ++rows_;
    return {rows->positions(layout) + at, rows->key(layout, at), rows->value(layout, at)};
  }

  // Keeps the step's rows and frees what no query from keep_from on can see. newest_skipped: the
  // last token of the step that was never given a slot because it had expired by its end.
  void commit(position keep_from, std::optional<position> newest_skipped,
              page_pool& pool) noexcept {
    HEADWISE_EXPECTS(step_.promised == 0, "a policy answered differently for the same token");
    if (step_.replaced != nullptr) pool.release_page(step_.replaced);
    step_ = {};
    evict(keep_from, pool);
    if (newest_skipped && (!last_evicted_ || *last_evicted_ < *newest_skipped))
      last_evicted_ = newest_skipped;
  }
  void cancel(page_pool& pool) noexcept {
    while (tail_ != step_.tail) rows_ -= pop_back(pool);
    if (tail_ != nullptr) {
      rows_ -= tail_->end - step_.end;
      tail_->end = step_.end;
      if (step_.replaced != nullptr) {
        pool.release_page(tail_->rows);
        tail_->rows = step_.replaced;
      }
    }
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
  void rollback(token_count length, page_pool& pool) noexcept {
    const page_layout& layout = pool.layout();
    while (tail_ != nullptr && tail_->rows->positions(layout)[tail_->begin] >= length)
      rows_ -= pop_back(pool);
    if (tail_ != nullptr) {
      const std::uint32_t end = lower_bound(*tail_, length, layout);
      rows_ -= tail_->end - end;
      tail_->end = end;
    }
    if (length == 0)
      last_evicted_.reset();
    else if (last_evicted_)
      last_evicted_ = std::min<position>(*last_evicted_, length - 1);
  }

  // Appends to `copy`, an empty stream of the same lifetime, links to the same pages. Throws what
  // the memory resource throws; what was linked by then is freed with the copy by clear().
  void share_with(token_stream& copy, page_pool& pool) const {
    for (const page_link* link = head_; link != nullptr; link = link->next)
      copy.push_back(pool.share(*link));
    copy.rows_ = rows_;
    copy.last_evicted_ = last_evicted_;
  }
  void clear(page_pool& pool) noexcept {
    while (tail_ != nullptr) pop_back(pool);
    rows_ = 0;
  }

  // The row slots of the first page that are passed over are kept as well, so that a stream takes
  // as many pages after it was read as before. Throws as the archive does; false where pages
  // refuse; clear() then frees. Check is_sound() before any other use.
  template <class Archive>
  [[nodiscard]] bool transfer(Archive& archive, page_pool& pool) {
    const page_layout& layout = pool.layout();
    std::uint64_t count = rows_;
    std::uint32_t passed_over = head_ == nullptr ? 0 : head_->begin;
    std::uint32_t evicted = last_evicted_ ? 1 : 0;
    position newest_evicted = last_evicted_.value_or(0);
    archive.number(count);
    archive.number(passed_over);
    archive.number(evicted);
    archive.number(newest_evicted);
    if constexpr (Archive::loading) {
      if (evicted != 0) last_evicted_ = newest_evicted;
      passed_over = passed_over < layout.page_tokens ? passed_over : 0;
      for (std::uint64_t i = 0; i < count; ++i) {
        if (tail_ == nullptr || tail_->end == layout.page_tokens) {
          page_link* const link = pool.try_take();
          if (link == nullptr) return false;
          push_back(link);
          if (head_ == tail_) link->begin = link->end = passed_over;
        }
        tail_->rows->transfer_row(archive, layout, tail_->end);
        ++tail_->end;
        ++rows_;
      }
    } else {
      for (const page_link* link = head_; link != nullptr; link = link->next)
        for (std::uint32_t at = link->begin; at < link->end; ++at)
          link->rows->transfer_row(archive, layout, at);
    }
    return true;
  }

  // fn(slab) for what a query of first .. last sees, oldest first. Positions, which
  // lie far from all else, are read only where rows begin and end to be seen.
  template <class Fn>
  void for_each_slab(position first, position last, const page_layout& layout, Fn& fn) const {
    const page_link* const newest = newest_link(last, layout);
    if (newest == nullptr) return;
    const page_link* link = head_;
    while (link != newest && expired(link->rows->positions(layout)[link->end - 1], first))
      link = link->next;
    std::uint32_t begin = expired(link->rows->positions(layout)[link->begin], first)
                              ? lower_bound(*link, oldest_seen(first, lifetime_), layout)
                              : link->begin;
    for (; link != newest; link = link->next, begin = link->begin) {
      __builtin_prefetch(link->next->next);
      fn(slab_of(*link, begin, link->end, layout));
    }
    const std::uint32_t end = link->rows->positions(layout)[link->end - 1] <= last
                                  ? link->end
                                  : lower_bound(*link, last + 1, layout);
    if (begin < end) fn(slab_of(*link, begin, end, layout));
  }
  // There is a row at pos. O(1) for the newest ones, O(pages).
  [[nodiscard]] bool holds(position pos, const page_layout& layout) const noexcept {
    const page_link* const link = newest_link(pos, layout);
    return link != nullptr && std::binary_search(link->rows->positions(layout) + link->begin,
                                                 link->rows->positions(layout) + link->end, pos);
  }

  // Rows before the first whose position is at least pos. O(pages).
  [[nodiscard]] std::size_t index_of(position pos, const page_layout& layout) const noexcept {
    std::size_t before = 0;
    for (const page_link* link = head_; link != nullptr; link = link->next) {
      if (link->begin == link->end) continue;
      if (link->rows->positions(layout)[link->end - 1] >= pos)
        return before + lower_bound(*link, pos, layout) - link->begin;
      before += link->end - link->begin;
    }
    return before;
  }
  // Finds rows at ascending positions; all of them in O(pages + rows found * log(page_tokens)).
  class cursor {
   public:
    cursor() = default;
    explicit cursor(const token_stream& stream) noexcept : link_(stream.head_) {}
    // The row at pos and the number of rows before it; nullopt where it is not held.
    [[nodiscard]] std::optional<located_row> find(position pos,
                                                  const page_layout& layout) noexcept {
      for (; link_ != nullptr; link_ = link_->next) {
        const position* const positions = link_->rows->positions(layout);
        if (link_->begin < link_->end && positions[link_->end - 1] >= pos) {
          const std::uint32_t at = lower_bound(*link_, pos, layout);
          if (positions[at] != pos) return std::nullopt;
          return located_row{
              {positions + at, link_->rows->key(layout, at), link_->rows->value(layout, at), 1},
              before_ + at - link_->begin};
        }
        before_ += link_->end - link_->begin;
      }
      return std::nullopt;
    }

   private:
    const page_link* link_ = nullptr;
    std::size_t before_ = 0;
  };
  // O(pages).
  [[nodiscard]] std::optional<located_row> find(position pos,
                                                const page_layout& layout) const noexcept {
    return cursor(*this).find(pos, layout);
  }
  // fn(position, rows before it), oldest first.
  template <class Fn>
  void for_each_position(const page_layout& layout, Fn&& fn) const {
    std::size_t index = 0;
    for (const page_link* link = head_; link != nullptr; link = link->next)
      for (std::uint32_t at = link->begin; at < link->end; ++at)
        fn(link->rows->positions(layout)[at], index++);
  }

  // The equation between steps: positions ascend below `length`, no row has expired at keep_from,
  // every page holds a row, and the counts are those of the pages. O(rows).
  [[nodiscard]] bool is_sound(position keep_from, token_count length,
                              const page_layout& layout) const noexcept {
    std::size_t rows = 0, pages = 0;
    std::optional<position> before;
    for (const page_link* link = head_; link != nullptr; link = link->next, ++pages) {
      if (link->begin >= link->end || link->end > layout.page_tokens) return false;
      for (std::uint32_t at = link->begin; at < link->end; ++at, ++rows) {
        const position pos = link->rows->positions(layout)[at];
        if (pos >= length || (before && pos <= *before) || expired(pos, keep_from)) return false;
        before = pos;
      }
    }
    return rows == rows_ && pages == pages_;
  }

 private:
  // What a step began with, so that it can be cancelled.
  struct step_state {
    page_link* tail = nullptr;
    std::uint32_t end = 0;
    std::size_t promised = 0;      // slots that are not handed out yet
    page* replaced = nullptr;      // the shared page behind the tail's copy
    page_link* writing = nullptr;  // where the next row goes
  };

  // The last link that holds a row at pos or before it; nullptr where none does.
  [[nodiscard]] const page_link* newest_link(position pos,
                                             const page_layout& layout) const noexcept {
    const page_link* link = tail_;
    while (link != nullptr &&
           (link->begin == link->end || link->rows->positions(layout)[link->begin] > pos))
      link = link->previous;
    return link;
  }
  [[nodiscard]] static slab slab_of(const page_link& link, std::uint32_t begin, std::uint32_t end,
                                    const page_layout& layout) noexcept {
    return {link.rows->positions(layout) + begin, link.rows->key(layout, begin),
            link.rows->value(layout, begin), end - begin};
  }
  // The first slot of the link whose position is at least pos.
  [[nodiscard]] static std::uint32_t lower_bound(const page_link& link, position pos,
                                                 const page_layout& layout) noexcept {
    const position* const positions = link.rows->positions(layout);
    return static_cast<std::uint32_t>(
        std::lower_bound(positions + link.begin, positions + link.end, pos) - positions);
  }

  void push_back(page_link* link) noexcept {
    link->previous = tail_;
    link->next = nullptr;
    (tail_ == nullptr ? head_ : tail_->next) = link;
    tail_ = link;
    ++pages_;
  }
  // Returns the number of rows that went with it.
  std::uint32_t pop_back(page_pool& pool) noexcept {
    page_link* const link = tail_;
    const std::uint32_t dropped = link->end - link->begin;
    tail_ = link->previous;
    (tail_ == nullptr ? head_ : tail_->next) = nullptr;
    --pages_;
    pool.release(link);
    return dropped;
  }
  void pop_front(page_pool& pool) noexcept {
    page_link* const link = head_;
    head_ = link->next;
    (head_ == nullptr ? tail_ : head_->previous) = nullptr;
    --pages_;
    pool.release(link);
  }

  // Copy on write: the tail's rows move to a page of our own; the shared one waits for commit.
  [[nodiscard]] bool try_own_tail(page_pool& pool) noexcept {
    page* const own = pool.try_take_page();
    if (own == nullptr) return false;
    const page_layout& layout = pool.layout();
    const std::size_t first = tail_->begin;
    const std::size_t count = tail_->end - first;
    std::memcpy(own->positions(layout) + first, tail_->rows->positions(layout) + first,
                count * sizeof(position));
    std::memcpy(own->key(layout, first), tail_->rows->key(layout, first), count * layout.key_bytes);
    std::memcpy(own->value(layout, first), tail_->rows->value(layout, first),
                count * layout.value_bytes);
    step_.replaced = std::exchange(tail_->rows, own);
    return true;
  }

  void evict(position keep_from, page_pool& pool) noexcept {
    if (lifetime_ == forever) return;
    const page_layout& layout = pool.layout();
    while (head_ != nullptr) {
      const position* const positions = head_->rows->positions(layout);
      const std::uint32_t begin = head_->begin;
      while (head_->begin < head_->end && expired(positions[head_->begin], keep_from))
        last_evicted_ = positions[head_->begin++];
      rows_ -= head_->begin - begin;
      if (head_->begin < head_->end) return;
      pop_front(pool);
    }
  }

  token_count lifetime_;
  std::optional<position> last_evicted_;
  page_link* head_ = nullptr;
  page_link* tail_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t pages_ = 0;
  step_state step_;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
