// SPDX-License-Identifier: Apache-2.0
//
// How many sequences fit: the figure is never too high, and exact where the plan leaves no choice.
#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

using half_engine = engine<headwise::f16>;

// Feeds `count` sequences to `length` tokens by turns; the most pages that were in use.
std::size_t most_in_use(half_engine& first, std::size_t count, token_count length) {
  std::vector<half_engine> texts;
  for (std::size_t i = 0; i < count; ++i)
    texts.emplace_back(first.shared_cache(), random_fixture(1));
  std::size_t most = 0;
  for (token_count t = 0; t < length; ++t)
    for (half_engine& text : texts) {
      const auto tokens = text.next_tokens({0});
      most = std::max(most, first.cache().stats().pages_in_use + text.text().pages_needed(tokens));
      text.feed(1);
    }
  return most;
}

TEST(admission, is_never_too_high) {
  const std::vector<test_policy> plan{
      headwise::global{}, window(5), headwise::union_of(window(3), headwise::heavy_hitters(4)),
      headwise::union_of(stranger::every_nth(4, 2, 6), headwise::heavy_hitters(3))};
  for (const std::uint32_t page_tokens : {1U, 3U, 16U})
    for (const token_count horizon : {0U, 1U, 4U})
      for (const token_count length : {1U, 2U, 5U, 6U, 40U}) {
        headwise::cache_config config;
        config.page_tokens = page_tokens;
        config.rollback_horizon = horizon;
        config.pages = 500;
        half_engine first({1, 4, 4, 8}, plan, random_fixture(1), config);
        const std::size_t each = first.cache().pages_for(length);
        EXPECT_LE(most_in_use(first, 2, length), 2 * each)
            << page_tokens << " slots, horizon " << horizon << ", " << length << " tokens";
        EXPECT_EQ(first.cache().sequences_that_fit(length), 500 / each);
      }
}

// A pool that is a fraction of the length is cut when a sequence opens, not when it has grown.
TEST(admission, asks_what_pools_of_a_fraction_were_opened_for) {
  headwise::cache_config config;
  config.page_tokens = 4;
  config.pages = 60;
  half_engine text({1, 1, 1, 8}, {headwise::heavy_hitters(0.1, 1000)}, random_fixture(1), config);
  // The cap is above 100: every token but the newest is in the pool.
  EXPECT_EQ(text.cache().pages_for(100), 25U + 2U);
  EXPECT_EQ(text.cache().sequences_that_fit(100), 2U);
  // A tenth of 100: ten rows of the pool; two in the stream, perhaps over the border of a page.
  EXPECT_EQ(text.cache().pages_for(100, {}, 100), 3U + 2U);
  EXPECT_LE(most_in_use(text, 1, 100), 27U);
}

TEST(admission, refuses_fractions_that_are_none) {
  half_engine text({1, 1, 1, 8}, {headwise::global{}}, random_fixture(1));
  for (const double fraction : {-0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) try {
      static_cast<void>(text.cache().pages_for(10, std::vector{fraction}));
      FAIL() << fraction;
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.code(), headwise::error_code::out_of_range);
      EXPECT_EQ(e.place(), "forever_fractions[0]");
    }
}

TEST(admission, is_exact_for_global_heads_and_full_windows) {
  headwise::cache_config config;
  config.page_tokens = 4;
  config.pages = 33;
  half_engine all({1, 2, 2, 8}, {headwise::global{}, headwise::global{}}, random_fixture(1),
                  config);
  EXPECT_EQ(all.cache().pages_for(17), 10U);
  EXPECT_EQ(all.cache().sequences_that_fit(17), 3U);
  std::vector<half_engine> texts;
  for (int i = 0; i < 3; ++i) texts.emplace_back(all.shared_cache(), random_fixture(1)).feed(17);
  EXPECT_EQ(all.cache().sequences_that_fit(17), 0U);
  half_engine one_more(all.shared_cache(), random_fixture(1));
  EXPECT_FALSE(one_more.text().try_append(one_more.next_tokens(std::vector<std::int32_t>(17, 0))));

  // A window of 8 holds 9 rows within a step: three pages of 4 at the worst offset.
  half_engine windows({1, 1, 1, 8}, {window(8)}, random_fixture(1), config);
  EXPECT_EQ(windows.cache().pages_for(1000), 3U);
  EXPECT_EQ(most_in_use(windows, 1, 100), 3U);
  // With a horizon of 6 it holds 14 rows within a step: five pages at the worst offset.
  config.rollback_horizon = 6;
  half_engine held({1, 1, 1, 8}, {window(8)}, random_fixture(1), config);
  EXPECT_EQ(held.cache().pages_for(1000), 5U);
  EXPECT_EQ(most_in_use(held, 1, 100), 5U);
}

TEST(admission, goes_by_the_share_of_tokens_that_stay) {
  headwise::cache_config config;
  config.page_tokens = 10;
  config.pages = 1000;
  half_engine text({1, 1, 1, 8}, {ids_and_window({3}, 20)}, random_fixture(1), config);
  EXPECT_EQ(text.cache().pages_for(1000), 100U + 3U);
  EXPECT_EQ(text.cache().pages_for(1000, std::vector{0.25}), 25U + 3U);
  EXPECT_EQ(text.cache().sequences_that_fit(1000, std::vector{0.25}), 35U);
  EXPECT_THROW(static_cast<void>(text.cache().pages_for(10, std::vector{0.5, 0.5})),
               headwise::error);
}

}  // namespace
}  // namespace headwise_tests
