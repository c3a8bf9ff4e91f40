// SPDX-License-Identifier: Apache-2.0
//
// Fault cases E: groups of query heads, head sizes, layers that differ.
#include <string>

#include <gtest/gtest.h>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "support/allocation_watch.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

using headwise::model_shape;

// Random keys and queries; V of KV head j is j.
fixture value_is_head() {
  fixture rows = random_fixture(2);
  rows.value = [](headwise::head_id head, position, std::span<float> row) {
    fill(row, static_cast<float>(head.kv_head));
  };
  return rows;
}

TEST(fault_cases, E01_the_kv_head_of_a_query_head) {
  for (const auto& [query_heads, kv_heads] :
       {std::pair{12U, 12U}, std::pair{32U, 8U}, std::pair{28U, 4U}}) {
    const model_shape shape{1, query_heads, kv_heads, 8};
    engine text(shape, std::vector<test_policy>(kv_heads, headwise::global{}), value_is_head());
    const outputs got = text.feed(5);
    for (std::uint32_t h = 0; h < query_heads; ++h)
      EXPECT_NEAR(got.last(h), h / (query_heads / kv_heads), 1e-5) << h << " of " << query_heads;
  }
}

TEST(fault_cases, E02_kv_heads_are_repeated_not_tiled) {
  const auto outputs_of = [](std::uint32_t query_heads, std::uint32_t kv_heads) {
    engine text({1, query_heads, kv_heads, 4},
                std::vector<test_policy>(kv_heads, headwise::global{}), value_is_head());
    const outputs got = text.feed(1);
    std::vector<float> heads;
    for (std::uint32_t h = 0; h < query_heads; ++h) heads.push_back(got.last(h));
    return heads;
  };
  EXPECT_EQ(outputs_of(4, 2), (std::vector<float>{0, 0, 1, 1}));
  EXPECT_EQ(outputs_of(6, 3), (std::vector<float>{0, 0, 1, 1, 2, 2}));
}

// The plan of a blueprint and that of a manager are layer-major, KV head by KV head.
TEST(fault_cases, E02_a_blueprint_has_the_same_order) {
  const model_shape shape{2, 4, 2, 4};
  headwise::blueprint plan = headwise::uniform_blueprint(shape, headwise::make_spec(window(1)));
  for (token_count i = 0; i < 4; ++i) plan.heads[i].policy = headwise::make_spec(window(i + 1));
  headwise::cache_manager<> cache(plan, {});
  auto text = cache.open();
  for (std::uint32_t layer = 0; layer < 2; ++layer)
    for (std::uint32_t head = 0; head < 2; ++head)
      EXPECT_EQ(headwise::make_spec(text.plan()[layer * 2 + head]),
                plan.head({layer, head}).policy);
  const std::vector<token> tokens{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}};
  const std::vector<float> zeros(5 * 4);
  auto step = text.try_append(tokens);
  for (std::uint32_t layer = 0; layer < 2; ++layer)
    for (std::uint32_t head = 0; head < 2; ++head)
      step->write({layer, head}, {zeros.data(), 5, 4}, {zeros.data(), 5, 4});
  std::move(*step).commit();
  EXPECT_EQ(text.head({0, 0}).resident_rows(), 1U);
  EXPECT_EQ(text.head({0, 1}).resident_rows(), 2U);
  EXPECT_EQ(text.head({1, 0}).resident_rows(), 3U);
  EXPECT_EQ(text.head({1, 1}).resident_rows(), 4U);
}

// tolerance: of the codec's rounding of keys and values in [-1, 1], d = 16, scale 0.5, on outputs
// of size 1. Each logit is off by at most 16 * 0.5 * u, each weight by twice that, each value by u.
template <class Codec>
void expect_dense_outputs(double unit_roundoff) {
  const double tolerance = 1e-5 + (2 * 16 * 0.5 + 1) * unit_roundoff;
  for (const std::uint32_t kv_heads : {1U, 2U, 4U, 8U}) {
    const model_shape shape{1, 8, kv_heads, 16};
    std::vector<test_policy> plan;
    for (std::uint32_t j = 0; j < kv_heads; ++j) plan.emplace_back(window(3 + j));
    engine<Codec> text(shape, plan, random_fixture(33));
    const outputs got = text.feed(9);
    for (std::uint32_t h = 0; h < 8; ++h) {
      const std::uint32_t w = 3 + h / shape.group_size();
      const auto expected = text.dense(0, h, 8, range(w > 9 ? 0 : 9 - w, 8));
      for (std::size_t i = 0; i < 16; ++i)
        EXPECT_NEAR(got.row(8, h)[i], expected.values[i], tolerance)
            << Codec::name << h << ' ' << i;
    }
  }
}
TEST(fault_cases, E03_every_group_size_in_every_codec) {
  expect_dense_outputs<headwise::f32>(0.0);
  expect_dense_outputs<headwise::f16>(0x1p-11);
  expect_dense_outputs<headwise::bf16>(0x1p-8);
}

TEST(fault_cases, E04_shapes_that_cannot_be) {
  struct wrong {
    model_shape shape;
    const char* message;
  };
  const wrong cases[] = {
      {{1, 10, 4, 8},
       "model_shape: invalid argument: got query_heads=10 with kv_heads=4, expected query_heads to "
       "be a multiple of kv_heads"},
      {{1, 8, 0, 8}, "model_shape.kv_heads: invalid argument: got 0, expected at least 1"},
      {{1, 0, 0, 8}, "model_shape.query_heads: invalid argument: got 0, expected at least 1"},
      {{1, 4, 4, 0}, "model_shape.head_dim: invalid argument: got 0, expected at least 1"},
      {{0, 4, 4, 8}, "model_shape.layers: invalid argument: got 0, expected at least 1"},
      {{1, 4, 8, 8},
       "model_shape: invalid argument: got query_heads=4 with kv_heads=8, expected query_heads to "
       "be a multiple of kv_heads"},
  };
  for (const wrong& w : cases) {
    const allocation_watch heap;
    try {
      headwise::cache_manager<> cache(w.shape, std::vector<headwise::builtin_policies::variant>{},
                                      {});
      FAIL() << w.message;
    } catch (const headwise::error& e) {
      EXPECT_STREQ(e.what(), w.message);
    }
    EXPECT_LT(heap.largest(), 1024U);  // the text of the error, nothing by the numbers it names
  }
}

// A model_shape has one head_dim; values of another size are a caller's bug, said at the write.
TEST(fault_cases, E05_keys_and_values_have_one_size) {
  engine text({1, 1, 1, 6}, {headwise::global{}}, uniform_fixture());
  const std::vector<token> tokens = text.next_tokens({0});
  const std::vector<float> row(6);
  auto step = text.text().try_append(tokens);
  EXPECT_DEATH(step->write({0, 0}, {row.data(), 1, 6}, {row.data(), 1, 4}),
               "the rows of write are not head_dim wide");
}

TEST(fault_cases, E06_head_dim_is_what_the_shape_says) {
  engine<headwise::f16> text({1, 64, 8, 64}, std::vector<test_policy>(8, headwise::global{}),
                             uniform_fixture());
  text.append(1000);
  EXPECT_EQ(text.text().stats().full_bytes, 2'048'000U);  // hidden size 2880 plays no part
  EXPECT_EQ(text.text().stats().payload_bytes, 2'048'000U);
}

TEST(fault_cases, E08_layers_differ) {
  engine text({2, 1, 1, 4}, {window(2), window(6)}, uniform_fixture());
  const outputs got = text.feed(8);
  EXPECT_NEAR(got.last(0), 6.5, 1e-5);
  EXPECT_NEAR(got.last(1), 4.5, 1e-5);
  EXPECT_EQ(text.text().head({0, 0}).resident_rows(), 2U);
  EXPECT_EQ(text.text().head({1, 0}).resident_rows(), 6U);
  try {
    engine short_plan({2, 1, 1, 4}, {window(2)}, uniform_fixture());
    FAIL();
  } catch (const headwise::error& e) {
    EXPECT_STREQ(e.what(),
                 "per_head plan: shape mismatch: got 1 policies (layer 1 lacks some), expected 2 "
                 "layers x 1 KV heads = 2");
  }
}

}  // namespace
}  // namespace headwise_tests
