// SPDX-License-Identifier: Apache-2.0
//
// Chunks of queries against dense attention over what each query sees.
#include "headwise/attend/attend_chunk.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"
#include "support/engine.hpp"
#include "support/packed_nibbles.hpp"

namespace headwise_tests {
namespace {

constexpr headwise::model_shape chunk_shape{1, 6, 3, 40};
// A window shorter than a block of queries, one longer, sinks: several streams.
const std::vector<test_policy> chunk_plan{
    headwise::global{}, headwise::local_window(9),
    headwise::union_of(headwise::special_tokens(headwise::token_classes::sink),
                       headwise::local_window(70))};

// Feeds `before` tokens and then a chunk of n, whose queries attend together.
// 1. each output is that of attend() for its query, but for the rounding of a running softmax
// 2. and so is each log-sum  3. what lies between the rows of the outputs is left alone
template <class Key, class Value = Key>
void expect_chunk(std::size_t before, std::size_t n, headwise::simd_width width,
                  std::uint32_t page_tokens) {
  const fixture rows = random_fixture(9);
  engine<Key, Value> text(chunk_shape, chunk_plan, rows, {.page_tokens = page_tokens},
                          headwise::token_classifier(2));
  if (before > 0) text.feed(before);
  std::vector<token> tokens;
  for (std::size_t i = 0; i < n; ++i)
    tokens.push_back({static_cast<position>(before + i), 0,
                      before + i < 2 ? token_classes::sink : token_classes::none});
  auto step = text.text().try_append(tokens);
  const std::size_t d = chunk_shape.head_dim, group = chunk_shape.group_size();
  const std::size_t stride = group * d + 3;
  std::vector<float> keys(n * d), values(n * d), queries(n * stride), out(n * stride, 7.0F),
      lse(n * group);
  headwise::chunk_scratch scratch(chunk_shape.group_size(), chunk_shape.head_dim,
                                  std::pmr::get_default_resource(), width);
  headwise::attend_scratch one(chunk_shape.group_size(), chunk_shape.head_dim, before + n,
                               std::pmr::get_default_resource(), width);
  for (std::uint32_t head = 0; head < chunk_shape.kv_heads; ++head) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto pos = static_cast<position>(before + i);
      rows.key({0, head}, pos, std::span(keys).subspan(i * d, d));
      rows.value({0, head}, pos, std::span(values).subspan(i * d, d));
      for (std::uint32_t g = 0; g < group; ++g)
        rows.query(0, head * chunk_shape.group_size() + g, pos,
                   std::span(queries).subspan(i * stride + g * d, d));
    }
    step->write({0, head}, {keys.data(), n, d}, {values.data(), n, d});
    const auto view = step->head({0, head});
    headwise::attend_chunk(view, static_cast<position>(before),
                           {queries.data(), n, group * d, stride}, rows.scale,
                           {out.data(), n, group * d, stride}, lse, scratch);
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<float> expected(group * d), expected_lse(group);
      headwise::attend(view, static_cast<position>(before + i),
                       {queries.data() + i * stride, group, d}, rows.scale,
                       {expected.data(), group, d}, expected_lse, one);
      float largest = 0.0F;
      for (const float x : expected) largest = std::max(largest, std::abs(x));
      for (std::size_t e = 0; e < stride; ++e) {
        if (e < group * d)
          ASSERT_NEAR(out[i * stride + e], expected[e], 4e-6F * largest) << head << ' ' << i;  // 1
        else
          ASSERT_EQ(out[i * stride + e], 7.0F);  // 3
      }
      for (std::size_t g = 0; g < group; ++g)
        ASSERT_NEAR(lse[i * group + g], expected_lse[g], 4e-6F);  // 2
    }
  }
  std::move(*step).commit();
}

template <class Key, class Value = Key>
void expect_chunks() {
  for (const auto width :
       {headwise::simd_width::portable, headwise::simd_width::avx2, headwise::simd_width::avx512})
    if (headwise::has_simd(width))
      for (const std::size_t before : {0U, 5U, 150U})
        for (const std::size_t n : {1U, 15U, 16U, 17U, 75U})
          for (const std::uint32_t page_tokens : {13U, 150U})  // also more rows than a tile
            expect_chunk<Key, Value>(before, n, width, page_tokens);
}

TEST(attend_chunk, each_query_sees_what_it_sees_alone) {
  expect_chunks<headwise::f32>();
  expect_chunks<headwise::f16>();
  expect_chunks<headwise::int8_row, headwise::int4_group>();
  expect_chunks<stranger::packed_nibbles>();
}

// attend() itself is held against double; this holds the chunk there as well, without it between.
TEST(attend_chunk, is_dense_attention) {
  const fixture rows = random_fixture(4);
  const headwise::model_shape shape{1, 2, 1, 16};
  engine<> text(shape, {headwise::local_window(40)}, rows, {.rollback_horizon = 60});
  text.feed(100);
  const position first = 45;
  const std::size_t n = 55, d = 16;
  std::vector<float> queries(n * 2 * d), out(n * 2 * d);
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t g = 0; g < 2; ++g)
      rows.query(0, g, first + i, std::span(queries).subspan((2 * i + g) * d, d));
  headwise::chunk_scratch scratch(2, 16);
  headwise::attend_chunk(text.text().head({0, 0}), first, {queries.data(), n, 2 * d}, rows.scale,
                         {out.data(), n, 2 * d}, {}, scratch);
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t g = 0; g < 2; ++g) {
      std::vector<position> seen;
      for (position pos = first + i < 39 ? 0 : first + i - 39; pos <= first + i; ++pos)
        seen.push_back(pos);
      const auto expected = text.dense(0, g, first + i, seen);
      for (std::size_t e = 0; e < d; ++e)
        ASSERT_NEAR(double{out[(2 * i + g) * d + e]}, expected.values[e], 1e-5) << i;
    }
}

#if HEADWISE_CHECK_LEVEL >= 1
TEST(attend_chunk_death, heads_that_rank_attend_one_query_at_a_time) {
  engine<> text({1, 1, 1, 4}, {headwise::heavy_hitters(3)}, random_fixture(1));
  text.feed(8);
  std::vector<float> q(4), out(4);
  headwise::chunk_scratch scratch(1, 4);
  EXPECT_DEATH(headwise::attend_chunk(text.text().head({0, 0}), 7, {q.data(), 1, 4}, 1.0F,
                                      {out.data(), 1, 4}, {}, scratch),
               "one query at a time");
}
TEST(attend_chunk_death, a_scratch_is_for_one_group_and_head_dim) {
  engine<> text({1, 2, 1, 4}, {headwise::global{}}, random_fixture(1));
  text.feed(2);
  std::vector<float> q(8), out(8);
  headwise::chunk_scratch scratch(4, 2);
  EXPECT_DEATH(headwise::attend_chunk(text.text().head({0, 0}), 1, {q.data(), 1, 8}, 1.0F,
                                      {out.data(), 1, 8}, {}, scratch),
               "another group or head_dim");
}
#endif

}  // namespace
}  // namespace headwise_tests
