// SPDX-License-Identifier: Apache-2.0
//
// packed_rows: rows with ascending positions, packed into pages: only the first page may begin, and
// the last end, with slots that hold none. What a token_stream is made of.
// O(1) a call where nothing else is said. One thread at a time.
#pragma once

#include <optional>

#include "headwise/store/page_list.hpp"
#include "headwise/store/slab.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

class packed_rows {
 public:
  struct located_row {
    slab row;           // of one row
    std::size_t index;  // rows before it in the stream
  };

  // The slots of one page that hold rows.
  struct part {
    std::size_t index = 0;  // of the page
    page* rows = nullptr;
    const page_layout* layout = nullptr;
    const position* positions = nullptr;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    // The first slot whose position is at least pos.
    [[nodiscard]] std::uint32_t lower_bound(position pos) const noexcept {
      return static_cast<std::uint32_t>(std::lower_bound(positions + begin, positions + end, pos) -
                                        positions);
    }
    [[nodiscard]] slab as_slab() const noexcept {
      return {positions + begin, rows->key(*layout, begin), rows->value(*layout, begin),
              end - begin};
    }
  };
  // All parts, oldest first; false past the last.
  class part_cursor {
   public:
    part_cursor() = default;  // of none
    explicit part_cursor(const packed_rows& all) noexcept
        : rows_(&all), parts_(all.pages_in_use()), at_(all.pages_.first()) {
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
    // Rows before this part's.
    [[nodiscard]] std::size_t rows_before() const noexcept {
      return some_.index == 0 ? 0 : rows_->pages_.sizes().slots_before(some_.index) - rows_->begin_;
    }
    void prefetch() const noexcept { at_.prefetch(); }

   private:
    void read() noexcept {
      if (some_.index < parts_) some_ = rows_->part_of(some_.index, *at_);
    }

    const packed_rows* rows_ = nullptr;
    std::size_t parts_ = 0;
    page_list::cursor at_;
    part some_;
  };

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] const page_list& pages() const noexcept { return pages_; }

  // The position of the oldest row; nullopt when empty.
  [[nodiscard]] std::optional<position> oldest() const noexcept {
    if (rows_ == 0) return std::nullopt;
    return (*pages_.first())->positions(pages_.sizes().of(0))[begin_];
  }

  // There is a row at pos. O(1) for the newest ones, O(pages).
  [[nodiscard]] bool holds(position pos) const noexcept {
    const part newest = newest_part(pos);
    return newest.rows != nullptr &&
           std::binary_search(newest.positions + newest.begin, newest.positions + newest.end, pos);
  }

  // Rows before the first whose position is at least pos. O(pages).
  [[nodiscard]] std::size_t index_of(position pos) const noexcept {
    part_cursor at(*this);
    while (at && at->positions[at->end - 1] < pos) ++at;
    return at ? at.rows_before() + at->lower_bound(pos) - at->begin : rows_;
  }
  // Finds rows at ascending positions; all of them in O(pages + rows found * log(page_tokens)).
  class cursor {
   public:
    cursor() = default;
    explicit cursor(const packed_rows& all) noexcept : at_(all) {}
    // The row at pos and the number of rows before it; nullopt where it is not held.
    [[nodiscard]] std::optional<located_row> find(position pos) noexcept {
      while (at_ && at_->positions[at_->end - 1] < pos) ++at_;
      if (!at_) return std::nullopt;
      part row = *at_;
      row.begin = row.lower_bound(pos);
      if (row.positions[row.begin] != pos) return std::nullopt;
      row.end = row.begin + 1;
      return located_row{row.as_slab(), at_.rows_before() + row.begin - at_->begin};
    }

   private:
    part_cursor at_;
  };
  // O(pages).
  [[nodiscard]] std::optional<located_row> find(position pos) const noexcept {
    return cursor(*this).find(pos);
  }
  // fn(position, rows before it), oldest first.
  template <class Fn>
  void for_each_position(Fn&& fn) const {
    std::size_t index = 0;
    for_each_part([&](const part& some) {
      for (std::uint32_t at = some.begin; at < some.end; ++at) fn(some.positions[at], index++);
    });
  }

 protected:
  packed_rows(page_pool& pool, const page_sizes& sizes) noexcept : pages_(pool, sizes) {}

  // Pages that hold a row; all of them but in a step.
  [[nodiscard]] std::size_t pages_in_use() const noexcept {
    return rows_ == 0 ? 0 : pages_.sizes().pages_for(begin_ + rows_);
  }
  [[nodiscard]] std::size_t room_in_last() const noexcept {
    return pages_.empty() ? 0 : pages_.slots() - begin_ - rows_;
  }
  // The rows of the index-th page, which p is.
  [[nodiscard]] part part_of(std::size_t index, page* p) const noexcept {
    const page_layout& layout = pages_.sizes().of(index);
    const std::size_t end = begin_ + rows_ - pages_.sizes().slots_before(index);
    return {index,
            p,
            &layout,
            p->positions(layout),
            index == 0 ? begin_ : 0,
            static_cast<std::uint32_t>(std::min<std::size_t>(end, layout.page_tokens))};
  }
  // Between steps, of a stream that is not empty.
  [[nodiscard]] part last_part() const noexcept {
    return part_of(pages_.size() - 1, *pages_.last());
  }
  // The last part with a row at pos or before it; of no page where there is none.
  [[nodiscard]] part newest_part(position pos) const noexcept {
    auto at = pages_.last();
    std::size_t index = pages_.size();
    for (const std::size_t in_use = pages_in_use(); index > in_use; --index) --at;
    for (; index > 0; --index, --at) {
      const part some = part_of(index - 1, *at);
      if (some.positions[some.begin] <= pos) return some;
    }
    return {};
  }
  // fn(part), oldest first.
  template <class Fn>
  void for_each_part(const Fn& fn) const {
    for (part_cursor at(*this); at; ++at) fn(*at);
  }

  // Drops the last page, whose rows are gone.
  void drop_last() noexcept {
    pages_.drop_last();
    if (pages_.empty()) begin_ = 0;
  }

  std::uint32_t begin_ = 0;  // slots of the first page before the oldest row
  page_list pages_;
  std::size_t rows_ = 0;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
