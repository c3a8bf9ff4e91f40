// SPDX-License-Identifier: Apache-2.0
//
// What a prompt holds when it is continued far beyond itself: against a loop over every position,
// and at the greatest length there is, by hand.

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/files.hpp"
#include "support/random_policy.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

struct counted {
  resident_count rows;
  std::vector<std::uint64_t> lost, behind;  // [prompt]
};

counted count(const std::vector<token>& prompt, token_count length, token_count sinks,
              const test_policy& policy) {
  counted result{
      {}, std::vector<std::uint64_t>(prompt.size()), std::vector<std::uint64_t>(prompt.size())};
  result.rows = count_resident(
      prompt, length, sinks, [&](const token& t) { return lifetime_of(policy, t); },
      [&](std::size_t source, std::uint64_t rows, std::uint64_t behind) {
        result.lost[source] += rows;
        result.behind[source] += behind;
      });
  return result;
}

// Token ids are the prompt's indices, so that a continued token says where it comes from.
counted count_by_loop(const std::vector<token>& prompt, token_count length, token_count sinks,
                      const test_policy& policy) {
  counted result{
      {}, std::vector<std::uint64_t>(prompt.size()), std::vector<std::uint64_t>(prompt.size())};
  for (const token& t : continued(prompt, length, sinks)) {
    const token_count lifetime = lifetime_of(policy, t);
    const bool held = length - 1 - t.pos < lifetime, behind = t.pos >= sinks;
    result.rows.rows += held ? 1 : 0;
    result.rows.behind += behind ? 1 : 0;
    if (lifetime == forever) {
      result.rows.forever += behind ? 1 : 0;
      continue;
    }
    result.lost[static_cast<std::size_t>(t.id)] += held ? 0 : 1;
    result.behind[static_cast<std::size_t>(t.id)] += behind ? 1 : 0;
  }
  return result;
}

std::vector<token> numbered_prompt(random_source& random, std::uint32_t tokens, token_count sinks) {
  std::vector<token> prompt = random_prompt(random, tokens, sinks);
  for (token& t : prompt) t.id = static_cast<std::int32_t>(t.pos);
  return prompt;
}

TEST(count_resident, far_beyond_the_prompt_is_what_a_loop_counts) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    random_source random(seed);
    const token_count sinks = random.one_in(8) ? random.between(60'000, 70'000) : random.below(6);
    const std::vector<token> prompt = numbered_prompt(random, random.between(1, 50), sinks);
    const token_count length = random.between(60'000, 140'000);
    const std::vector<test_policy> policies{
        global{}, local_window(random.between(1, 90)), local_window(random.between(1, 150'000)),
        special_tokens(token_classes::sink | token_classes::punctuation, {3, 30}),
        union_of(special_tokens(token_classes::special), local_window(random.between(1, 80'000)))};
    for (std::size_t p = 0; p < policies.size(); ++p) {
      const counted got = count(prompt, length, sinks, policies[p]);
      const counted expected = count_by_loop(prompt, length, sinks, policies[p]);
      ASSERT_EQ(got.rows.rows, expected.rows.rows) << "seed " << seed << " policy " << p;
      ASSERT_EQ(got.rows.behind, expected.rows.behind) << "seed " << seed << " policy " << p;
      ASSERT_EQ(got.rows.forever, expected.rows.forever) << "seed " << seed << " policy " << p;
      ASSERT_EQ(got.lost, expected.lost) << "seed " << seed << " policy " << p;
      ASSERT_EQ(got.behind, expected.behind) << "seed " << seed << " policy " << p;
    }
  }
}

TEST(count_resident, asks_a_policy_by_position_at_every_position_that_it_can) {
  random_source random(1);
  const std::vector<token> prompt = numbered_prompt(random, 30, 2);
  const test_policy policy = stranger::every_nth(7, 2, 5);
  const counted got = count(prompt, 65'536, 2, policy);
  const counted expected = count_by_loop(prompt, 65'536, 2, policy);
  EXPECT_EQ(got.rows.rows, expected.rows.rows);
  EXPECT_EQ(got.rows.forever, expected.rows.forever);
  EXPECT_EQ(got.lost, expected.lost);
}

// 4 tokens, one of them a sink; the other three repeat, one of them punctuation.
TEST(count_resident, at_the_greatest_length) {
  std::vector<token> prompt(4);
  for (position pos = 0; pos < 4; ++pos) prompt[pos] = {pos, static_cast<std::int32_t>(pos)};
  prompt[0].classes = token_classes::sink;
  prompt[2].classes = token_classes::punctuation;
  const std::uint64_t behind =
      max_length - 1;  // a multiple of 3 and 1 more: the last is no punctuation
  EXPECT_EQ(count(prompt, max_length, 1, global{}).rows.rows, max_length);
  EXPECT_EQ(count(prompt, max_length, 1, local_window(16)).rows.rows, 16U);
  const counted kept = count(prompt, max_length, 1,
                             special_tokens(token_classes::sink | token_classes::punctuation));
  EXPECT_EQ(kept.rows.behind, behind);
  EXPECT_EQ(kept.rows.forever, behind / 3);
  EXPECT_EQ(kept.rows.rows, 1 + behind / 3 + 1);  // the sink, punctuation, the last token
  EXPECT_EQ(kept.lost[1] + kept.lost[3], behind - behind / 3 - 1);
}

TEST(count_resident, a_length_that_no_sequence_has_is_refused) {
  measure_options options;
  options.length = forever;
  profiler<> work({1, 1, 1, 8}, {}, options);
  const recorded_map map = make_map({{0, 1}}, {1.0F});
  expect_error(error_code::out_of_range, {"stated length", "4294967295", "4294967294"},
               [&] { work.add(map.view()); });
}

}  // namespace
}  // namespace headwise_tests
