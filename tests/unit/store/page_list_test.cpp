// SPDX-License-Identifier: Apache-2.0
#include "headwise/store/page_list.hpp"

#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "support/counting_resource.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

using headwise::detail::page;
using headwise::detail::page_block;
using headwise::detail::page_list;
using headwise::detail::page_pool;
using headwise::detail::page_sizes;

page_sizes alike(const page_pool& pool) {
  return {&pool.layout(), &pool.layout(), 0};
}

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr std::size_t in_a_block = page_block::capacity;

// Forwards, then backwards.
void expect_pages(const page_list& list, const std::deque<page*>& expected) {
  ASSERT_EQ(list.size(), expected.size());
  auto at = list.first();
  for (page* const p : expected) {
    ASSERT_EQ(*at, p);
    ++at;
  }
  at = list.last();
  for (auto p = expected.rbegin(); p != expected.rend(); ++p, --at) ASSERT_EQ(*at, *p);
}

// What is appended and dropped at both ends at random, beside a deque; each block that is counted
// is one that memory gave.
TEST(page_list, is_a_deque_of_pages) {
  counting_resource memory;
  page_pool pool({4, 8, 8}, unlimited, 0, &memory);
  page_list list(pool, alike(pool));
  std::deque<page*> expected;
  random_source random(1);
  for (int step = 0; step < 20000; ++step) {
    const bool grows = step / 2000 % 2 == 0;
    if (expected.empty() || random.below(8) < (grows ? 5U : 3U)) {
      ASSERT_TRUE(list.try_append());
      expected.push_back(*list.last());
    } else if (random.below(2) == 0) {
      list.drop_first();
      expected.pop_front();
    } else {
      list.drop_last();
      expected.pop_back();
    }
    if (step % 16 == 0) expect_pages(list, expected);
    ASSERT_EQ(pool.pages_in_use(), expected.size());
    ASSERT_EQ(memory.bytes(),
              expected.size() * pool.layout().page_bytes() + list.blocks() * pool.block_bytes());
  }
  while (!list.empty()) list.drop_first();
  EXPECT_EQ(memory.bytes(), 0U);
}

// 1. at the limit  2. where memory refuses the page  3. or its block
TEST(page_list, a_refusal_changes_nothing) {
  counting_resource memory;
  page_pool pool({4, 8, 8}, in_a_block + 1, 0, &memory);
  page_list list(pool, alike(pool));
  std::deque<page*> expected;
  const auto expect_refusal = [&] {
    const std::size_t held = memory.bytes();
    EXPECT_FALSE(list.try_append());
    expect_pages(list, expected);
    EXPECT_EQ(memory.bytes(), held);
    EXPECT_EQ(pool.pages_in_use(), expected.size());
  };
  for (std::size_t i = 0; i < in_a_block; ++i) {
    for (const std::size_t allowed : {0U, 1U}) {  // the first page needs a block, the next do not
      memory.refuse_after(allowed);
      if (allowed == 0 || i == 0) expect_refusal();  // 2, 3
    }
    memory.allow_all();
    ASSERT_TRUE(list.try_append());
    expected.push_back(*list.last());
  }
  memory.refuse_after(1);
  expect_refusal();  // 3
  memory.allow_all();
  ASSERT_TRUE(list.try_append());
  expected.push_back(*list.last());
  expect_refusal();  // 1
  while (!list.empty()) list.drop_last();
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST(page_list, counts_slots_and_bytes_of_smaller_first_pages) {
  counting_resource memory;
  page_pool pool({32, 8, 8}, unlimited, 0, &memory);
  page_list list(pool, {&pool.small_layout(), &pool.layout(), 2});
  for (const std::size_t slots : {8U, 16U, 48U, 80U}) {
    EXPECT_EQ(list.sizes().pages_for(slots - 1), list.size() + 1);
    EXPECT_EQ(list.sizes().pages_for(slots), list.size() + 1);
    ASSERT_TRUE(list.try_append());
    EXPECT_EQ(list.slots(), slots);
    EXPECT_EQ(memory.bytes(), list.bytes() + pool.block_bytes());
  }
  while (!list.empty()) list.drop_last();
  EXPECT_EQ(list.slots() + list.bytes() + list.sizes().pages_for(0) + memory.bytes(), 0U);
}

// Blocks of shared pages are new memory, so that each reserved page keeps the block reserved with
// it: with all of the reserve shared, every page of it can still be the first of a list.
TEST(page_list, shared_pages_do_not_use_up_the_reserve) {
  counting_resource memory;
  page_pool pool({4, 8, 8}, 4, 4, &memory);
  const std::size_t reserve = memory.bytes();
  std::vector<page_list> lists(4, page_list(pool, alike(pool)));
  ASSERT_TRUE(lists[0].try_append());
  page_list shared(pool, alike(pool));
  shared.append_shared(*lists[0].first());
  EXPECT_EQ((*lists[0].first())->references, 2U);
  EXPECT_EQ(memory.bytes(), reserve + pool.block_bytes());
  memory.refuse_after(0);
  page_list refused(pool, alike(pool));
  EXPECT_THROW(refused.append_shared(*lists[0].first()), std::bad_alloc);
  EXPECT_TRUE(refused.empty());
  EXPECT_EQ((*lists[0].first())->references, 2U);
  for (std::size_t i = 1; i < lists.size(); ++i) EXPECT_TRUE(lists[i].try_append());
  for (page_list& list : lists) list.drop_first();
  shared.drop_first();
  EXPECT_EQ(memory.bytes(), reserve);
  EXPECT_EQ(pool.idle_bytes(), reserve);
}

}  // namespace
}  // namespace headwise_tests
