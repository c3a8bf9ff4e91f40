// SPDX-License-Identifier: Apache-2.0
//
// Fault cases B: windows, their borders and the storage behind them.
#include <limits>

#include <gtest/gtest.h>

#include "support/counting_resource.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

engine<> windowed(token_count w, fixture rows = uniform_fixture(), std::uint32_t page_tokens = 32) {
  headwise::cache_config config;
  config.page_tokens = page_tokens;
  return engine(one_head, {window(w)}, std::move(rows), config);
}
engine<> with_sinks(token_count sinks, token_count w) {
  return engine(one_head, {sinks_and_window(w)}, uniform_fixture(), {},
                headwise::token_classifier(sinks));
}

void expect_outputs(const outputs& got, const std::vector<float>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got.at(i), expected[i], 1e-5) << "row " << i;
}

TEST(fault_cases, B01_a_window_counts_the_query_in_prefill_and_decode) {
  engine prefill = windowed(4);
  EXPECT_NEAR(prefill.feed(10).at(9), 7.5, 1e-5);
  engine decode = windowed(4);
  decode.feed(9);
  EXPECT_NEAR(decode.feed(1).last(), 7.5, 1e-5);
  engine own_token = windowed(1);
  EXPECT_EQ(own_token.feed(10).at(9), 9.0F);
  EXPECT_EQ(own_token.feed(1).last(), 10.0F);
}

TEST(fault_cases, B02_nothing_leaves_when_the_length_equals_the_window) {
  engine text = windowed(8);
  text.feed(6);
  EXPECT_NEAR(text.feed(1).last(), 3.0, 1e-5);
  EXPECT_EQ(text.kept(), range(0, 6));
  EXPECT_NEAR(text.feed(1).last(), 3.5, 1e-5);
  EXPECT_EQ(text.kept(), range(0, 7));
  EXPECT_NEAR(text.feed(1).last(), 4.5, 1e-5);
  EXPECT_EQ(text.kept(), range(1, 8));
}

TEST(fault_cases, B03_prefill_longer_than_window) {
  engine text = windowed(4);
  const outputs got = text.feed(7);
  expect_outputs(got, {0.0F, 0.5F, 1.0F, 1.5F, 2.5F, 3.5F, 4.5F});
  EXPECT_EQ(text.kept(), range(3, 6));

  fixture changed = uniform_fixture();
  changed.value = [](headwise::head_id, position pos, std::span<float> row) {
    fill(row, pos == 6 ? 1000.0F : static_cast<float>(pos));
  };
  const outputs other = windowed(4, changed).feed(7);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(other.at(i), got.at(i)) << "row " << i;
  EXPECT_NE(other.at(6), got.at(6));
}

TEST(fault_cases, B04_prefill_covers_a_window_that_storage_did_not_foresee) {
  engine small_pages = windowed(4, uniform_fixture(), 2);
  expect_outputs(small_pages.feed(7), {0.0F, 0.5F, 1.0F, 1.5F, 2.5F, 3.5F, 4.5F});
  EXPECT_EQ(small_pages.kept(), range(3, 6));
  engine wide = windowed(1000);
  expect_outputs(wide.feed(7), {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 2.5F, 3.0F});
  EXPECT_EQ(wide.kept(), range(0, 6));
}

TEST(fault_cases, B05_chunk_sizes_do_not_disturb_the_order) {
  constexpr std::size_t cycle[] = {3, 5, 1, 7, 2, 8, 9};
  for (const bool eights : {false, true}) {
    position picked = 0;
    const fixture rows = picking_fixture([&] { return picked; });
    const headwise::model_shape shape{1, 1, 1, 8};
    engine chunked(shape, {window(8)}, rows), single(shape, {window(8)}, rows);
    for (std::size_t i = 0; chunked.text().length() < 60; ++i) {
      const std::size_t left = 60 - chunked.text().length();
      const std::size_t count = std::min(left, eights ? 8 : cycle[i % std::size(cycle)]);
      picked = static_cast<position>(i);
      const outputs together = chunked.feed(count);
      for (std::size_t token = 0; token < count; ++token)
        EXPECT_NEAR(single.feed(1).last(), together.at(token), 1e-6);
      EXPECT_EQ(chunked.kept(), single.kept());
    }
    EXPECT_EQ(chunked.kept(), range(52, 59));
  }
}

// Rotation makes attention depend on distances alone, so the end of a long text equals a short one.
TEST(fault_cases, B05_the_last_window_equals_the_same_tokens_alone) {
  const auto shifted = [](position shift) {
    return fixture{[shift](headwise::head_id, position pos, std::span<float> row) {
                     fill_random(row, pos + shift);
                     rotate(row, pos, 8);
                   },
                   [shift](headwise::head_id, position pos, std::span<float> row) {
                     fill_random(row, 900 + pos + shift);
                   },
                   [shift](std::uint32_t, std::uint32_t, position pos, std::span<float> row) {
                     fill_random(row, 1800 + pos + shift);
                     rotate(row, pos, 8);
                   }};
  };
  engine whole({1, 1, 1, 8}, {window(8)}, shifted(0));
  engine end({1, 1, 1, 8}, {window(8)}, shifted(52));
  const outputs a = whole.feed(60), b = end.feed(8);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(a.row(59)[i], b.row(7)[i], 1e-5);
}

TEST(fault_cases, B06_a_second_chunk_longer_than_the_window) {
  engine text = windowed(4);
  text.feed(6);
  const outputs second = text.feed(8);
  expect_outputs(second, {4.5F, 5.5F, 6.5F, 7.5F, 8.5F, 9.5F, 10.5F, 11.5F});
  const outputs at_once = windowed(4).feed(14);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(second.at(i), at_once.at(6 + i));
}

TEST(fault_cases, B07_each_token_of_a_draft_has_its_own_window) {
  engine text = windowed(4);
  text.feed(10);
  expect_outputs(text.feed(3), {8.5F, 9.5F, 10.5F});
}

TEST(fault_cases, B08_slots_that_hold_nothing_are_not_attended) {
  engine text = windowed(8);
  EXPECT_NEAR(text.feed(3).last(), 1.0, 1e-6);
}

TEST(fault_cases, B09_a_huge_window_costs_what_is_stored) {
  const auto memory_of = [](test_policy policy, outputs& out) {
    counting_resource memory;
    headwise::cache_config config;
    config.page_tokens = 4;
    config.memory = &memory;
    engine text(one_head, {std::move(policy)}, random_fixture(9), config);
    out = text.feed(5);
    return memory.peak_bytes();
  };
  outputs expected, wide, widest;
  const std::size_t bytes = memory_of(headwise::global{}, expected);
  EXPECT_EQ(memory_of(window(1'000'000'000), wide), bytes);
  EXPECT_EQ(memory_of(window(headwise::forever), widest), bytes);
  EXPECT_LT(bytes, 4096U);
  EXPECT_EQ(wide, expected);
  EXPECT_EQ(widest, expected);
  try {
    const headwise::policy_spec spec{
        "local_window", {{"window", std::numeric_limits<std::int64_t>::max()}}, {}, {}};
    static_cast<void>(headwise::make_policy(spec, "/policies/p0"));
    FAIL() << "2^63 - 1 is no number of tokens";
  } catch (const headwise::error& e) {
    EXPECT_EQ(e.code(), headwise::error_code::out_of_range);
    EXPECT_EQ(e.place(), "/policies/p0/window");
    EXPECT_EQ(e.got(), "9223372036854775807");
    EXPECT_EQ(e.expected(), "a number from 1 to 4294967295");
  }
}

TEST(fault_cases, B10_counts_of_zero) {
  engine text = with_sinks(0, 2);
  text.feed(10);
  EXPECT_EQ(text.kept(), range(8, 9));
  try {
    static_cast<void>(headwise::local_window(0));
    FAIL();
  } catch (const headwise::error& e) {
    EXPECT_EQ(e.code(), headwise::error_code::invalid_argument);
    EXPECT_STREQ(e.what(), "local_window: invalid argument: got 0, expected at least 1 token");
  }
}

TEST(fault_cases, B10_no_heavy_hitters_beside_a_window) {
  engine text({1, 1, 1, 4}, {headwise::union_of(window(2), headwise::heavy_hitters(0))},
              uniform_fixture());
  text.feed(10);
  EXPECT_EQ(text.kept(), range(8, 9));
  engine plain({1, 1, 1, 4}, {window(2)}, uniform_fixture());
  plain.feed(10);  // a pool of no rows costs nothing
  EXPECT_EQ(text.text().stats().held_bytes(), plain.text().stats().held_bytes());
}

TEST(fault_cases, B12_storage_that_grows_behind_a_moving_window) {
  position picked = 0;
  headwise::cache_config config;
  config.page_tokens = 2;
  engine text({1, 1, 1, 16}, {ids_and_window({7}, 4)}, picking_fixture([&] { return picked; }),
              config);
  text.feed_singly(9);
  for (int i = 0; i < 6; ++i) text.feed(std::vector<std::int32_t>{7});
  EXPECT_EQ(text.kept(), range(9, 14));
  text.feed(1);  // position 15: the window is 12..15, and 9..14 are special
  EXPECT_EQ(text.kept(), range(9, 15));
  for (picked = 9; picked < 16; ++picked) {
    engine fork = text.fork();
    // Position 16 brings e_0, so the kept rows 9 to 15 still differ from each other and from it.
    EXPECT_NEAR(fork.feed(1).last(), static_cast<float>(picked), 1e-5);
  }
}

// A plan does not change while a sequence lives, so there is no budget to shrink.
TEST(fault_cases, B13_the_oldest_rows_leave) {
  engine text = with_sinks(1, 2);
  text.feed_singly(5);
  EXPECT_EQ(text.kept(), (positions{0, 3, 4}));
}

TEST(fault_cases, B14_page_borders) {
  counting_resource memory;  // poisons what it gets back
  headwise::cache_config config;
  config.page_tokens = 16;
  config.pages = 1000;  // so that all are of that size
  config.memory = &memory;
  engine text(one_head, {window(20)}, uniform_fixture(), config);
  for (position length = 1; length <= 100; ++length) {
    const position first = length < 20 ? 0 : length - 20;
    EXPECT_NEAR(text.feed(1).last(), (first + length - 1) / 2.0, 1e-4) << length;
    EXPECT_EQ(text.text().stats().resident_rows, std::min<std::size_t>(length, 20));
    // 20 rows in pages of 16 touch at most 3 pages; no page without a resident row is held.
    EXPECT_LE(text.cache().stats().pages_in_use, (length + 15) / 16 - first / 16);
  }
}

TEST(fault_cases, B15_every_head_answers_for_the_same_length) {
  engine text({1, 2, 2, 4}, {headwise::global{}, window(4)}, uniform_fixture());
  engine untouched({1, 2, 2, 4}, {headwise::global{}, window(4)}, uniform_fixture());
  text.feed(20);
  untouched.feed(20);
  EXPECT_FALSE(text.text().try_rollback(12));
  const auto refusal = text.text().rollback_blocker(12);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->head, (headwise::head_id{0, 1}));
  EXPECT_EQ(refusal->needed, 5U);
  EXPECT_EQ(refusal->oldest_kept, 16U);
  EXPECT_EQ(text.text().length(), 20U);
  EXPECT_EQ(text.feed(1), untouched.feed(1));
  EXPECT_EQ(text.kept({0, 0}), range(0, 20));
  EXPECT_EQ(text.kept({0, 1}), range(17, 20));
}

}  // namespace
}  // namespace headwise_tests
