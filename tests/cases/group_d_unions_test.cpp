// SPDX-License-Identifier: Apache-2.0
//
// Fault cases D about unions, ratios, state between sequences, chunking.
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

// A query gives all but e^-30 of itself in equal parts to those of the scored tokens that it sees.
[[nodiscard]] fixture scored_fixture(std::uint32_t seed, std::vector<position> scored) {
  return {
      [](headwise::head_id, position pos, std::span<float> row) {
        fill(row, 0.0F);
        row[pos] = 1.0F;
      },
      random_rows(seed),
      [scored = std::move(scored)](std::uint32_t, std::uint32_t, position, std::span<float> row) {
        fill(row, 0.0F);
        for (const position pos : scored) row[pos] = 30.0F;
      }};
}

TEST(fault_cases, D08_policies_carry_nothing_from_one_sequence_to_the_next) {
  const headwise::model_shape shape{1, 3, 3, 64};
  const std::vector<test_policy> plan{window(8), headwise::heavy_hitters(4),
                                      headwise::union_of(window(8), headwise::heavy_hitters(4))};
  const fixture other = scored_fixture(81, {5, 11, 23});
  auto used = std::make_optional<engine<>>(shape, plan, scored_fixture(80, {2, 7, 31}));
  used->feed(50);
  engine second(used->shared_cache(), other);
  engine fresh(shape, plan, other);
  const outputs expected = fresh.feed(50);

  // Emptied and used again, and another sequence of the same manager beside and after it.
  ASSERT_TRUE(used->text().try_truncate(0));
  used->set_rows(other);
  EXPECT_EQ(used->feed(50), expected);
  for (std::uint32_t head = 0; head < 3; ++head) {
    EXPECT_EQ(used->kept({0, head}), fresh.kept({0, head})) << head;
    EXPECT_EQ(used->scores({0, head}), fresh.scores({0, head})) << head;
  }
  EXPECT_EQ(used->text().stats().payload_bytes, fresh.text().stats().payload_bytes);
  used.reset();
  EXPECT_EQ(second.feed(50), expected);
  EXPECT_TRUE(second.saved() == fresh.saved());  // scores and all
  EXPECT_EQ(second.text().stats().held_bytes(), fresh.text().stats().held_bytes());

  EXPECT_EQ(second.kept({0, 0}), range(42, 49));
  // Alone: 0, 1 and 2 drew 2.28, 1.28 and 0.78 while nothing was scored, 5 then all; 11 and 23 come
  // in with a half and less, for they compete after a single query.
  EXPECT_EQ(second.kept({0, 1}), (positions{0, 1, 2, 5, 49}));
  // Behind a window 11 and 23 draw 8/2 and 8/3 before they compete, and push 2 and 1 out.
  positions behind_window = range(42, 49);
  behind_window.insert(behind_window.begin(), {0, 5, 11, 23});
  EXPECT_EQ(second.kept({0, 2}), behind_window);
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
  const test_policy policy = headwise::union_of(headwise::special_tokens(token_classes::sink, {1}),
                                                window(4), headwise::heavy_hitters(2));
  engine text(one_head, {policy}, uniform_fixture(), {}, headwise::token_classifier(1));
  // Exact: four weights of a quarter.
  EXPECT_EQ(text.feed(std::vector<std::int32_t>{1, 5, 6, 7}).at(3), 1.5F);
  EXPECT_EQ(text.text().stats().resident_rows, 4U);
  EXPECT_EQ(text.text().stats().payload_bytes, 4U * 2 * 4 * sizeof(float));
  // The special token never competes for the pool, so two others are in it.
  text.feed_singly(6);
  EXPECT_EQ(text.kept(), (positions{0, 1, 2, 6, 7, 8, 9}));
  EXPECT_EQ(text.text().stats().resident_rows, 7U);
}

}  // namespace
}  // namespace headwise_tests
