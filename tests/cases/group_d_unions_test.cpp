// SPDX-License-Identifier: Apache-2.0
//
// Fault cases D that need no ranked pool: unions, ratios, state between sequences, chunking.
#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/counting_resource.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

TEST(fault_cases, D03_rows_are_stored_once_for_a_group) {
  counting_resource memory;
  headwise::cache_config config;
  config.memory = &memory;
  std::vector<test_policy> plan(8, headwise::global{});
  engine<headwise::f16> text({1, 32, 8, 128}, plan, uniform_fixture(), config);
  text.append(1000);
  const headwise::cache_stats stats = text.text().stats();
  EXPECT_EQ(stats.payload_bytes, 4'096'000U);
  EXPECT_EQ(stats.held_bytes(), memory.bytes());
  EXPECT_LT(static_cast<double>(memory.bytes()), 4'096'000 * 1.1);
}

TEST(fault_cases, D07_the_kept_ratio_is_rows_kept_over_rows_of_a_full_cache) {
  const std::vector<test_policy> plan{headwise::global{}, window(25), window(50), window(25)};
  engine text({2, 2, 2, 4}, plan, uniform_fixture());
  text.append(100);
  const headwise::cache_stats stats = text.text().stats();
  EXPECT_EQ(stats.resident_rows, 200U);
  EXPECT_EQ(stats.full_rows, 400U);
  EXPECT_EQ(stats.kept_ratio(), 0.5);
  EXPECT_EQ(stats.payload_bytes, 200U * 2 * 4 * sizeof(float));
}

TEST(fault_cases, D08_policies_carry_nothing_from_one_sequence_to_the_next) {
  const std::vector<test_policy> plan{window(8)};
  const fixture other = random_fixture(81);
  auto used = std::make_optional<engine<>>(one_head, plan, random_fixture(80));
  used->feed(50);
  engine second(used->shared_cache(), other);
  used.reset();
  engine fresh(one_head, plan, other);
  EXPECT_EQ(second.feed(50), fresh.feed(50));
  EXPECT_EQ(second.kept(), fresh.kept());
  EXPECT_EQ(second.text().stats().held_bytes(), fresh.text().stats().held_bytes());
}

TEST(fault_cases, D11_chunking_never_matters) {
  using chunks = std::vector<std::size_t>;
  const std::vector<test_policy> plan{window(5),
                                      special_ids({3}),
                                      headwise::special_tokens(token_classes::punctuation),
                                      ids_and_window({3}, 4),
                                      headwise::global{},
                                      stranger::every_nth(4, 2, 6)};
  std::vector<token_classes> by_id(10, token_classes::none);
  by_id[4] = token_classes::punctuation;
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 16; ++i) ids.push_back((i * 7) % 10);

  std::vector<float> expected;
  for (const chunks& sizes : {chunks{16}, chunks{4, 4, 4, 4}, chunks(16, 1), chunks{5, 11}}) {
    engine text({1, 6, 6, 4}, plan, random_fixture(11), {}, headwise::token_classifier(0, by_id));
    std::vector<float> got;
    auto next = ids.begin();
    for (const std::size_t size : sizes) {
      const auto end = next + static_cast<std::ptrdiff_t>(size);
      const outputs out = text.feed(std::vector<std::int32_t>(next, end));
      got.insert(got.end(), out.values.begin(), out.values.end());
      next = end;
    }
    if (expected.empty()) expected = got;
    EXPECT_EQ(got, expected) << sizes.size() << " chunks";
    EXPECT_EQ(text.kept({0, 0}), range(11, 15));
    EXPECT_EQ(text.kept({0, 1}), (positions{9, 15}));      // id 3: 9; and the query's own
    EXPECT_EQ(text.kept({0, 2}), (positions{2, 12, 15}));  // id 4: 2, 12
    EXPECT_EQ(text.kept({0, 3}), (positions{9, 12, 13, 14, 15}));
    EXPECT_EQ(text.kept({0, 4}), range(0, 15));
    EXPECT_EQ(text.kept({0, 5}), (positions{0, 4, 8, 10, 12, 14, 15}));
  }
}

// every_query: the rows of a prompt follow the policy, as those of decode do. last_query: only the
// newest query looks.
TEST(fault_cases, D12_prompt_rows_follow_the_policy) {
  const auto text = [] {
    return engine(one_head, {sinks_and_window(4)}, uniform_fixture(), {},
                  headwise::token_classifier(1));
  };
  engine attended = text(), not_attended = text();
  EXPECT_NEAR(attended.feed(10).at(9), 6.0, 1e-5);
  EXPECT_NEAR(attended.feed(1).last(), 6.8, 1e-5);
  not_attended.append(10);
  EXPECT_NEAR(not_attended.feed(1).last(), 6.8, 1e-5);
}

TEST(fault_cases, D13_a_token_of_several_parts_is_stored_once) {
  const test_policy policy =
      headwise::union_of(headwise::special_tokens(token_classes::sink, {1}), window(4));
  engine text(one_head, {policy}, uniform_fixture(), {}, headwise::token_classifier(1));
  EXPECT_NEAR(text.feed(std::vector<std::int32_t>{1, 5, 6, 7}).at(3), 1.5, 1e-6);
  EXPECT_EQ(text.text().stats().resident_rows, 4U);
  EXPECT_EQ(text.text().stats().payload_bytes, 4U * 2 * 4 * sizeof(float));
}

}  // namespace
}  // namespace headwise_tests
