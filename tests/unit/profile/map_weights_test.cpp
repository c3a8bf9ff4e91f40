// SPDX-License-Identifier: Apache-2.0
//
// Weights are read where and as they lie: every type, any alignment, rows apart from each other.

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/random.hpp"
#include "support/typed_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

TEST(map_weights, are_read_as_they_lie) {
  random_source random(1);
  for (const weight_type type : all_weight_types)
    for (std::size_t shift = 0; shift < 5; ++shift)
      for (const std::size_t stride : {7U, 9U}) {
        const std::vector<float> values = random.numbers(3 * stride);
        std::vector<std::byte> bytes(shift);
        append_weights(type, values, bytes);
        const map_weights weights(type, bytes.data() + shift, 3, 7, stride);
        for (std::size_t query = 0; query < 3; ++query) {
          std::vector<float> row(7);
          weights.copy_row(query, row);
          for (std::size_t key = 0; key < 7; ++key) {
            const float expected = rounded_to(type, values[query * stride + key]);
            ASSERT_EQ(weights.at(query, key), expected);
            ASSERT_EQ(row[key], expected);
          }
          ASSERT_EQ(weights.row(query).size(), 7 * weight_bytes(type));
          ASSERT_EQ(weights.row(query).data() - bytes.data(),
                    static_cast<std::ptrdiff_t>(shift + query * stride * weight_bytes(type)));
        }
      }
}

TEST(map_weights, of_float_are_made_of_rows) {
  const std::vector<float> values{1, 0, 9, 0.5F, 0.5F, 9};
  const map_weights apart{values.data(), 2, 2, 3}, dense{values.data(), 2, 3};
  const map_weights same = rows<const float>(values.data(), 2, 2, 3);
  EXPECT_EQ(apart.at(1, 1), 0.5F);
  EXPECT_EQ(same.at(1, 1), 0.5F);
  EXPECT_EQ(same.stride, 3U);
  EXPECT_EQ(dense.at(1, 2), 9.0F);
  EXPECT_EQ(dense.type, weight_type::f32);
}

// A profile of halves is that of the same numbers as float, to the last bit.
TEST(map_weights, of_any_type_are_profiled_without_a_difference) {
  const model_shape shape{2, 4, 2, 8};
  for (const weight_type type : {weight_type::f16, weight_type::bf16})
    for (std::uint32_t seed = 0; seed < 10; ++seed) {
      random_source random(seed);
      const std::vector<recorded_map> maps =
          random_maps(random, shape, 3, 2, recorded_queries::all);
      measure_options options;
      options.ladder.windows = {2, 5, 11};
      options.ladder.heavy_hitters = {0.3};
      profiler<> as_float(shape, {}, options), as_they_are(shape, {}, options);
      for (const recorded_map& map : maps) {
        const typed_map typed(type, map, seed % 3);
        as_they_are.add(typed.view());
        as_float.add(typed.as_float().view());
      }
      ASSERT_EQ(as_they_are.plan({}), as_float.plan({}));
      for (std::size_t c = 0; c < as_float.candidates().size(); ++c)
        for (std::uint32_t head = 0; head < 4; ++head)
          ASSERT_EQ(as_they_are.sums().table.lost_mass(1, head, c),
                    as_float.sums().table.lost_mass(1, head, c));
    }
}

TEST(map_weights, of_any_type_are_named_when_they_are_bad) {
  for (const weight_type type : all_weight_types) {
    recorded_map map = make_map({{0, 1}, {1, 1}}, {1.0F, 0.0F, 1.25F, -0.25F});
    expect_error(error_code::not_normalized, {"row 1", "weight -0.25 at query 1 key 1"},
                 [&] { (void)checked_row_sum(typed_map(type, map, 1).view(), 1); });
    map.at(0, 1) = 0.125F;
    expect_error(error_code::not_causal, {"row 0", "weight 0.125 at query 0 key 1"},
                 [&] { (void)checked_row_sum(typed_map(type, map, 1).view(), 0); });
  }
}

}  // namespace
}  // namespace headwise_tests
