// SPDX-License-Identifier: Apache-2.0
//
// Pages: a fixed number of row slots each, handed out and taken back by one pool for all heads and
// sequences of a manager. A page may be shared by forks; shared pages are never written.
// They come in two sizes (page_sizes), alike where pages are limited or reserved.
//
//   page = [references | positions [page_tokens] | keys [page_tokens, key_bytes] | values [...]]
//
// A stream holds its pages in blocks of a few, which are handed out here as well, at most one for
// each page. O(1) a call. One owner thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <new>

#include "headwise/core/types.hpp"
#include "headwise/store/block_pool.hpp"

HEADWISE_NAMESPACE_BEGIN

// Byte offsets inside a page. Keys and values start on cache lines.
struct page_layout {
  static constexpr std::size_t alignment = 64;

  std::uint32_t page_tokens = 0;  // row slots
  std::size_t key_bytes = 0;      // one encoded key row
  std::size_t value_bytes = 0;    // one encoded value row

  [[nodiscard]] constexpr std::size_t positions_at() const noexcept { return sizeof(position); }
  [[nodiscard]] constexpr std::size_t keys_at() const noexcept {
    return detail::round_up(positions_at() + page_tokens * sizeof(position), alignment);
  }
  [[nodiscard]] constexpr std::size_t values_at() const noexcept {
    return detail::round_up(keys_at() + page_tokens * key_bytes, alignment);
  }
  [[nodiscard]] constexpr std::size_t page_bytes() const noexcept {
    return detail::round_up(values_at() + page_tokens * value_bytes, alignment);
  }
  [[nodiscard]] constexpr std::size_t row_bytes() const noexcept { return key_bytes + value_bytes; }
  [[nodiscard]] constexpr std::size_t pages_for(std::size_t rows) const noexcept {
    return (rows + page_tokens - 1) / page_tokens;
  }
};

namespace detail {

struct page {
  std::uint32_t references;

  [[nodiscard]] std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this); }
  [[nodiscard]] position* positions(const page_layout& layout) noexcept {
    return reinterpret_cast<position*>(bytes() + layout.positions_at());
  }
  [[nodiscard]] std::byte* key(const page_layout& layout, std::size_t slot) noexcept {
    return bytes() + layout.keys_at() + slot * layout.key_bytes;
  }
  [[nodiscard]] std::byte* value(const page_layout& layout, std::size_t slot) noexcept {
    return bytes() + layout.values_at() + slot * layout.value_bytes;
  }
  // A row of a saved state: position, key, value.
  template <class Archive>
  void transfer_row(Archive& archive, const page_layout& layout, std::size_t slot) {
    archive.number(positions(layout)[slot]);
    archive.bytes(key(layout, slot), layout.key_bytes);
    archive.bytes(value(layout, slot), layout.value_bytes);
  }
};

// Some pages of one stream, a cache line of them.
struct page_block {
  static constexpr std::uint32_t capacity = 6;

  page_block* previous;
  page_block* next;
  std::array<page*, capacity> pages;
};

class page_pool {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  // limit: pages that may be out at once. reserved: pages, with a block for each, taken now and
  // kept, at most limit; with reserved == limit no later call but take_shared_block() asks the
  // memory resource for anything.
  page_pool(const page_layout& layout, std::size_t limit, std::size_t reserved,
            std::pmr::memory_resource* memory)
      : layout_(layout),
        small_layout_(limit == unlimited && reserved == 0 ? small(layout) : layout),
        limit_(limit),
        pages_(layout.page_bytes(), page_layout::alignment, reserved, memory),
        small_pages_(small_layout_.page_bytes(), page_layout::alignment, 0, memory),
        blocks_(sizeof(page_block), page_layout::alignment, reserved, memory) {}

  [[nodiscard]] const page_layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const page_layout& small_layout() const noexcept { return small_layout_; }
  [[nodiscard]] std::size_t pages_in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::size_t available() const noexcept { return limit_ - in_use_; }
  [[nodiscard]] std::size_t block_bytes() const noexcept { return blocks_.block_bytes(); }
  [[nodiscard]] std::size_t idle_bytes() const noexcept {
    return pages_.idle_blocks() * pages_.block_bytes() +
           blocks_.idle_blocks() * blocks_.block_bytes();
  }

  // A page of the caller's own; nullptr at the limit or where memory refuses. size: one of the two
  // layouts.
  [[nodiscard]] page* try_take_page(const page_layout& size) noexcept {
    if (in_use_ == limit_) return nullptr;
    void* const block = blocks_of(size).try_take();
    if (block == nullptr) return nullptr;
    ++in_use_;
    return ::new (block) page{1};
  }
  static page* share_page(page* p) noexcept {
    ++p->references;
    return p;
  }
  void release_page(page* p, const page_layout& size) noexcept {
    if (--p->references != 0) return;
    blocks_of(size).give_back(p);
    --in_use_;
  }

  // A block for a page that was just taken, or is taken next; nullptr where memory refuses.
  [[nodiscard]] page_block* try_take_block() noexcept {
    void* const block = blocks_.try_take();
    return block == nullptr ? nullptr : ::new (block) page_block{};
  }
  // A block for shared pages. Its memory is new, not reserved, so that a page can always have the
  // block that was reserved with it. Throws what the memory resource throws.
  [[nodiscard]] page_block* take_shared_block() {
    return ::new (blocks_.take_from_memory()) page_block{};
  }
  void release_block(page_block* block) noexcept { blocks_.give_back(block); }

 private:
  // A quarter, but not so few rows that a page's head counts.
  [[nodiscard]] static page_layout small(page_layout layout) noexcept {
    layout.page_tokens = std::min(layout.page_tokens, std::max(8U, layout.page_tokens / 4));
    return layout;
  }
  [[nodiscard]] block_pool& blocks_of(const page_layout& size) noexcept {
    return size.page_tokens == layout_.page_tokens ? pages_ : small_pages_;
  }

  page_layout layout_;
  page_layout small_layout_;
  std::size_t limit_;
  std::size_t in_use_ = 0;
  block_pool pages_;
  block_pool small_pages_;
  block_pool blocks_;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
