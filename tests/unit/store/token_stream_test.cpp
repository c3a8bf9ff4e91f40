// SPDX-License-Identifier: Apache-2.0
//
// token_stream by itself: sparse positions, borders of pages, the largest positions.
#include "headwise/store/token_stream.hpp"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "support/counting_resource.hpp"

namespace headwise_tests {
namespace {

using headwise::page_layout;
using headwise::position;
using headwise::slab;
using headwise::token_count;
using headwise::detail::page_pool;
using headwise::detail::token_stream;
using positions = std::vector<position>;

// One stream of rows whose key and value are their position.
class stream_harness {
 public:
  explicit stream_harness(token_count lifetime, std::uint32_t page_tokens = 4,
                          std::size_t limit = 1000)
      : pool_({page_tokens, sizeof(position), sizeof(position)}, limit, 0, &memory_),
        stream_(lifetime, pool_) {}
  stream_harness(const stream_harness&) = delete;
  stream_harness& operator=(const stream_harness&) = delete;
  ~stream_harness() { stream_.clear(); }

  [[nodiscard]] bool begin(const positions& rows) {
    if (!stream_.try_extend(rows.size())) return false;
    for (const position pos : rows) {
      const token_stream::slot slot = stream_.next_slot();
      *slot.pos = pos;
      std::memcpy(slot.key, &pos, sizeof pos);
      std::memcpy(slot.value, &pos, sizeof pos);
    }
    return true;
  }
  void append(const positions& rows, position keep_from,
              std::optional<position> skipped = std::nullopt) {
    ASSERT_TRUE(begin(rows));
    stream_.commit(keep_from, skipped);
  }
  [[nodiscard]] positions seen(position query) {
    positions result;
    const auto collect = [&](const slab& s) {
      EXPECT_GT(s.count, 0U);
      for (std::uint32_t i = 0; i < s.count; ++i) {
        position key = 0;
        std::memcpy(&key, s.keys + i * sizeof key, sizeof key);
        EXPECT_EQ(key, s.positions[i]);
        result.push_back(s.positions[i]);
      }
    };
    stream_.for_each_slab(query, query, collect);
    return result;
  }

  counting_resource memory_;
  page_pool pool_;
  token_stream stream_;
};

TEST(token_stream, appends_and_evicts_in_order) {
  stream_harness s(3);
  s.append({0, 1, 2, 3, 4}, 4);
  EXPECT_EQ(s.seen(4), (positions{2, 3, 4}));
  EXPECT_EQ(s.stream_.rows(), 3U);
  s.append({5}, 5);
  EXPECT_EQ(s.seen(5), (positions{3, 4, 5}));
  s.append({6}, 6);  // slot 3 of the first page has gone: the page too
  EXPECT_EQ(s.stream_.pages().size(), 1U);
  EXPECT_EQ(s.pool_.pages_in_use(), 1U);
  EXPECT_EQ(s.stream_.oldest(), position{4});
}

TEST(token_stream, sparse_positions) {
  stream_harness s(10);
  s.append({0, 7, 9, 30, 31, 38}, 30);
  EXPECT_EQ(s.seen(30), (positions{30}));
  EXPECT_EQ(s.seen(31), (positions{30, 31}));
  EXPECT_EQ(s.seen(39), (positions{30, 31, 38}));
  EXPECT_EQ(s.seen(40), (positions{31, 38}));
  EXPECT_EQ(s.seen(48), positions{});
  s.append({}, 60);
  EXPECT_EQ(s.stream_.rows(), 0U);
  EXPECT_EQ(s.stream_.oldest(), std::nullopt);
  EXPECT_EQ(s.pool_.pages_in_use(), 0U);
  s.append({70}, 70);
  EXPECT_EQ(s.seen(70), (positions{70}));
}

// 1. a page whose first rows only have expired  2. one whose rows lie before and after what is seen
// 3. whole pages before  4. the last page shows less than it holds
TEST(token_stream, shows_parts_of_pages) {
  stream_harness s(10);
  s.append({0, 1, 2, 50, 51, 52, 53, 54}, 5);
  EXPECT_EQ(s.seen(11), (positions{2}));  // 1, 4
  EXPECT_EQ(s.seen(30), positions{});     // 2
  EXPECT_EQ(s.seen(60), (positions{51, 52, 53, 54}));
  EXPECT_EQ(s.seen(62), (positions{53, 54}));  // 3
  EXPECT_EQ(s.seen(51), (positions{50, 51}));  // 4
  for (position pos = 0; pos < 60; ++pos)
    EXPECT_EQ(s.stream_.holds(pos), pos <= 2 || (pos >= 50 && pos <= 54)) << pos;
}

// Slots that a step was promised, and has not filled, show nothing.
TEST(token_stream, does_not_show_promised_slots) {
  stream_harness s(headwise::forever, 2);
  ASSERT_TRUE(s.stream_.try_extend(5));
  EXPECT_EQ(s.seen(9), positions{});
  EXPECT_FALSE(s.stream_.holds(0));
  for (position pos = 0; pos < 3; ++pos) *s.stream_.next_slot().pos = pos;
  positions seen;
  const auto collect = [&](const slab& shown) {
    seen.insert(seen.end(), shown.positions, shown.positions + shown.count);
  };
  s.stream_.for_each_slab(9, 9, collect);
  EXPECT_EQ(seen, (positions{0, 1, 2}));
  EXPECT_TRUE(s.stream_.holds(2));
  s.stream_.cancel();
}

// 1. pages_needed is what try_extend takes  2. cancel gives it back  3. and the rows are as before
TEST(token_stream, extends_by_what_it_said_and_cancels) {
  for (std::uint32_t page_tokens = 1; page_tokens <= 5; ++page_tokens)
    for (std::size_t before = 0; before < 12; ++before)
      for (std::size_t count = 0; count < 12; ++count) {
        stream_harness s(headwise::forever, page_tokens);
        positions rows(before);
        for (std::size_t i = 0; i < before; ++i) rows[i] = static_cast<position>(i);
        s.append(rows, 0);
        const std::size_t used = s.pool_.pages_in_use();
        const std::size_t needed = s.stream_.pages_needed(count);
        positions more(count);
        for (std::size_t i = 0; i < count; ++i) more[i] = static_cast<position>(100 + i);
        ASSERT_TRUE(s.begin(more));
        EXPECT_EQ(s.pool_.pages_in_use(), used + needed);  // 1
        EXPECT_EQ(s.seen(200).size(), before + count);
        s.stream_.cancel();
        EXPECT_EQ(s.pool_.pages_in_use(), used);  // 2
        EXPECT_EQ(s.seen(200), rows);             // 3
        EXPECT_EQ(s.stream_.rows(), before);
      }
}

TEST(token_stream, a_refused_extension_can_be_undone) {
  stream_harness s(headwise::forever, 2, 3);
  s.append({0, 1, 2}, 0);
  EXPECT_FALSE(s.stream_.try_extend(5));
  s.stream_.cancel();
  EXPECT_EQ(s.seen(9), (positions{0, 1, 2}));
  EXPECT_EQ(s.pool_.pages_in_use(), 2U);
}

TEST(token_stream, rollback_drops_rows_and_pages) {
  for (position length = 0; length <= 10; ++length) {
    stream_harness s(headwise::forever, 3);
    s.append({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 0);
    s.stream_.rollback(length);
    positions expected;
    for (position pos = 0; pos < length; ++pos) expected.push_back(pos);
    EXPECT_EQ(s.seen(20), expected);
    EXPECT_EQ(s.stream_.rows(), length);
    EXPECT_EQ(s.pool_.pages_in_use(), (length + 2) / 3);
    s.append({length}, 0);  // and goes on from there
    EXPECT_EQ(s.seen(20).size(), length + 1);
  }
}

TEST(token_stream, knows_what_a_rollback_would_miss) {
  stream_harness s(4);
  EXPECT_EQ(s.stream_.missing_after_rollback(0), std::nullopt);
  s.append({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 9);  // 6 .. 9 are left
  EXPECT_EQ(s.stream_.missing_after_rollback(10), std::nullopt);
  EXPECT_EQ(s.stream_.missing_after_rollback(9), std::nullopt);
  EXPECT_EQ(s.stream_.missing_after_rollback(8), position{5});
  EXPECT_EQ(s.stream_.missing_after_rollback(2), position{0});
  EXPECT_EQ(s.stream_.missing_after_rollback(0), std::nullopt);
}

// A token that was never given a slot is missing all the same.
TEST(token_stream, remembers_tokens_that_were_skipped) {
  stream_harness s(4);
  s.append({6, 7, 8, 9}, 9, position{5});
  EXPECT_EQ(s.stream_.missing_after_rollback(9), std::nullopt);
  EXPECT_EQ(s.stream_.missing_after_rollback(8), position{5});
}

TEST(token_stream, shared_pages_are_copied_before_they_are_written) {
  stream_harness s(headwise::forever, 4);
  s.append({0, 1, 2, 3, 4, 5}, 0);
  token_stream copy(headwise::forever, s.pool_);
  s.stream_.share_with(copy);
  EXPECT_EQ(s.pool_.pages_in_use(), 2U);
  EXPECT_EQ(s.stream_.pages_needed(1), 1U);
  s.append({6}, 0);
  EXPECT_EQ(s.pool_.pages_in_use(), 3U);
  EXPECT_EQ(copy.rows(), 6U);
  EXPECT_EQ(copy.pages_needed(1), 0U);  // the shared page is its own by now
  std::swap(copy, s.stream_);
  EXPECT_EQ(s.seen(10), (positions{0, 1, 2, 3, 4, 5}));
  copy.clear();
}

TEST(token_stream, a_cancelled_copy_leaves_the_shared_page) {
  stream_harness s(headwise::forever, 4);
  s.append({0, 1}, 0);
  token_stream copy(headwise::forever, s.pool_);
  s.stream_.share_with(copy);
  ASSERT_TRUE(s.begin({2, 3, 4}));
  s.stream_.cancel();
  EXPECT_EQ(s.pool_.pages_in_use(), 1U);
  EXPECT_EQ(s.seen(9), (positions{0, 1}));
  EXPECT_EQ(s.stream_.pages_needed(1), 1U);  // still shared
  copy.clear();
  EXPECT_EQ(s.stream_.pages_needed(1), 0U);
}

// As many slots as were promised: a policy that answers differently for the same token stops here.
TEST(token_stream, hands_out_the_slots_that_it_promised) {
  stream_harness s(headwise::forever, 4);
  ASSERT_TRUE(s.stream_.try_extend(2));
  static_cast<void>(s.stream_.next_slot());
  EXPECT_DEATH(s.stream_.commit(0, std::nullopt), "answered differently");
  static_cast<void>(s.stream_.next_slot());
  EXPECT_DEATH(static_cast<void>(s.stream_.next_slot()), "answered differently");
  s.stream_.cancel();
}

// Positions are unsigned and may pass 2^31; a sequence that long is possible, if not testable.
TEST(fault_cases, L04_positions_beyond_2_to_the_31) {
  constexpr position start = (position{1} << 31) - 8;
  stream_harness s(4);
  for (position pos = start; pos < start + 20; ++pos) s.append({pos}, pos);
  EXPECT_EQ(s.seen(start + 19), (positions{start + 16, start + 17, start + 18, start + 19}));
  constexpr position last = headwise::max_length - 1;
  stream_harness end(4);
  for (position pos = last - 9; pos <= last; ++pos) end.append({pos}, pos);
  EXPECT_EQ(end.seen(last), (positions{last - 3, last - 2, last - 1, last}));
}

}  // namespace
}  // namespace headwise_tests
