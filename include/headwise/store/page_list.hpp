// SPDX-License-Identifier: Apache-2.0
//
// page_list: the pages of one stream, in order. Only its blocks are read to walk it, never a page:
// pages lie far from each other. O(1) a call.
// One thread at a time.
#pragma once

#include <utility>

#include "headwise/store/page_pool.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

// Sizes of the pages of a list: some of one, the rest of another.
struct page_sizes {
  const page_layout* first;
  const page_layout* others;
  std::size_t firsts;

  [[nodiscard]] const page_layout& of(std::size_t index) const noexcept {
    return index < firsts ? *first : *others;
  }
  // Row slots of the pages before.
  [[nodiscard]] std::size_t slots_before(std::size_t index) const noexcept {
    const std::size_t small = std::min(index, firsts);
    return small * first->page_tokens + (index - small) * others->page_tokens;
  }
  [[nodiscard]] std::size_t pages_for(std::size_t slots) const noexcept {
    const std::size_t in_first = firsts * first->page_tokens;
    if (slots <= in_first) return first->pages_for(slots);
    return firsts + others->pages_for(slots - in_first);
  }
};

// Owns its pages and is copied by flat_vector, which wants plain elements: a copy may only take the
// place of the original, or be made of an empty list.
class page_list {
 public:
  // A page of the list. Goes with the page, and past the last one.
  class cursor {
   public:
    cursor() = default;
    [[nodiscard]] page*& operator*() const noexcept { return block_->pages[at_]; }
    cursor& operator++() noexcept {
      if (++at_ == page_block::capacity) *this = {block_->next, 0};
      return *this;
    }
    cursor& operator--() noexcept {
      if (at_ == 0) *this = {block_->previous, page_block::capacity};
      --at_;
      return *this;
    }
    // Asks for the blocks that come next.
    void prefetch() const noexcept {
      if (at_ == 0 && block_->next != nullptr) __builtin_prefetch(block_->next->next);
    }

   private:
    friend class page_list;
    cursor(page_block* block, std::uint32_t at) noexcept : block_(block), at_(at) {}

    page_block* block_ = nullptr;
    std::uint32_t at_ = 0;
  };

  // Both outlive the list, which must be empty when it goes.
  page_list(page_pool& pool, const page_sizes& sizes) noexcept : pool_(&pool), sizes_(sizes) {}

  [[nodiscard]] page_pool& pool() const noexcept { return *pool_; }
  [[nodiscard]] const page_sizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // Blocks that hold them.
  [[nodiscard]] std::size_t blocks() const noexcept {
    return (first_.at_ + size_ + page_block::capacity - 1) / page_block::capacity;
  }
  // Of the pages.
  [[nodiscard]] std::size_t slots() const noexcept { return sizes_.slots_before(size_); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    const std::size_t small = std::min(size_, sizes_.firsts);
    return small * sizes_.first->page_bytes() + (size_ - small) * sizes_.others->page_bytes();
  }
  // Of no page where the list is empty.
  [[nodiscard]] cursor first() const noexcept { return first_; }
  [[nodiscard]] cursor last() const noexcept { return last_; }

  // Appends a new page. False where the pool refuses, and then nothing changed.
  [[nodiscard]] bool try_append() noexcept {
    const page_layout& size = sizes_.of(size_);
    page* const taken = pool_->try_take_page(size);
    if (taken == nullptr) return false;
    page_block* const block = needs_block() ? pool_->try_take_block() : nullptr;
    if (needs_block() && block == nullptr) {
      pool_->release_page(taken, size);
      return false;
    }
    append(taken, block);
    return true;
  }
  // Appends a page of another list. Throws what the memory resource throws, and then nothing
  // changed.
  void append_shared(page* original) {
    page_block* const block = needs_block() ? pool_->take_shared_block() : nullptr;
    append(page_pool::share_page(original), block);
  }
  // All pages must be of one size.
  void drop_first() noexcept {
    pool_->release_page(*first_, sizes_.of(0));
    if (--size_ == 0) return drop_block();
    page_block* const block = first_.block_;
    ++first_;
    if (first_.block_ == block) return;
    pool_->release_block(block);
  }
  void drop_last() noexcept {
    pool_->release_page(*last_, sizes_.of(--size_));
    if (size_ == 0) return drop_block();
    page_block* const block = last_.block_;
    --last_;
    if (last_.block_ == block) return;
    last_.block_->next = nullptr;
    pool_->release_block(block);
  }

 private:
  [[nodiscard]] bool needs_block() const noexcept {
    return size_ == 0 || last_.at_ + 1 == page_block::capacity;
  }
  // block: a new one where it is needed.
  void append(page* p, page_block* block) noexcept {
    if (block != nullptr) {
      block->previous = last_.block_;
      if (size_ == 0)
        first_ = {block, 0};
      else
        last_.block_->next = block;
      last_ = {block, 0};
    } else {
      ++last_.at_;
    }
    *last_ = p;
    ++size_;
  }
  // The only one, of no page.
  void drop_block() noexcept {
    pool_->release_block(first_.block_);
    first_ = last_ = {};
  }

  page_pool* pool_;
  page_sizes sizes_;
  cursor first_, last_;
  std::size_t size_ = 0;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
