// SPDX-License-Identifier: Apache-2.0
//
// Fault cases C: rollback, truncation, forks.
#include <memory>
#include <type_traits>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/counting_resource.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

constexpr headwise::model_shape two_heads{1, 2, 2, 4};

headwise::cache_config horizon(token_count tokens) {
  headwise::cache_config config;
  config.rollback_horizon = tokens;
  config.page_tokens = 4;
  return config;
}
engine<> windowed_text(token_count w, token_count rollback = 0, fixture rows = uniform_fixture()) {
  return engine(one_head, {window(w)}, std::move(rows), horizon(rollback));
}

TEST(fault_cases, C01_truncation_means_what_it_says) {
  engine three = windowed_text(8);
  three.feed(3);
  EXPECT_FALSE(three.text().try_rollback(5));  // longer than the sequence
  EXPECT_EQ(three.text().length(), 3U);
  EXPECT_TRUE(three.text().try_rollback(0));
  EXPECT_EQ(three.text().length(), 3U);
  EXPECT_TRUE(three.text().try_rollback(3));
  EXPECT_EQ(three.text().length(), 0U);
  EXPECT_EQ(three.text().stats().resident_rows, 0U);
  engine fresh = windowed_text(8);
  EXPECT_EQ(three.feed(10), fresh.feed(10));

  engine ten = windowed_text(20);
  ten.feed(10);
  EXPECT_TRUE(ten.text().try_rollback(3));
  EXPECT_EQ(ten.text().length(), 7U);
  ten.feed(1);
  EXPECT_EQ(ten.kept(), range(0, 7));
}

// The same, told by the length to go back to.
TEST(fault_cases, C01_truncation_to_a_length) {
  const std::vector<test_policy> plan{window(8),
                                      headwise::union_of(window(2), headwise::heavy_hitters(3))};
  const auto opened = [&] { return engine(two_heads, plan, random_fixture(1), horizon(5)); };
  engine three = opened(), untouched = opened();
  three.feed(3);
  untouched.feed(3);
  const std::string before = three.saved();
  EXPECT_FALSE(three.text().try_truncate(5));  // 5 > 3
  EXPECT_FALSE(three.text().try_truncate(4));
  EXPECT_EQ(three.text().length(), 3U);
  EXPECT_TRUE(three.text().try_truncate(3));
  EXPECT_EQ(three.text().length(), 3U);
  EXPECT_TRUE(three.saved() == before);
  EXPECT_EQ(three.feed(1), untouched.feed(1));

  EXPECT_TRUE(three.text().try_truncate(0));
  EXPECT_EQ(three.text().length(), 0U);
  EXPECT_EQ(three.text().stats().resident_rows, 0U);
  engine fresh = opened();
  EXPECT_EQ(three.feed(10), fresh.feed(10));

  engine ten = opened(), seven = opened();
  ten.feed_singly(10);
  seven.feed_singly(7);
  EXPECT_FALSE(ten.text().try_truncate(4));  // behind the horizon: 10 - 5
  EXPECT_TRUE(ten.text().try_truncate(7));
  EXPECT_EQ(ten.text().length(), 7U);
  EXPECT_EQ(ten.feed(3), seven.feed(3));
}

// Truncation to nothing is exact even where rows were evicted: an empty text needs none.
TEST(fault_cases, C01_truncation_to_nothing_after_eviction) {
  engine text = windowed_text(4);
  text.feed(20);
  EXPECT_TRUE(text.text().try_rollback(20));
  engine fresh = windowed_text(4);
  EXPECT_EQ(text.feed(3), fresh.feed(3));
  EXPECT_TRUE(text.text().try_rollback(2));  // nothing was freed since
  EXPECT_TRUE(fresh.text().try_rollback(2));
  EXPECT_EQ(text.feed(9), fresh.feed(9));
}

TEST(fault_cases, C03_rollback_after_eviction) {
  engine text = windowed_text(8), untouched = windowed_text(8);
  text.feed_singly(20);
  untouched.feed_singly(20);
  EXPECT_FALSE(text.text().try_rollback(3));
  const auto refusal = text.text().rollback_blocker(3);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->head, (headwise::head_id{0, 0}));
  EXPECT_EQ(refusal->needed, 10U);
  EXPECT_EQ(refusal->oldest_kept, 12U);
  EXPECT_EQ(text.feed(1), untouched.feed(1));

  engine slack = windowed_text(8, 3);
  slack.feed_singly(20);
  EXPECT_TRUE(slack.text().try_rollback(3));
  EXPECT_EQ(slack.text().length(), 17U);
  EXPECT_EQ(slack.feed(1).last(), 13.5F);  // exact: eight weights of an eighth
}

TEST(fault_cases, C04_all_heads_roll_back_or_none) {
  const std::vector<test_policy> plan{headwise::global{}, window(4)};
  engine text(two_heads, plan, random_fixture(4)), untouched(two_heads, plan, random_fixture(4));
  text.feed_singly(12);
  untouched.feed_singly(12);
  const bool done = text.text().try_rollback(2);
  EXPECT_FALSE(done);
  EXPECT_EQ(text.text().length(), 12U);
  EXPECT_EQ(text.kept({0, 0}), range(0, 11));
  EXPECT_EQ(text.kept({0, 1}), range(8, 11));
  EXPECT_EQ(text.feed(1), untouched.feed(1));
}

TEST(fault_cases, C05_rollback_is_possible_while_the_rows_are_there) {
  engine unfilled = windowed_text(8), four = windowed_text(8);
  unfilled.feed(6);
  EXPECT_TRUE(unfilled.text().try_rollback(2));
  four.feed(4);
  EXPECT_EQ(unfilled.text().length(), 4U);
  EXPECT_EQ(unfilled.feed(5), four.feed(5));

  engine slack = windowed_text(8, 4), seventeen = windowed_text(8, 4);
  slack.feed_singly(20);
  EXPECT_TRUE(slack.text().try_rollback(3));
  seventeen.feed_singly(17);
  EXPECT_EQ(slack.text().length(), 17U);
  EXPECT_EQ(slack.feed(3), seventeen.feed(3));
}

TEST(fault_cases, C06_a_fork_has_content) {
  engine parent(two_heads, {headwise::global{}, window(4)}, random_fixture(6));
  parent.feed(10);
  engine child = parent.fork();
  EXPECT_EQ(child.text().length(), 10U);
  EXPECT_EQ(child.feed(1), parent.feed(1));
}

TEST(fault_cases, C07_forks_diverge) {
  const headwise::model_shape shape{1, 4, 2, 4};
  const std::vector<test_policy> plan{headwise::global{}, sinks_and_window(4)};
  const headwise::token_classifier classifier(1);
  const fixture common = random_fixture(7), a = random_fixture(70), b = random_fixture(71);
  const auto fresh = [&] {
    engine text(shape, plan, common, horizon(0), classifier);
    text.feed(6);
    return text;
  };
  engine only_a = fresh(), only_b = fresh();
  only_a.set_rows(a);
  only_b.set_rows(b);

  std::optional<engine<>> parent(fresh());
  engine child = parent->fork();
  child.set_rows(a);
  parent->set_rows(b);
  for (int i = 0; i < 5; ++i) {
    if (i < 3) {
      EXPECT_EQ(child.feed(1), only_a.feed(1));
    }
    EXPECT_EQ(parent->feed(1), only_b.feed(1));
  }
  parent.reset();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(child.feed(1), only_a.feed(1));
}

// A shared page that a child still wants to write into must be copied, however often it was shared.
TEST(fault_cases, C08_fork_trees_come_and_go) {
  counting_resource memory;
  headwise::cache_config config = horizon(0);
  config.page_tokens = 16;
  config.pages = 1000;  // so that all are of that size
  config.memory = &memory;
  const std::vector<test_policy> plan{headwise::global{}, window(16)};
  using half_engine = engine<headwise::f16>;
  half_engine unforked(two_heads, plan, random_fixture(8));
  unforked.append(64);
  const outputs expected = unforked.feed(40);
  {
    half_engine a(two_heads, plan, random_fixture(8), config);
    a.append(64);
    const std::size_t alone = a.cache().stats().pages_in_use;
    EXPECT_EQ(alone, 4U + 1U);
    std::optional<half_engine> b(a.fork());
    std::optional<half_engine> c(b->fork());
    EXPECT_EQ(a.cache().stats().pages_in_use, alone);  // shared pages are counted once
    b.reset();
    EXPECT_EQ(a.cache().stats().pages_in_use, alone);
    EXPECT_EQ(a.feed(40), expected);
    EXPECT_EQ(c->feed(40), expected);
    EXPECT_EQ(a.cache().stats().held_bytes, memory.bytes());
  }
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST(fault_cases, C09_repeated_rollback) {
  const std::vector<test_policy> plan{headwise::global{}, window(8)};
  const fixture first = random_fixture(9), later = random_fixture(90);
  engine text(two_heads, plan, first, horizon(6));
  text.feed_singly(10);
  EXPECT_TRUE(text.text().try_rollback(2));
  text.set_rows(later);
  text.feed(1);
  EXPECT_TRUE(text.text().try_rollback(2));
  const outputs got = text.feed(3);
  EXPECT_EQ(text.text().length(), 10U);

  engine fresh(two_heads, plan, first, horizon(6));
  fresh.feed(7);
  fresh.set_rows(later);
  EXPECT_EQ(got, fresh.feed(3));
}

TEST(fault_cases, C10_a_position_is_stored_once) {
  engine text(one_head, {headwise::global{}}, uniform_fixture());
  text.feed(6);
  EXPECT_TRUE(text.text().try_rollback(0));
  const token again{5, 0}, gap{7, 0};
  EXPECT_DEATH(static_cast<void>(text.text().try_append({&again, 1})),
               "position 5 is already stored, next is 6");
  EXPECT_DEATH(static_cast<void>(text.text().try_append({&gap, 1})),
               "position 7 leaves a gap, next is 6");
  EXPECT_EQ(text.text().length(), 6U);
  text.feed(1);
  EXPECT_EQ(text.text().stats().resident_rows, 7U);
}

}  // namespace
}  // namespace headwise_tests
