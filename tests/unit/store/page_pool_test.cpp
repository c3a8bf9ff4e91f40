// SPDX-License-Identifier: Apache-2.0
#include "headwise/store/page_pool.hpp"

#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "support/counting_resource.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

using headwise::page_layout;
using headwise::position;
using headwise::detail::block_pool;
using headwise::detail::page;
using headwise::detail::page_pool;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

// 1. header, positions, keys and values do not overlap and fit  2. keys, values and the page start
// on cache lines  3. nothing but alignment is added
TEST(page_layout, regions_do_not_overlap) {
  for (std::uint32_t tokens = 1; tokens <= 64; ++tokens)
    for (const std::size_t key : {1U, 2U, 34U, 160U})
      for (const std::size_t value : {1U, 64U, 320U}) {
        const page_layout layout{tokens, key, value};
        EXPECT_GE(layout.positions_at(), sizeof(page));                                  // 1
        EXPECT_GE(layout.keys_at(), layout.positions_at() + tokens * sizeof(position));  // 1
        EXPECT_GE(layout.values_at(), layout.keys_at() + tokens * key);                  // 1
        EXPECT_GE(layout.page_bytes(), layout.values_at() + tokens * value);             // 1
        EXPECT_EQ(layout.keys_at() % 64 + layout.values_at() % 64 + layout.page_bytes() % 64,
                  0U);                                                                       // 2
        EXPECT_LT(layout.page_bytes(), sizeof(page) + tokens * (4 + key + value) + 3 * 64);  // 3
        EXPECT_EQ(layout.row_bytes(), key + value);
      }
}

TEST(block_pool, reserved_blocks_are_used_first_and_kept) {
  counting_resource memory;
  {
    block_pool pool(40, 64, 3, &memory);
    EXPECT_EQ(pool.block_bytes(), 64U);
    EXPECT_EQ(memory.bytes(), 3U * 64);
    EXPECT_EQ(pool.idle_blocks(), 3U);
    std::set<void*> blocks;
    for (int i = 0; i < 5; ++i) {
      void* const block = pool.try_take();
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U);
      std::memset(block, i, 64);
      EXPECT_TRUE(blocks.insert(block).second);
    }
    EXPECT_EQ(pool.idle_blocks(), 0U);
    EXPECT_EQ(memory.bytes(), 5U * 64);
    for (void* const block : blocks) pool.give_back(block);
    EXPECT_EQ(pool.idle_blocks(), 3U);
    EXPECT_EQ(memory.bytes(), 3U * 64);  // those beyond the reserve went back at once
  }
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST(block_pool, refusals_change_nothing) {
  counting_resource memory;
  memory.refuse_after(0);
  EXPECT_THROW(block_pool(64, 64, 2, &memory), std::bad_alloc);
  EXPECT_EQ(memory.bytes(), 0U);
  memory.allow_all();
  block_pool pool(64, 64, 1, &memory);
  memory.refuse_after(0);
  void* const reserved = pool.try_take();
  EXPECT_NE(reserved, nullptr);
  EXPECT_EQ(pool.try_take(), nullptr);
  EXPECT_THROW(static_cast<void>(pool.take_from_memory()), std::bad_alloc);
  pool.give_back(reserved);
  EXPECT_EQ(pool.idle_blocks(), 1U);
}

TEST(page_pool, counts_pages_against_its_limit) {
  counting_resource memory;
  page_pool pool({4, 8, 8}, 3, 0, &memory);
  std::vector<page*> pages;
  for (int i = 0; i < 3; ++i) pages.push_back(pool.try_take_page(pool.layout()));
  EXPECT_EQ(pool.available(), 0U);
  EXPECT_EQ(memory.bytes(), 3 * pool.layout().page_bytes());
  EXPECT_EQ(pool.try_take_page(pool.layout()), nullptr);
  EXPECT_EQ(memory.bytes(), 3 * pool.layout().page_bytes());
  pool.release_page(pages.back(), pool.layout());
  pages.back() = pool.try_take_page(pool.layout());
  EXPECT_NE(pages.back(), nullptr);
  for (page* const p : pages) pool.release_page(p, pool.layout());
  EXPECT_EQ(pool.pages_in_use(), 0U);
  EXPECT_EQ(memory.bytes(), 0U);
}

// A quarter of the rows, at least eight, where pages are neither limited nor reserved.
TEST(page_pool, small_pages_are_for_pools_without_limit_or_reserve) {
  counting_resource memory;
  const auto small = [&](std::uint32_t page_tokens, std::size_t limit, std::size_t reserved) {
    return page_pool({page_tokens, 8, 8}, limit, reserved, &memory).small_layout().page_tokens;
  };
  EXPECT_EQ(small(64, no_limit, 0), 16U);
  EXPECT_EQ(small(32, no_limit, 0), 8U);
  EXPECT_EQ(small(17, no_limit, 0), 8U);
  EXPECT_EQ(small(5, no_limit, 0), 5U);
  EXPECT_EQ(small(32, 100, 0), 32U);
  EXPECT_EQ(small(32, no_limit, 2), 32U);

  page_pool pool({32, 8, 8}, no_limit, 0, &memory);
  page* const p = pool.try_take_page(pool.small_layout());
  EXPECT_EQ(memory.bytes(), pool.small_layout().page_bytes());
  EXPECT_EQ(pool.pages_in_use(), 1U);
  pool.release_page(p, pool.small_layout());
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST(page_pool, a_page_lives_as_long_as_its_last_reference) {
  counting_resource memory;
  page_pool pool({4, 8, 8}, no_limit, 0, &memory);
  page* const p = pool.try_take_page(pool.layout());
  EXPECT_EQ(page_pool::share_page(p), p);
  page_pool::share_page(p);
  EXPECT_EQ(p->references, 3U);
  EXPECT_EQ(pool.pages_in_use(), 1U);
  pool.release_page(p, pool.layout());
  pool.release_page(p, pool.layout());
  EXPECT_EQ(pool.pages_in_use(), 1U);
  EXPECT_EQ(p->references, 1U);
  pool.release_page(p, pool.layout());
  EXPECT_EQ(pool.pages_in_use(), 0U);
  EXPECT_EQ(memory.bytes(), 0U);
}

}  // namespace
}  // namespace headwise_tests
