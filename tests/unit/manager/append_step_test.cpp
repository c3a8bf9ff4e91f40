// SPDX-License-Identifier: Apache-2.0
//
// A step as a transaction, and each contract of its caller at check level 1.
#include "headwise/manager/append_step.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/engine.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

constexpr headwise::model_shape two_heads{1, 2, 2, 4};
using builtin_plan = std::vector<headwise::builtin_policies::variant>;

// A sequence with two heads and 10 tokens, and rows of zeros to write.
struct append_step_contract : testing::Test {
  append_step_contract() { text.feed(10); }

  [[nodiscard]] auto open(std::size_t count) {
    auto step = text.text().try_append(text.next_tokens(std::vector<std::int32_t>(count, 0)));
    EXPECT_TRUE(step.has_value());
    return std::move(*step);
  }
  [[nodiscard]] headwise::rows<const float> zero_rows(std::size_t count, std::size_t width = 4) {
    return {zeros.data(), count, width};
  }

  engine<> text{two_heads, {headwise::global{}, window(4)}, random_fixture(1)};
  std::vector<float> zeros = std::vector<float>(64);
};

TEST_F(append_step_contract, every_head_is_written_once) {
  auto step = open(1);
  step.write({0, 0}, zero_rows(1), zero_rows(1));
  EXPECT_DEATH(step.write({0, 0}, zero_rows(1), zero_rows(1)),
               "a head was written twice in one step");
  EXPECT_DEATH(std::move(step).commit(), "commit of a step in which a head was not written");
}

TEST_F(append_step_contract, rows_have_the_right_shape) {
  auto step = open(2);
  EXPECT_DEATH(step.write({0, 0}, zero_rows(1), zero_rows(2)),
               "write needs one key and one value row for each token of the step");
  EXPECT_DEATH(step.write({0, 0}, zero_rows(2), zero_rows(3)),
               "write needs one key and one value row for each token of the step");
  EXPECT_DEATH(step.write({0, 0}, zero_rows(2, 5), zero_rows(2, 5)),
               "the rows of write are not head_dim wide");
  const std::vector<std::byte> bytes(64);
  EXPECT_DEATH(step.write_encoded({0, 0}, {bytes.data(), 2, 15}, {bytes.data(), 2, 15}),
               "write_encoded needs one row of the codec's size for each token of the step");
}

TEST_F(append_step_contract, heads_exist) {
  auto step = open(1);
  EXPECT_DEATH(step.write({0, 2}, zero_rows(1), zero_rows(1)), "there is no such head");
  EXPECT_DEATH(static_cast<void>(step.head({1, 0})), "there is no such head");
  EXPECT_DEATH(static_cast<void>(text.text().head({0, 2})), "there is no such head");
}

TEST_F(append_step_contract, one_step_at_a_time) {
  auto step = open(1);
  EXPECT_DEATH(static_cast<void>(text.text().try_append(text.next_tokens({0}))),
               "a second step while one is open");
  EXPECT_DEATH(static_cast<void>(text.text().try_rollback(1)), "rollback while a step is open");
  EXPECT_DEATH(static_cast<void>(text.text().fork()), "fork while a step is open");
}

TEST_F(append_step_contract, a_step_ends_with_its_commit) {
  auto step = open(1);
  step.write({0, 0}, zero_rows(1), zero_rows(1));
  step.write({0, 1}, zero_rows(1), zero_rows(1));
  std::move(step).commit();
  EXPECT_EQ(text.text().length(), 11U);
  constexpr const char* used_up = "a step is used after its commit or after it was moved";
  EXPECT_DEATH(std::move(step).commit(), used_up);
  EXPECT_DEATH(step.write({0, 0}, zero_rows(1), zero_rows(1)), used_up);
  EXPECT_DEATH(static_cast<void>(step.head({0, 0})), used_up);
}

TEST_F(append_step_contract, stats_are_asked_for_between_steps) {
  const auto step = open(1);
  EXPECT_DEATH(static_cast<void>(text.text().stats()), "stats while a step is open");
}

TEST_F(append_step_contract, a_moved_sequence_is_not_used) {
  auto sequence = text.cache().open();
  const auto moved = std::move(sequence);
  EXPECT_DEATH(static_cast<void>(sequence.length()), "a sequence is used after it was moved");
}

// Gives lifetimes that it did not announce.
struct promise_breaker {
  static constexpr std::string_view kind = "test.promise_breaker";
  [[nodiscard]] token_count lifetime(const token& t) const noexcept { return t.pos == 1 ? 5 : 1; }
  [[nodiscard]] headwise::lifetime_set lifetimes() const noexcept { return {1, headwise::forever}; }
  friend bool operator==(const promise_breaker&, const promise_breaker&) = default;
};
TEST_F(append_step_contract, no_token_is_lost_to_a_policy_that_breaks_its_promise) {
  engine<headwise::f32, headwise::f32, headwise::policy_list<promise_breaker>> broken(
      {1, 1, 1, 4}, {promise_breaker{}}, random_fixture(1));
  broken.feed(1);
  EXPECT_DEATH(broken.feed(1), "a lifetime that is not a member of its lifetimes");
}

TEST_F(append_step_contract, a_step_without_tokens_needs_no_writes) {
  auto step = open(0);
  std::move(step).commit();
  EXPECT_EQ(text.text().length(), 10U);
}

TEST_F(append_step_contract, a_manager_outlives_its_sequences) {
  const auto close_manager_first = [] {
    std::optional<headwise::cache_manager<>> cache;
    cache.emplace(two_heads, builtin_plan(2), headwise::cache_config{});
    const auto sequence = cache->open();
    cache.reset();
  };
  EXPECT_DEATH(close_manager_first(), "a cache_manager destroyed before its sequences");
}

TEST_F(append_step_contract, a_sequence_outlives_its_step) {
  const auto close_sequence_first = [] {
    headwise::cache_manager<> cache(two_heads, builtin_plan(2), {});
    std::optional sequence(cache.open());
    const token t{0, 0};
    const auto step = sequence->try_append({&t, 1});
    sequence.reset();
  };
  EXPECT_DEATH(close_sequence_first(), "a sequence closed while a step is open");
}

TEST_F(append_step_contract, a_rollback_blocker_is_asked_for_tokens_that_are_there) {
  EXPECT_DEATH(static_cast<void>(text.text().rollback_blocker(11)),
               "a rollback of more tokens than the sequence has");
}

// 1. moving keeps the step open  2. what is assigned over is cancelled  3. destruction cancels
TEST(append_step, moves) {
  engine<> one(two_heads, {headwise::global{}, window(4)}, random_fixture(1));
  engine<> other(two_heads, {headwise::global{}, window(4)}, random_fixture(1));
  const std::vector<float> zeros(4);
  const headwise::rows<const float> row(zeros.data(), 1, 4);
  auto opened = one.text().try_append(one.next_tokens({0}));
  auto second = other.text().try_append(other.next_tokens({0}));
  auto step = std::move(*opened);
  opened.reset();
  step.write({0, 0}, row, row);  // 1
  *second = std::move(step);     // 2: the step of `other` is cancelled
  other.feed(1);
  second->write({0, 1}, row, row);
  std::move(*second).commit();
  EXPECT_EQ(one.text().length(), 1U);
  { auto dropped = one.text().try_append(one.next_tokens({0, 0})); }  // 3
  EXPECT_EQ(one.text().length(), 1U);
  one.feed(1);
}

// A step of no tokens is legal and changes nothing.
TEST(append_step, may_be_empty) {
  engine text(two_heads, {headwise::global{}, window(4)}, random_fixture(1));
  engine untouched(two_heads, {headwise::global{}, window(4)}, random_fixture(1));
  text.feed(5);
  untouched.feed(5);
  text.feed(0);
  text.append(0);
  EXPECT_EQ(text.text().length(), 5U);
  EXPECT_EQ(text.feed(1), untouched.feed(1));
}

TEST(append_step, cancelling_leaves_every_head_as_it_was) {
  engine text(two_heads, {headwise::global{}, window(4)}, random_fixture(1));
  engine untouched(two_heads, {headwise::global{}, window(4)}, random_fixture(1));
  text.feed(0);
  text.cancel(3);  // on an empty sequence too
  for (std::size_t i = 0; i < 40; ++i) {
    text.cancel(1 + i * 3 % 70);
    EXPECT_EQ(text.feed(1), untouched.feed(1));
    EXPECT_EQ(text.text().stats().resident_rows, untouched.text().stats().resident_rows);
  }
}

// Rows that are encoded already are stored as they are: the same bytes as write() makes.
TEST(append_step, write_encoded_equals_write) {
  engine<headwise::f16> a({1, 1, 1, 6}, {headwise::global{}}, random_fixture(1));
  engine<headwise::f16> b({1, 1, 1, 6}, {headwise::global{}}, random_fixture(1));
  const std::vector<float> keys = random_source(1).numbers(18),
                           values = random_source(2).numbers(18);
  std::vector<std::byte> key_bytes(36), value_bytes(36);
  headwise::f16::encode(keys, key_bytes.data());
  headwise::f16::encode(values, value_bytes.data());
  auto step_a = a.text().try_append(a.next_tokens({0, 0, 0}));
  auto step_b = b.text().try_append(b.next_tokens({0, 0, 0}));
  step_a->write({0, 0}, {keys.data(), 3, 6}, {values.data(), 3, 6});
  step_b->write_encoded({0, 0}, {key_bytes.data(), 3, 12}, {value_bytes.data(), 3, 12});
  std::move(*step_a).commit();
  std::move(*step_b).commit();
  EXPECT_EQ(a.feed(1), b.feed(1));
}

// J09: a policy that names ids refuses tokens that have none, at the first call.
TEST(fault_cases, J09_a_policy_that_needs_ids_is_given_none) {
  engine text({2, 2, 2, 4}, {window(2), window(2), ids_and_window({7}, 2), window(2)},
              uniform_fixture());
  const token without_id{0, headwise::no_token_id};
  EXPECT_DEATH(static_cast<void>(text.text().try_append({&without_id, 1})),
               "layer 1 head 0: its policy decides by token ids, and the token at "
               "position 0 has none");
  text.feed(std::vector<std::int32_t>{7});
  const token later{1, headwise::no_token_id};
  EXPECT_DEATH(static_cast<void>(text.text().try_append({&later, 1})), "the token at position 1");

  // Classes are enough where no policy names ids.
  engine by_class({1, 1, 1, 4}, {headwise::special_tokens(token_classes::punctuation)},
                  uniform_fixture());
  const token dot{0, headwise::no_token_id, token_classes::punctuation};
  EXPECT_TRUE(by_class.text().try_append({&dot, 1}).has_value());
}

}  // namespace
}  // namespace headwise_tests
