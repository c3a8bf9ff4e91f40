// SPDX-License-Identifier: Apache-2.0
//
// Fault group J, recorded maps: rows that do not sum to one, missing maps, mass above the diagonal,
// padding.
#include <limits>

#include <gtest/gtest.h>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/profile/profiler.hpp"
#include "support/files.hpp"
#include "support/recorded_maps.hpp"

namespace {

using namespace headwise_tests;
using headwise::blueprint;
using headwise::error_code;

std::vector<token> plain_tokens(std::size_t count) {
  std::vector<token> tokens(count);
  for (position pos = 0; pos < count; ++pos) tokens[pos] = {pos, 1, token_classes::none};
  return tokens;
}

// Each query of the last `queries` looks at all tokens up to its own alike.
recorded_map uniform_map(std::size_t keys, std::size_t queries) {
  recorded_map map = make_map(plain_tokens(keys), std::vector<float>(keys * queries, 0.0F));
  map.first_query = static_cast<position>(keys - queries);
  for (std::size_t row = 0; row < queries; ++row)
    for (std::size_t key = 0; key <= map.first_query + row; ++key)
      map.at(row, key) = 1.0F / static_cast<float>(map.first_query + row + 1);
  return map;
}

blueprint profile_of(const std::vector<recorded_map>& maps, model_shape shape = {1, 1, 1, 8}) {
  recorded_source source{shape, &maps};
  return headwise::profile(source, {});
}

void expect_refused(const recorded_map& map, error_code code,
                    std::initializer_list<std::string_view> parts) {
  expect_error(code, parts, [&] { static_cast<void>(profile_of({map})); });
}

TEST(fault_cases, J01_dropout_left_on) {
  recorded_map map = uniform_map(8, 8);
  map.at(5, 2) = 0.0F;  // dropped: the sum of row 5 happens to be less than 1
  for (float& weight : map.weights) weight *= 1.0F / 0.9F;
  expect_refused(map, error_code::not_normalized,
                 {"maps.safetensors", "layer 0", "head 0", "row 0", "sum 1.1111"});
  // From p = 0.01 up, in any row.
  map = uniform_map(8, 8);
  for (std::size_t key = 0; key < 8; ++key) map.at(7, key) *= 1.0F / 0.99F;
  expect_refused(map, error_code::not_normalized, {"row 7", "sum 1.010"});
}

TEST(fault_cases, J02_maps_in_half_precision) {
  const std::vector<std::pair<std::size_t, double>> f16_sums{
      {3000, 0.99993}, {1000, 1.00040}, {777, 1.00036}};
  for (const auto& [keys, expected_sum] : f16_sums) {
    const recorded_map exact = uniform_map(keys, 50);
    for (const bool brain : {false, true}) {
      recorded_map half = exact;
      for (float& weight : half.weights)
        weight = brain
                     ? headwise::detail::float_from_bf16(headwise::detail::bf16_from_float(weight))
                     : headwise::detail::float_from_f16(headwise::detail::f16_from_float(weight));
      if (!brain) {
        EXPECT_NEAR(headwise::checked_row_sum(half.view(), 49), expected_sum, 1e-5);
      }
      const blueprint a = profile_of({half}), b = profile_of({exact});
      ASSERT_EQ(a.heads.front().policy, b.heads.front().policy);
      for (std::size_t c = 0; c < a.heads.front().candidates.size(); ++c)
        EXPECT_NEAR(a.heads.front().candidates[c].recovery, b.heads.front().candidates[c].recovery,
                    1e-7);
    }
  }
}

TEST(fault_cases, J03_layers_without_maps) {
  std::vector<recorded_map> maps;
  for (std::uint32_t layer = 0; layer < 4; ++layer) {
    maps.push_back(uniform_map(4, 4));
    maps.back().layer = layer;
  }
  const auto refused = [](const std::vector<recorded_map>& of, error_code code,
                          std::initializer_list<std::string_view> parts) {
    expect_error(code, parts, [&] { static_cast<void>(profile_of(of, {4, 1, 1, 8})); });
  };
  ASSERT_EQ(profile_of(maps, {4, 1, 1, 8}).heads.size(), 4U);
  std::vector<recorded_map> absent = maps, zeros = maps, empty = maps;
  absent.erase(absent.begin() + 2);
  refused(absent, error_code::missing, {"layer 2", "absent"});
  zeros[1].weights.assign(16, 0.0F);
  refused(zeros, error_code::not_normalized, {"layer 1", "row sum 0", "all zeros"});
  empty[3].keys.clear();
  empty[3].weights.clear();
  empty[3].queries = 0;
  refused(empty, error_code::missing, {"layer 3", "empty map [0, 0]"});
  // The layer may be missing from one prompt only.
  std::vector<recorded_map> second = absent;
  for (recorded_map& map : second) map.prompt = 1;
  second.insert(second.begin(), maps.begin(), maps.end());
  refused(second, error_code::missing, {"prompt 1", "layer 2", "absent"});
}

TEST(fault_cases, J04_mass_above_the_diagonal) {
  const recorded_map bidirectional =
      make_map(plain_tokens(3), {0.5F, 0.5F, 0, 0.5F, 0.5F, 0, 0.25F, 0.25F, 0.5F});
  expect_refused(bidirectional, error_code::not_causal,
                 {"layer 0", "head 0", "row 0", "weight 0.5 at query 0 key 1"});
  const recorded_map causal = uniform_map(3, 3);
  recorded_map transposed = causal;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) transposed.at(i, j) = causal.weights[j * 3 + i];
  expect_refused(transposed, error_code::not_causal, {"row 0", "at query 0 key 1"});
  // Fewer queries than keys: they are where first_query says, and nowhere else.
  recorded_map prefix = uniform_map(5, 3);
  ASSERT_EQ(prefix.first_query, 2U);
  EXPECT_EQ(profile_of({prefix}).origin.queries, 3U);
  prefix.first_query = 0;
  expect_refused(prefix, error_code::not_causal, {"row 0", "at query 0 key 1"});
}

TEST(fault_cases, J05_rows_of_padding) {
  // Six tokens, of which the first two are padding: their rows are NaN, their columns 0.
  recorded_map padded = uniform_map(6, 6);
  for (std::size_t row = 0; row < 6; ++row)
    for (std::size_t key = 0; key < 6; ++key)
      padded.at(row, key) = row < 2                ? std::numeric_limits<float>::quiet_NaN()
                            : key < 2 || key > row ? 0.0F
                                                   : 1.0F / static_cast<float>(row - 1);
  expect_refused(padded, error_code::not_normalized, {"layer 0", "head 0", "row 0", "nan"});
  // A source that knows of the padding gives the view without it.
  headwise::attention_map_view view = padded.view();
  const std::vector<token> keys = plain_tokens(4);
  view.weights = {padded.weights.data() + 2 * 6 + 2, 4, 4, 6};
  view.keys = keys;
  headwise::profiler<> work({1, 1, 1, 8}, {});
  work.add(view);
  EXPECT_EQ(work.plan({}), profile_of({uniform_map(4, 4)}));
}

}  // namespace
