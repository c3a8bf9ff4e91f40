// SPDX-License-Identifier: Apache-2.0
#include "headwise/attend/attend.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "support/counting_resource.hpp"
#include "support/engine.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

// Post-conditions of attend, for head sizes around every vector width:
// 1. outputs and lse are those of the double computation over the visible rows
// 2. weights() are probabilities: they sum to 1, in the order of for_each_slab
void expect_dense(std::uint32_t d, std::uint32_t group) {
  const headwise::model_shape shape{1, group, 1, d};
  const fixture given = random_fixture(d);
  engine<headwise::f32> exact(shape, {sinks_and_window(9)}, given, {},
                              headwise::token_classifier(2));
  exact.feed(30);
  const positions kept{0, 1, 21, 22, 23, 24, 25, 26, 27, 28, 29};
  ASSERT_EQ(exact.kept(), kept);
  headwise::attend_scratch scratch(group, d, 11);
  random_source random(d);
  const std::vector<float> queries = random.numbers(group * d);
  std::vector<float> out(group * d, 5.0F), lse(group);
  const auto view = exact.text().head({0, 0});
  headwise::attend(view, 29, {queries.data(), group, d}, 0.3F, {out.data(), group, d}, lse,
                   scratch);

  // The rows as they were given; of the cache only the order in which it shows them.
  positions order;
  view.for_each_slab(29, [&](const headwise::slab& s) {
    order.insert(order.end(), s.positions, s.positions + s.count);
  });
  ASSERT_EQ(order.size(), kept.size());
  std::vector<std::vector<float>> key_rows, value_rows;
  for (const position pos : order) {
    given.key({0, 0}, pos, key_rows.emplace_back(d));
    given.value({0, 0}, pos, value_rows.emplace_back(d));
  }
  const std::vector<std::span<const float>> keys(key_rows.begin(), key_rows.end());
  const std::vector<std::span<const float>> values(value_rows.begin(), value_rows.end());
  for (std::size_t g = 0; g < group; ++g) {
    const std::span<const float> query(queries.data() + g * d, d);
    const auto expected = reference_attention(query, double{0.3F}, keys, values);
    for (std::size_t i = 0; i < d; ++i)
      EXPECT_NEAR(out[g * d + i], expected.values[i], 1e-5) << d << ' ' << i;  // 1
    EXPECT_NEAR(lse[g], expected.lse, 1e-5);                                   // 1
    const auto weights = scratch.weights()[g];
    ASSERT_EQ(weights.size(), 11U);
    EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1.0, 1e-6);  // 2
    double log_weight = 0.0;
    for (std::size_t i = 0; i < d; ++i) log_weight += double{query[i]} * double{keys[3][i]};
    EXPECT_NEAR(weights[3], std::exp(double{0.3F} * log_weight - expected.lse), 1e-6);  // 2
  }
}

TEST(attend, equals_the_double_computation_at_every_head_size) {
  for (const std::uint32_t d : {1U, 2U, 15U, 16U, 17U, 31U, 33U, 64U, 80U, 96U, 128U, 256U})
    for (const std::uint32_t group : {1U, 3U}) expect_dense(d, group);
}

// The same rows in pages of every size: bitwise the same outputs.
TEST(attend, does_not_depend_on_pages) {
  std::vector<float> expected;
  for (const std::uint32_t page_tokens : {1U, 2U, 3U, 7U, 16U, 64U}) {
    headwise::cache_config config;
    config.page_tokens = page_tokens;
    engine<headwise::f16> text({1, 2, 1, 20}, {ids_and_window({0}, 6)}, random_fixture(1), config);
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < 50; ++i) ids.push_back(i % 5);
    const std::vector<float> got = text.feed(ids).values;
    if (expected.empty()) expected = got;
    EXPECT_EQ(got, expected) << page_tokens;
  }
}

// Strided queries and outputs, as an engine has them inside of larger tensors.
TEST(attend, follows_strides) {
  engine text({1, 2, 1, 4}, {headwise::global{}}, random_fixture(2));
  text.feed(6);
  const auto view = text.text().head({0, 0});
  headwise::attend_scratch scratch(2, 4, 6);
  std::vector<float> query{1, 2, 3, 4, 9, 9, 5, 6, 7, 8, 9, 9}, dense_query{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> out(14, -3.0F), dense_out(8);
  headwise::attend(view, 5, {query.data(), 2, 4, 6}, 0.1F, {out.data(), 2, 4, 7}, {}, scratch);
  headwise::attend(view, 5, {dense_query.data(), 2, 4}, 0.1F, {dense_out.data(), 2, 4}, {},
                   scratch);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(out[i], dense_out[i]);
    EXPECT_EQ(out[7 + i], dense_out[4 + i]);
  }
  for (const std::size_t gap : {4U, 5U, 6U, 11U, 12U, 13U}) EXPECT_EQ(out[gap], -3.0F);
}

// Logits far apart and far from zero: no overflow, and the largest takes all.
TEST(attend, is_stable_for_large_logits) {
  fixture rows = uniform_fixture();
  rows.key = [](headwise::head_id, position pos, std::span<float> row) {
    fill(row, static_cast<float>(pos) * 1000.0F - 50'000.0F);
  };
  rows.query = [](std::uint32_t, std::uint32_t, position, std::span<float> row) {
    fill(row, 100.0F);
  };
  engine text({1, 1, 1, 4}, {headwise::global{}}, rows);
  EXPECT_EQ(text.feed(10).last(), 9.0F);
}

TEST(attend_scratch, refuses_sizes_that_wrap) {
  // 4 * 2^62 is 0 in 64 bits.
  for (const std::size_t rows : {std::size_t{1} << 62, std::numeric_limits<std::size_t>::max()})
    try {
      const headwise::attend_scratch scratch(4, 64, rows);
      FAIL() << rows;
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.code(), headwise::error_code::out_of_range);
      EXPECT_EQ(e.place(), "attend_scratch.max_rows");
    }
}

TEST(attend_scratch, takes_its_memory_once) {
  counting_resource memory;
  const headwise::attend_scratch scratch(4, 64, 1000, &memory);
  EXPECT_EQ(memory.bytes(), 4U * (4 * 1000 + 16 * 64));
  EXPECT_EQ(scratch.max_rows(), 1000U);
}

// Each contract of attend at check level 1.
TEST(attend_contract, is_checked) {
  engine text({1, 2, 1, 4}, {window(3)}, random_fixture(2));
  text.feed(6);
  const auto view = text.text().head({0, 0});
  std::vector<float> query(12), out(12), lse(3);
  headwise::attend_scratch scratch(2, 4, 3), small(2, 4, 2), other_width(2, 5, 3);
  const headwise::rows<const float> queries(query.data(), 2, 4);
  const headwise::rows<float> outs(out.data(), 2, 4);
  EXPECT_DEATH(
      headwise::attend(view, 5, {query.data(), 3, 4}, 1.0F, {out.data(), 3, 4}, {}, scratch),
      "attend takes the query rows of one whole group");
  headwise::attend_scratch of_one(1, 4, 3);
  EXPECT_DEATH(
      headwise::attend(view, 5, {query.data(), 1, 4}, 1.0F, {out.data(), 1, 4}, {}, of_one),
      "attend takes the query rows of one whole group");
  EXPECT_DEATH(headwise::attend(view, 5, {query.data(), 2, 5}, 1.0F, outs, {}, scratch),
               "a row of attend is not head_dim wide");
  EXPECT_DEATH(headwise::attend(view, 5, queries, 1.0F, outs, {}, other_width),
               "a row of attend is not head_dim wide");
  EXPECT_DEATH(headwise::attend(view, 5, queries, 1.0F, outs, lse, scratch),
               "lse holds one number for each query head");
  EXPECT_DEATH(headwise::attend(view, 5, queries, 1.0F, outs, {}, small),
               "attend_scratch has too few rows");
  EXPECT_DEATH(headwise::attend(view, 4, queries, 1.0F, outs, {}, scratch),
               "a query asks for rows that may be gone by now");
}

TEST(attend_contract, the_own_row_must_be_written_first) {
  engine text({1, 1, 1, 4}, {window(3)}, random_fixture(2));
  const auto tokens = text.next_tokens({0});
  const auto step = text.text().try_append(tokens);
  std::vector<float> query(4), out(4);
  headwise::attend_scratch scratch(1, 4, 3);
  EXPECT_DEATH(headwise::attend(step->head({0, 0}), 0, {query.data(), 1, 4}, 1.0F,
                                {out.data(), 1, 4}, {}, scratch),
               "the query's own row is not written yet");
}
// Also where older rows are there to be read.
TEST(attend_contract, older_rows_are_no_substitute_for_the_own_row) {
  engine text({1, 1, 1, 4}, {headwise::global{}}, random_fixture(2));
  text.feed(2);
  const auto step = text.text().try_append(text.next_tokens({0}));
  std::vector<float> query(4), out(4);
  headwise::attend_scratch scratch(1, 4, 3);
  EXPECT_DEATH(headwise::attend(step->head({0, 0}), 2, {query.data(), 1, 4}, 1.0F,
                                {out.data(), 1, 4}, {}, scratch),
               "the query's own row is not written yet");
}
TEST(attend_contract, a_query_lies_among_the_tokens) {
  engine text({1, 1, 1, 4}, {headwise::global{}}, random_fixture(2));
  text.feed(2);
  EXPECT_EQ(text.visible(text.text().head({0, 0}), 2).size(), 2U);  // what the next query will see
  EXPECT_DEATH(static_cast<void>(text.visible(text.text().head({0, 0}), 3)),
               "a query lies beyond the tokens that were appended");
}

}  // namespace
}  // namespace headwise_tests
