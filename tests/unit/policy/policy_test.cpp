// SPDX-License-Identifier: Apache-2.0
//
// The contract of concepts.hpp, for every policy, and the algebra of unions.
#include <algorithm>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/every_nth.hpp"
#include "support/random.hpp"
#include "support/random_policy.hpp"

namespace headwise_tests {
namespace {

using headwise::forever;
using headwise::global;
using headwise::local_window;
using headwise::special_tokens;
using headwise::token_classes;
using headwise::union_of;

static_assert(headwise::retention_policy<global>);
static_assert(headwise::retention_policy<local_window>);
static_assert(headwise::retention_policy<special_tokens>);
static_assert(headwise::retention_policy<union_of<special_tokens, local_window>>);
static_assert(headwise::retention_policy<stranger::every_nth>);
static_assert(headwise::retention_policy<union_of<global, union_of<stranger::every_nth, global>>>);

// Post-conditions of any policy, for random policies and tokens:
// 1. every lifetime is at least 1 and a member of lifetimes()
// 2. it is what the rule says
// 3. the same again (pure), and from a copy
// 4. a copy is equal
TEST(policy, keeps_its_contract) {
  random_source random(2);
  for (int round = 0; round < 3000; ++round) {
    const ruled_policy chosen = random_policy(random);
    const test_policy copy = chosen.policy;
    EXPECT_EQ(copy, chosen.policy);  // 4
    const headwise::lifetime_set lifetimes = headwise::lifetimes_of(chosen.policy);
    for (const token& t : random_tokens(random, random.below(100), 20)) {
      const token_count lifetime = headwise::lifetime_of(chosen.policy, t);
      EXPECT_GE(lifetime, 1U);
      EXPECT_TRUE(lifetimes.contains(lifetime));            // 1
      EXPECT_EQ(lifetime, chosen.rule(t));                  // 2
      EXPECT_EQ(lifetime, headwise::lifetime_of(copy, t));  // 3
      EXPECT_EQ(lifetime, headwise::lifetime_of(chosen.policy, t));
    }
  }
}

template <class A, class B>
void expect_same_lifetimes(const A& a, const B& b, const std::vector<token>& tokens) {
  for (const token& t : tokens) EXPECT_EQ(a.lifetime(t), b.lifetime(t)) << t.pos;
  for (const token& t : tokens) EXPECT_TRUE(a.lifetimes().contains(b.lifetime(t)));
}

// 1. union is max  2. commutative  3. associative  4. idempotent  5. absorbed by global
TEST(union_of, is_max) {
  random_source random(3);
  for (int round = 0; round < 500; ++round) {
    const special_tokens a = random_special(random).policy;
    const local_window b = random_window(random).policy;
    const stranger::every_nth c = random_nth(random).policy;
    const std::vector<token> tokens = random_tokens(random, random.below(50), 60);
    const union_of ab(a, b);
    for (const token& t : tokens)
      EXPECT_EQ(ab.lifetime(t), std::max(a.lifetime(t), b.lifetime(t)));          // 1
    expect_same_lifetimes(ab, union_of(b, a), tokens);                            // 2
    expect_same_lifetimes(union_of(ab, c), union_of(a, union_of(b, c)), tokens);  // 3
    expect_same_lifetimes(union_of(ab, c), union_of(a, b, c), tokens);            // 3
    expect_same_lifetimes(union_of(c, c), c, tokens);                             // 4
    expect_same_lifetimes(union_of(ab, global{}), global{}, tokens);              // 5
    EXPECT_EQ(union_of(ab, global{}).lifetimes(), global{}.lifetimes());          // 5
  }
}

TEST(union_of, has_no_more_streams_than_it_needs) {
  EXPECT_EQ(union_of(special_tokens(token_classes::sink), local_window(9)).lifetimes(),
            (headwise::lifetime_set{9, forever}));
  EXPECT_EQ(union_of(local_window(3), local_window(9)).lifetimes(), (headwise::lifetime_set{9}));
  EXPECT_EQ(union_of(stranger::every_nth(9, 2, 20), local_window(5)).lifetimes(),
            (headwise::lifetime_set{5, 20, forever}));
}

TEST(special_tokens, by_class_by_id_or_both) {
  const token dot{5, 13, token_classes::punctuation}, other{6, 14};
  EXPECT_EQ(special_tokens(token_classes::punctuation).lifetime(dot), forever);
  EXPECT_EQ(special_tokens(token_classes::sink).lifetime(dot), 1U);
  EXPECT_EQ(special_tokens(token_classes::none, {14, 2}).lifetime(other), forever);
  EXPECT_EQ(special_tokens(token_classes::none, {13, 15}).lifetime(other), 1U);
  const special_tokens both(token_classes::punctuation, {14});
  EXPECT_EQ(both.lifetime(dot), forever);
  EXPECT_EQ(both.lifetime(other), forever);
  EXPECT_EQ(special_tokens().lifetime(dot), 1U);
}

TEST(special_tokens, ids_are_a_set) {
  const special_tokens a(token_classes::none, {5, 3, 5, 4}), b(token_classes::none, {3, 4, 5});
  EXPECT_EQ(a, b);
  EXPECT_NE(a, special_tokens(token_classes::none, {3, 4}));
  EXPECT_NE(a, special_tokens(token_classes::sink, {3, 4, 5}));
  EXPECT_EQ(std::vector(a.ids().begin(), a.ids().end()), (std::vector<std::int32_t>{3, 4, 5}));
  try {
    static_cast<void>(special_tokens(token_classes::none, {4, -2}));
    FAIL();
  } catch (const headwise::error& e) {
    EXPECT_STREQ(e.what(), "special_tokens.ids: out of range: got -2, expected ids from 0");
  }
}

TEST(special_tokens, say_whether_they_need_ids) {
  EXPECT_FALSE(headwise::needs_token_ids(special_tokens(token_classes::sink)));
  EXPECT_TRUE(headwise::needs_token_ids(special_tokens(token_classes::none, {1})));
  EXPECT_FALSE(headwise::needs_token_ids(global{}));
  EXPECT_TRUE(headwise::needs_token_ids(
      union_of(special_tokens(token_classes::none, {1}), local_window(2))));
}

}  // namespace
}  // namespace headwise_tests
