// SPDX-License-Identifier: Apache-2.0
//
// What a head holds, when a rollback is exact, and what a refusal leaves.
#include "headwise/manager/sequence.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/counting_resource.hpp"
#include "support/engine.hpp"
#include "support/random_policy.hpp"

namespace headwise_tests {
namespace {

headwise::cache_config with_horizon(token_count tokens) {
  headwise::cache_config config;
  config.rollback_horizon = tokens;
  config.page_tokens = 4;
  return config;
}

// Keeping from length - horizon alone would drop the newest token at horizon 0.
TEST(sequence, keep_from_at_horizon_0_keeps_the_last_token) {
  for (const token_count w : {1U, 2U, 5U}) {
    engine text({1, 1, 1, 4}, {window(w)}, uniform_fixture(), with_horizon(0));
    for (position pos = 0; pos < 12; ++pos) {
      text.feed(1);
      EXPECT_EQ(text.kept(), range(pos + 1 < w ? 0 : pos + 1 - w, pos)) << "window " << w;
      EXPECT_EQ(text.text().head({0, 0}).first_query(), pos);
      EXPECT_EQ(text.text().head({0, 0}).resident_rows(), std::min(w, pos + 1));
    }
  }
}

// The horizon keeps what the query `horizon` tokens back would see, and not a row more.
TEST(sequence, the_horizon_keeps_exactly_so_much_longer) {
  for (token_count h = 0; h <= 16; ++h)
    for (const token_count w : {1U, 3U, 10U}) {
      engine text({1, 1, 1, 4}, {window(w)}, uniform_fixture(), with_horizon(h));
      text.feed(40);
      const position first = h == 0 ? 39 : 40 - h;  // the earliest query that must be answered
      EXPECT_EQ(text.text().head({0, 0}).first_query(), first);
      EXPECT_EQ(text.text().head({0, 0}).resident_rows(), 40 - (first + 1 - w));
      EXPECT_FALSE(text.text().rollback_blocker(h).has_value());
      // One token more than the horizon: at horizon 0 the newest query is kept anyway.
      EXPECT_EQ(text.text().rollback_blocker(h + 1).has_value(), h > 0 && w > 1);
    }
}

// 1. kept sets, 2. outputs and 3. bytes after a text depend on its length alone, for every policy,
// horizon and way to cut it into steps.
TEST(sequence, chunking_never_matters) {
  random_source random(11);
  for (int round = 0; round < 60; ++round) {
    const headwise::model_shape shape{1, 4, 2, 8};
    const std::vector<test_policy> plan{random_policy(random).policy, random_policy(random).policy};
    headwise::cache_config config = with_horizon(random.below(17));
    config.page_tokens = random.between(1, 20);
    std::vector<std::int32_t> ids(90);
    for (auto& id : ids) id = static_cast<std::int32_t>(random.below(test_vocabulary));
    engine once(shape, plan, random_fixture(1), config),
        cut(shape, plan, random_fixture(1), config);
    const outputs expected = once.feed(ids);
    for (std::size_t at = 0; at < ids.size();) {
      const std::size_t count = std::min<std::size_t>(random.between(1, 64), ids.size() - at);
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(at);
      const outputs part =
          cut.feed(std::vector<std::int32_t>(first, first + static_cast<std::ptrdiff_t>(count)));
      const auto wanted = std::span(expected.values).subspan(at * 4 * 8, part.values.size());
      EXPECT_TRUE(std::equal(part.values.begin(), part.values.end(), wanted.begin()));  // 2
      at += count;
    }
    for (std::uint32_t head = 0; head < 2; ++head) {
      const auto a = once.text().head({0, head}), b = cut.text().head({0, head});
      EXPECT_EQ(a.first_query(), b.first_query());
      EXPECT_EQ(a.resident_rows(), b.resident_rows());  // 1
      for (position q = a.first_query(); q < ids.size(); ++q)
        EXPECT_EQ(once.visible(a, q), cut.visible(b, q));  // 1
    }
    EXPECT_EQ(once.text().stats().payload_bytes, cut.text().stats().payload_bytes);  // 3
  }
}

// A prompt that the engine attends by itself is stored only as far as later queries see it.
TEST(sequence, last_query_stores_what_the_newest_query_needs) {
  headwise::cache_config config = with_horizon(0);
  config.pages = 3;  // of 4 rows
  engine text({1, 1, 1, 4}, {window(6)}, uniform_fixture(), config);
  const std::vector<token> prompt = text.next_tokens(std::vector<std::int32_t>(100, 0));
  EXPECT_EQ(text.text().pages_needed(prompt, headwise::attend_scope::every_query), 25U);
  EXPECT_EQ(text.text().pages_needed(prompt, headwise::attend_scope::last_query), 2U);
  EXPECT_FALSE(text.text().try_append(prompt).has_value());
  text.append(100);
  EXPECT_EQ(text.kept(), range(94, 99));
  EXPECT_NEAR(text.feed(1).last(), 97.5, 1e-4);
}

// Rows that a last_query prompt never stored are gone like evicted ones.
TEST(sequence, rollback_knows_of_rows_that_were_never_stored) {
  engine text({1, 1, 1, 4}, {window(6)}, uniform_fixture(), with_horizon(2));
  text.append(50);
  EXPECT_FALSE(text.text().rollback_blocker(2).has_value());
  const auto refusal = text.text().rollback_blocker(3);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->needed, 42U);
  EXPECT_EQ(refusal->oldest_kept, 43U);
  EXPECT_TRUE(text.text().try_rollback(2));
  EXPECT_NEAR(text.feed(1).last(), 45.5, 1e-5);
}

// A rollback does not bring rows back, so the queries before it are not answered any more.
TEST(sequence, first_query_never_promises_freed_rows) {
  engine text({1, 1, 1, 4}, {window(3)}, uniform_fixture(), with_horizon(4));
  text.feed_singly(20);
  EXPECT_EQ(text.text().head({0, 0}).first_query(), 16U);
  ASSERT_TRUE(text.text().try_rollback(4));
  EXPECT_EQ(text.text().head({0, 0}).first_query(), 16U);
  text.feed(1);
  EXPECT_EQ(text.text().head({0, 0}).first_query(), 16U);  // not 13, whose rows are gone
  EXPECT_EQ(text.kept(), range(14, 16));
  EXPECT_FALSE(text.text().try_rollback(2));  // the query at 15 would need 13
  EXPECT_TRUE(text.text().try_rollback(1));
  text.feed(10);
  EXPECT_EQ(text.text().head({0, 0}).first_query(), 22U);
  EXPECT_FALSE(text.text().rollback_blocker(4).has_value());
}

TEST(sequence, the_blocker_names_the_first_head_that_cannot) {
  engine text({2, 2, 2, 4}, {headwise::global{}, window(1), window(30), sinks_and_window(5)},
              uniform_fixture(), with_horizon(0));
  text.feed(20);
  EXPECT_FALSE(text.text().rollback_blocker(0).has_value());
  EXPECT_FALSE(text.text().rollback_blocker(1).has_value());
  const auto refusal = text.text().rollback_blocker(4);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->head, (headwise::head_id{1, 1}));
  EXPECT_EQ(refusal->needed, 12U);
  EXPECT_EQ(refusal->oldest_kept, 15U);
  EXPECT_FALSE(text.text().rollback_blocker(20).has_value());  // nothing is needed at length 0
}

// 1. nullopt  2. bitwise as before  3. and it works once there is room
TEST(sequence, a_step_without_memory_changes_nothing) {
  counting_resource memory;
  headwise::cache_config config = with_horizon(0);
  config.memory = &memory;
  const std::vector<test_policy> plan{headwise::global{}, window(4), sinks_and_window(3)};
  engine text({1, 3, 3, 4}, plan, random_fixture(3), config);
  engine untouched({1, 3, 3, 4}, plan, random_fixture(3), with_horizon(0));
  text.feed(9);
  untouched.feed(9);
  const std::vector<token> tokens = text.next_tokens(std::vector<std::int32_t>(30, 0));
  std::size_t refusals = 0;
  for (std::size_t allowed = 0;; ++allowed) {
    const std::size_t held = memory.bytes();
    memory.refuse_after(allowed);
    const bool opened = text.text().try_append(tokens).has_value();  // and cancelled again
    memory.allow_all();
    if (opened) break;
    ++refusals;  // 1
    EXPECT_EQ(text.text().length(), 9U);
    EXPECT_EQ(text.text().stats().resident_rows, untouched.text().stats().resident_rows);
    if (allowed > 1) {
      EXPECT_EQ(memory.bytes(), held);  // the step's own list of tokens may have grown before
    }
  }
  EXPECT_GT(refusals, 5U);
  EXPECT_EQ(text.feed(5), untouched.feed(5));  // 2, 3
}

TEST(sequence, a_fork_without_memory_changes_nothing) {
  counting_resource memory;
  headwise::cache_config config = with_horizon(0);
  config.memory = &memory;
  const std::vector<test_policy> plan{headwise::global{}, window(9)};
  engine text({1, 2, 2, 4}, plan, random_fixture(3), config);
  engine untouched({1, 2, 2, 4}, plan, random_fixture(3), with_horizon(0));
  text.feed(60);
  untouched.feed(60);
  const std::size_t held = memory.bytes();
  std::size_t refusals = 0;
  for (std::size_t allowed = 0;; ++allowed) {
    memory.refuse_after(allowed);
    try {
      const engine child = text.fork();
      memory.allow_all();
      break;
    } catch (const std::bad_alloc&) {
      ++refusals;
      memory.allow_all();
      EXPECT_EQ(memory.bytes(), held);
      EXPECT_EQ(text.cache().stats().sequences, 1U);
    }
  }
  EXPECT_GT(refusals, 5U);
  EXPECT_EQ(memory.bytes(), held);
  EXPECT_EQ(text.feed(3), untouched.feed(3));
}

// The limit holds over all sequences: one of them may starve another, but not break it.
TEST(sequence, pages_are_shared_by_all_sequences) {
  headwise::cache_config config = with_horizon(0);
  config.pages = 5;
  engine a({1, 1, 1, 4}, {headwise::global{}}, random_fixture(4), config);
  std::optional<engine<>> b(std::in_place, a.shared_cache(), random_fixture(4));
  a.feed(8);
  b->feed(12);
  EXPECT_EQ(a.cache().stats().pages_available, 0U);
  EXPECT_FALSE(a.text().try_append(a.next_tokens({0})).has_value());
  EXPECT_EQ(a.text().length(), 8U);
  b.reset();
  a.feed(1);
  EXPECT_EQ(a.text().length(), 9U);
}

}  // namespace
}  // namespace headwise_tests
