// SPDX-License-Identifier: Apache-2.0
//
// token_stream: the rows of one head that share one lifetime, oldest first, packed into pages: only
// the first page may begin, and the last end, with slots that hold none. Positions ascend along the
// stream, so what a query sees of it is one contiguous range, and what no query can see any more is
// always at the front.
//
// A step: try_extend (slots for its rows, undone by cancel), next_slot for each row, then commit or
// cancel. Between try_extend and commit the rows before the step are not touched.
// Append and evict are O(1) amortized, rollback O(pages dropped). One thread at a time.
#pragma once

#include <optional>

#include "headwise/store/page_list.hpp"
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

  // The slots of one page that hold rows.
  struct part {
    std::size_t index = 0;  // of the page in the stream
    page* rows = nullptr;
    const position* positions = nullptr;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    // The first slot whose position is at least pos.
    [[nodiscard]] std::uint32_t lower_bound(position pos) const noexcept {
      return static_cast<std::uint32_t>(std::lower_bound(positions + begin, positions + end, pos) -
                                        positions);
    }
    [[nodiscard]] slab as_slab(const page_layout& layout) const noexcept {
      return {positions + begin, rows->key(layout, begin), rows->value(layout, begin), end - begin};
    }
  };
  // The parts of a stream, oldest first; false past the last.
  class part_cursor {
   public:
    part_cursor() = default;  // of none
    part_cursor(const token_stream& stream, const page_layout& layout) noexcept
        : stream_(&stream),
          layout_(&layout),
          parts_(stream.pages_in_use(layout)),
          at_(stream.pages_.first()) {
      read();
    }
    [[nodiscard]] explicit operator bool() const noexcept { return some_.index < parts_; }
    [[nodiscard]] const part& operator*() const noexcept { return some_; }
    [[nodiscard]] const part* operator->() const noexcept { return &some_; }
    part_cursor& operator++() noexcept {
      ++some_.index;
      ++at_;
      read();
      return *this;
    }
    // Rows of the stream before this part's.
    [[nodiscard]] std::size_t rows_before() const noexcept {
      return some_.index == 0 ? 0 : some_.index * layout_->page_tokens - stream_->begin_;
    }
    [[nodiscard]] const page_layout& layout() const noexcept { return *layout_; }
    void prefetch() const noexcept { at_.prefetch(); }

   private:
    void read() noexcept {
      if (some_.index < parts_) some_ = stream_->part_of(some_.index, *at_, *layout_);
    }

    const token_stream* stream_ = nullptr;
    const page_layout* layout_ = nullptr;
    std::size_t parts_ = 0;
    page_list::cursor at_;
    part some_;
  };

  explicit token_stream(token_count lifetime) noexcept : lifetime_(lifetime) {}

  [[nodiscard]] token_count lifetime() const noexcept { return lifetime_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t pages() const noexcept { return pages_.size(); }
  // Blocks of the page list.
  [[nodiscard]] std::size_t blocks() const noexcept { return pages_.blocks(); }

  // No query from `first` on can see a token at pos.
  [[nodiscard]] bool expired(position pos, position first) const noexcept {
    return pos < first && !sees(first, pos, lifetime_);
  }
  // The position of the oldest row; nullopt when empty.
  [[nodiscard]] std::optional<position> oldest(const page_layout& layout) const noexcept {
    if (rows_ == 0) return std::nullopt;
    return (*pages_.first())->positions(layout)[begin_];
  }

  // Pages that try_extend(count) takes.
  [[nodiscard]] std::size_t pages_needed(std::size_t count,
                                         const page_layout& layout) const noexcept {
    if (count == 0) return 0;
    const std::size_t room = room_in_last(layout);
    const std::size_t copies = room > 0 && (*pages_.last())->references > 1 ? 1 : 0;
    const std::size_t beyond = count > room ? count - room : 0;
    return copies + layout.pages_for(beyond);
  }

  // Slots for `count` rows behind the last. False where the pool refuses; cancel() then undoes.
  [[nodiscard]] bool try_extend(std::size_t count, page_pool& pool) noexcept {
    const page_layout& layout = pool.layout();
    step_ = {pages_.size(), rows_, count, nullptr, pages_.last()};
    if (count == 0) return true;
    std::size_t room = room_in_last(layout);
    if (room > 0 && (*pages_.last())->references > 1 && !try_own_last(pool)) return false;
    const bool from_next = room == 0 && !pages_.empty();
    for (; room < count; room += layout.page_tokens)
      if (!pages_.try_append(pool)) return false;
    if (step_.pages == 0) step_.writing = pages_.first();
    if (from_next) ++step_.writing;
    return true;
  }
  [[nodiscard]] slot next_slot(const page_layout& layout) noexcept {
    HEADWISE_EXPECTS(step_.promised > 0, "a policy answered differently for the same token");
    --step_.promised;
    page* const rows = *step_.writing;
    const std::size_t at = (begin_ + rows_++) % layout.page_tokens;
    if (at + 1 == layout.page_tokens) ++step_.writing;
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
    while (pages_.size() > step_.pages) pages_.drop_last(pool);
    rows_ = step_.rows;
    if (step_.replaced != nullptr) pool.release_page(std::exchange(*pages_.last(), step_.replaced));
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
    while (!pages_.empty()) {
      const part last = last_part(layout);
      const std::uint32_t end = last.lower_bound(length);
      rows_ -= last.end - end;
      if (end > last.begin) break;
      drop_last(pool);
    }
    if (length == 0)
      last_evicted_.reset();
    else if (last_evicted_)
      last_evicted_ = std::min<position>(*last_evicted_, length - 1);
  }

  // Appends to `copy`, an empty stream of the same lifetime, the same pages. Throws what the memory
  // resource throws; what was shared by then is freed with the copy by clear().
  void share_with(token_stream& copy, page_pool& pool) const {
    auto at = pages_.first();
    for (std::size_t i = 0; i < pages_.size(); ++i, ++at) copy.pages_.append_shared(*at, pool);
    copy.begin_ = begin_;
    copy.rows_ = rows_;
    copy.last_evicted_ = last_evicted_;
  }
  void clear(page_pool& pool) noexcept {
    while (!pages_.empty()) drop_last(pool);
    rows_ = 0;
  }

  // The row slots of the first page that are passed over are kept as well, so that a stream takes
  // as many pages after it was read as before. Throws as the archive does; false where pages
  // refuse; clear() then frees. Check is_sound() before any other use.
  template <class Archive>
  [[nodiscard]] bool transfer(Archive& archive, page_pool& pool) {
    const page_layout& layout = pool.layout();
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
      if (count > 0 && passed_over < layout.page_tokens) begin_ = passed_over;
      for (; rows_ < count; ++rows_) {
        if (room_in_last(layout) == 0 && !pages_.try_append(pool)) return false;
        (*pages_.last())->transfer_row(archive, layout, (begin_ + rows_) % layout.page_tokens);
      }
    } else {
      for_each_part(layout, [&](const part& some) {
        for (std::uint32_t at = some.begin; at < some.end; ++at)
          some.rows->transfer_row(archive, layout, at);
      });
    }
    return true;
  }

  // fn(slab) for what a query of first .. last sees, oldest first. Positions, which
  // lie far from all else, are read only where rows begin and end to be seen.
  template <class Fn>
  void for_each_slab(position first, position last, const page_layout& layout, Fn& fn) const {
    const part newest = newest_part(last, layout);
    if (newest.rows == nullptr) return;
    part_cursor at(*this, layout);
    while (at->index != newest.index && expired(at->positions[at->end - 1], first)) ++at;
    part some = *at;
    if (expired(some.positions[some.begin], first))
      some.begin = some.lower_bound(oldest_seen(first, lifetime_));
    for (; some.index != newest.index; some = *++at) {
      at.prefetch();
      fn(some.as_slab(layout));
    }
    if (newest.positions[newest.end - 1] > last) some.end = newest.lower_bound(last + 1);
    if (some.begin < some.end) fn(some.as_slab(layout));
  }
  // There is a row at pos. O(1) for the newest ones, O(pages).
  [[nodiscard]] bool holds(position pos, const page_layout& layout) const noexcept {
    const part newest = newest_part(pos, layout);
    return newest.rows != nullptr &&
           std::binary_search(newest.positions + newest.begin, newest.positions + newest.end, pos);
  }

  // Rows before the first whose position is at least pos. O(pages).
  [[nodiscard]] std::size_t index_of(position pos, const page_layout& layout) const noexcept {
    part_cursor at(*this, layout);
    while (at && at->positions[at->end - 1] < pos) ++at;
    return at ? at.rows_before() + at->lower_bound(pos) - at->begin : rows_;
  }
  // Finds rows at ascending positions; all of them in O(pages + rows found * log(page_tokens)).
  class cursor {
   public:
    cursor() = default;
    cursor(const token_stream& stream, const page_layout& layout) noexcept : at_(stream, layout) {}
    // The row at pos and the number of rows before it; nullopt where it is not held.
    [[nodiscard]] std::optional<located_row> find(position pos) noexcept {
      while (at_ && at_->positions[at_->end - 1] < pos) ++at_;
      if (!at_) return std::nullopt;
      part row = *at_;
      row.begin = row.lower_bound(pos);
      if (row.positions[row.begin] != pos) return std::nullopt;
      row.end = row.begin + 1;
      return located_row{row.as_slab(at_.layout()), at_.rows_before() + row.begin - at_->begin};
    }

   private:
    part_cursor at_;
  };
  // O(pages).
  [[nodiscard]] std::optional<located_row> find(position pos,
                                                const page_layout& layout) const noexcept {
    return cursor(*this, layout).find(pos);
  }
  // fn(position, rows before it), oldest first.
  template <class Fn>
  void for_each_position(const page_layout& layout, Fn&& fn) const {
    std::size_t index = 0;
    for_each_part(layout, [&](const part& some) {
      for (std::uint32_t at = some.begin; at < some.end; ++at) fn(some.positions[at], index++);
    });
  }

  // The equation between steps: positions ascend below `length`, no row has expired at keep_from,
  // and there are as many pages as the rows need. O(rows).
  [[nodiscard]] bool is_sound(position keep_from, token_count length,
                              const page_layout& layout) const noexcept {
    if (pages_.size() != pages_in_use(layout) || begin_ >= layout.page_tokens) return false;
    bool sound = true;
    std::optional<position> before;
    for_each_position(layout, [&](position pos, std::size_t) {
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
  };

  // Pages that hold a row; all of them but in a step.
  [[nodiscard]] std::size_t pages_in_use(const page_layout& layout) const noexcept {
    return rows_ == 0 ? 0 : layout.pages_for(begin_ + rows_);
  }
  [[nodiscard]] std::size_t room_in_last(const page_layout& layout) const noexcept {
    return pages_.size() * layout.page_tokens - (pages_.empty() ? 0 : begin_ + rows_);
  }
  // The rows of the index-th page, which p is.
  [[nodiscard]] part part_of(std::size_t index, page* p, const page_layout& layout) const noexcept {
    const std::size_t end = begin_ + rows_ - index * layout.page_tokens;
    return {index, p, p->positions(layout), index == 0 ? begin_ : 0,
            static_cast<std::uint32_t>(std::min<std::size_t>(end, layout.page_tokens))};
  }
  // Between steps, of a stream that is not empty.
  [[nodiscard]] part last_part(const page_layout& layout) const noexcept {
    return part_of(pages_.size() - 1, *pages_.last(), layout);
  }
  // The last part with a row at pos or before it; of no page where there is none.
  [[nodiscard]] part newest_part(position pos, const page_layout& layout) const noexcept {
    auto at = pages_.last();
    std::size_t index = pages_.size();
    for (const std::size_t in_use = pages_in_use(layout); index > in_use; --index) --at;
    for (; index > 0; --index, --at) {
      const part some = part_of(index - 1, *at, layout);
      if (some.positions[some.begin] <= pos) return some;
    }
    return {};
  }
  // fn(part), oldest first.
  template <class Fn>
  void for_each_part(const page_layout& layout, const Fn& fn) const {
    for (part_cursor at(*this, layout); at; ++at) fn(*at);
  }

  // Drops the last page, whose rows are gone.
  void drop_last(page_pool& pool) noexcept {
    pages_.drop_last(pool);
    if (pages_.empty()) begin_ = 0;
  }

  // Copy on write: the last page's rows move to a page of our own; the shared one waits for commit.
  [[nodiscard]] bool try_own_last(page_pool& pool) noexcept {
    page* const own = pool.try_take_page();
    if (own == nullptr) return false;
    const page_layout& layout = pool.layout();
    const part from = last_part(layout);
    const std::size_t first = from.begin, count = from.end - from.begin;
    std::memcpy(own->positions(layout) + first, from.positions + first, count * sizeof(position));
    std::memcpy(own->key(layout, first), from.rows->key(layout, first), count * layout.key_bytes);
    std::memcpy(own->value(layout, first), from.rows->value(layout, first),
                count * layout.value_bytes);
    step_.replaced = std::exchange(*pages_.last(), own);
    return true;
  }

  void evict(position keep_from, page_pool& pool) noexcept {
    if (lifetime_ == forever) return;
    const page_layout& layout = pool.layout();
    while (rows_ > 0) {
      const part first = part_of(0, *pages_.first(), layout);
      while (begin_ < first.end && expired(first.positions[begin_], keep_from)) {
        last_evicted_ = first.positions[begin_++];
        --rows_;
      }
      if (begin_ < first.end) return;
      pages_.drop_first(pool);
      begin_ = 0;
    }
  }

  token_count lifetime_;
  std::uint32_t begin_ = 0;  // slots of the first page before the oldest row
  std::optional<position> last_evicted_;
  page_list pages_;
  std::size_t rows_ = 0;
  step_state step_;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
