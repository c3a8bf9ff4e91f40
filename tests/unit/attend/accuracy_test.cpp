// SPDX-License-Identifier: Apache-2.0
//
// attend against double precision over the decoded rows: every codec, magnitudes from 1e-30 to
// 1e30, scores that are all the same or all on one row, from one row to 100,000.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/headwise.hpp"
#include "support/random.hpp"
#include "support/reference_attention.hpp"

namespace headwise_tests {
namespace {

constexpr std::uint32_t accuracy_d = 72, accuracy_group = 2;  // no multiple of a vector or unit

enum class scores { random, equal, one_row };

// Keys of about `magnitude`, queries that bring their products near 1, values of another magnitude.
struct accuracy_case {
  scores kind;
  std::size_t count;
  float magnitude;
};

class accuracy_rows {
 public:
  explicit accuracy_rows(const accuracy_case& c) {
    random_source random(static_cast<std::uint32_t>(c.count));
    queries = random.numbers(accuracy_group * accuracy_d);
    for (std::size_t r = 0; r < c.count; ++r) {
      keys.push_back(random.numbers(accuracy_d));
      values.push_back(random.numbers(accuracy_d));
      if (c.kind == scores::equal) keys.back() = keys.front();
    }
    if (c.kind == scores::one_row)  // far above the others for the first query head
      for (std::size_t i = 0; i < accuracy_d; ++i) keys[c.count / 2][i] = 8.0F * queries[i];
    for (auto& row : keys)
      for (float& x : row) x *= c.magnitude;
    for (auto& row : values)
      for (float& x : row) x *= c.magnitude;
    for (float& x : queries) x /= c.magnitude;
  }
  std::vector<float> queries;                    // [group, d]
  std::vector<std::vector<float>> keys, values;  // [count][d]
};

template <class Codec>
[[nodiscard]] std::vector<std::vector<float>> as_stored(
    const std::vector<std::vector<float>>& rows) {
  std::vector<std::vector<float>> result;
  std::vector<std::byte> stored(Codec::row_bytes(accuracy_d));
  for (const auto& row : rows) {
    Codec::encode(row, stored.data());
    Codec::decode(stored.data(), result.emplace_back(accuracy_d));
  }
  return result;
}
[[nodiscard]] double largest(const std::vector<std::vector<float>>& rows) {
  float result = 0.0F;
  for (const auto& row : rows)
    for (const float x : row) result = std::max(result, std::abs(x));
  return double{result};
}

// out, lse of all query heads, over a head that keeps all rows.
template <class Codec>
void attend_all(const accuracy_rows& given, float scale, std::vector<float>& out,
                std::vector<float>& lse) {
  using manager = headwise::cache_manager<headwise::builtin_policies, Codec>;
  manager cache({1, accuracy_group, 1, accuracy_d},
                std::vector<headwise::builtin_policies::variant>{headwise::global{}}, {});
  auto text = cache.open();
  const std::size_t count = given.keys.size();
  std::vector<float> keys, values;
  std::vector<headwise::token> tokens;
  for (std::size_t r = 0; r < count; ++r) {
    tokens.push_back({static_cast<headwise::position>(r)});
    keys.insert(keys.end(), given.keys[r].begin(), given.keys[r].end());
    values.insert(values.end(), given.values[r].begin(), given.values[r].end());
  }
  auto step = text.try_append(tokens, headwise::attend_scope::last_query);
  ASSERT_TRUE(step);
  step->write({0, 0}, {keys.data(), count, accuracy_d}, {values.data(), count, accuracy_d});
  std::move(*step).commit();
  headwise::attend_scratch scratch(accuracy_group, accuracy_d, count);
  headwise::attend(text.head({0, 0}), static_cast<headwise::position>(count - 1),
                   {given.queries.data(), accuracy_group, accuracy_d}, scale,
                   {out.data(), accuracy_group, accuracy_d}, lse, scratch);
}

// Queries of quantised keys are rounded to a 32767th of their largest element. That meets codes of
// 255 (of 15) steps, which span at most 1.008 * 2 * largest(keys): half of them to either side in
// int8_row, all of them in int4_group.
template <class Codec>
[[nodiscard]] double query_rounding(std::span<const float> query, double largest_key) {
  double largest_element = 0.0;
  for (const float x : query) largest_element = std::max(largest_element, std::abs(double{x}));
  const double product = accuracy_d * largest_element * 1.02 * largest_key / 65534.0;
  if (std::same_as<Codec, headwise::int8_row>) return product;
  return std::same_as<Codec, headwise::int4_group> ? 2.0 * product : 0.0;
}

// A logit is off by at most the rounding of each of its steps; a weight by as much, relatively; and
// an output by that and the rounding of its own sum, of which the signs of many steps differ.
template <class Codec>
void expect_accurate(const accuracy_case& c) {
  SCOPED_TRACE(std::to_string(c.count) + " rows of " + std::to_string(std::log10(c.magnitude)));
  constexpr float scale = 0.125F;
  constexpr double epsilon = double{std::numeric_limits<float>::epsilon()};
  const accuracy_rows given(c);
  std::vector<float> out(accuracy_group * accuracy_d), lse(accuracy_group);
  attend_all<Codec>(given, scale, out, lse);
  const auto keys = as_stored<Codec>(given.keys), values = as_stored<Codec>(given.values);
  const std::vector<std::span<const float>> key_rows(keys.begin(), keys.end());
  const std::vector<std::span<const float>> value_rows(values.begin(), values.end());
  for (std::size_t g = 0; g < accuracy_group; ++g) {
    const auto query = std::span(given.queries).subspan(g * accuracy_d, accuracy_d);
    const auto expected = reference_attention(query, double{scale}, key_rows, value_rows);
    double query_sum = 0.0;
    for (const float x : query) query_sum += std::abs(double{x});
    const double logit = double{scale} * (12.0 * epsilon * query_sum * largest(keys) +
                                          query_rounding<Codec>(query, largest(keys)));
    const double sum = epsilon * (16.0 + std::sqrt(static_cast<double>(c.count)));
    EXPECT_NEAR(lse[g], expected.lse, logit + 2.0 * epsilon * (1.0 + std::abs(expected.lse)));
    for (std::size_t i = 0; i < accuracy_d; ++i)
      ASSERT_NEAR(out[g * accuracy_d + i], expected.values[i],
                  (2.0 * logit + sum) * largest(values))
          << g << ' ' << i;
  }
}

template <class Codec>
void expect_accurate_sweep(const std::vector<float>& magnitudes) {
  for (const scores kind : {scores::random, scores::equal, scores::one_row})
    for (const float magnitude : magnitudes)
      for (const std::size_t count : {1U, 7U, 8U, 511U, 512U, 513U, 1031U})
        expect_accurate<Codec>({kind, count, magnitude});
}

TEST(attend_accuracy, f32_rows) {
  expect_accurate_sweep<headwise::f32>({1e-30F, 1e-3F, 1.0F, 1e3F, 1e30F});
}
TEST(attend_accuracy, f16_rows) {
  expect_accurate_sweep<headwise::f16>({1e-5F, 1e-3F, 1.0F, 1e3F});
}
TEST(attend_accuracy, bf16_rows) {
  expect_accurate_sweep<headwise::bf16>({1e-30F, 1e-3F, 1.0F, 1e3F, 1e30F});
}
TEST(attend_accuracy, int8_rows) {
  expect_accurate_sweep<headwise::int8_row>({1e-30F, 1e-3F, 1.0F, 1e3F, 1e30F});
}
TEST(attend_accuracy, int4_rows) {
  expect_accurate_sweep<headwise::int4_group>({1e-30F, 1e-3F, 1.0F, 1e3F, 1e30F});
}
TEST(attend_accuracy, a_hundred_thousand_rows) {
  for (const scores kind : {scores::random, scores::equal, scores::one_row}) {
    expect_accurate<headwise::f16>({kind, 100'000, 1.0F});
    expect_accurate<headwise::int8_row>({kind, 100'000, 1.0F});
  }
}

}  // namespace
}  // namespace headwise_tests
