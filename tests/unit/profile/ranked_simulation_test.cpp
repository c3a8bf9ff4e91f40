// SPDX-License-Identifier: Apache-2.0
//
// The profiler's heavy hitters beside a naive simulator, query by query.

#include "headwise/profile/ranked_simulation.hpp"

#include <gtest/gtest.h>

#include "support/naive_hitters.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {
namespace {

using headwise::forever;
using headwise::ranked_simulation;

// The group's maps [group, queries, keys], as floats and as the oracle's doubles.
struct group_attention {
  std::size_t group, length;
  std::vector<float> weights;
  std::vector<std::vector<std::vector<double>>> as_doubles;

  group_attention(random_source& random, std::size_t heads, std::uint32_t tokens)
      : group(heads), length(tokens) {
    for (std::size_t head = 0; head < group; ++head) {
      recorded_map map;
      map.queries = length;
      map.keys = random_prompt(random, length, 0);
      fill_random(random, map);
      weights.insert(weights.end(), map.weights.begin(), map.weights.end());
      auto& rows = as_doubles.emplace_back();
      for (std::size_t query = 0; query < length; ++query) {
        const auto row = map.weights.begin() + static_cast<std::ptrdiff_t>(query * length);
        rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(length));
      }
    }
  }
  // [group, keys]
  [[nodiscard]] headwise::rows<const float> of(position query) const {
    return {weights.data() + query * length, group, length, length * length};
  }
};

TEST(ranked_simulation, keeps_what_a_naive_simulator_keeps) {
  std::size_t steps = 0, contested = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    random_source random(seed);
    const group_attention maps(random, random.between(1, 3), random.between(1, 120));
    const token_count pool = random.between(1, 40);
    const token_count window = random.between(1, 20), shorter = random.between(1, window);
    std::vector<token_count> lifetimes(maps.length, window);
    for (token_count& lifetime : lifetimes)
      if (random.one_in(6)) lifetime = random.one_in(2) ? forever : shorter;
    const naive_hitters expected = follow_hitters(maps.as_doubles, lifetimes, pool);
    ranked_simulation head(lifetimes, pool);
    std::vector<double> mass(maps.group);
    for (position query = 0; query < maps.length; ++query, ++steps) {
      ASSERT_EQ(head.next_query(), query);
      head.attend(maps.of(query), mass);
      const std::set<position> kept(head.kept().begin(), head.kept().end());
      ASSERT_EQ(kept, expected.kept[query]) << "seed " << seed << " query " << query;
      ASSERT_TRUE(std::is_sorted(head.kept().begin(), head.kept().end()));
      for (std::size_t h = 0; h < maps.group; ++h)
        ASSERT_NEAR(mass[h], expected.mass[query][h], 1e-12) << "seed " << seed;
      if (query > 0 && *expected.kept[query - 1].rbegin() != query - 1) ++contested;
    }
    // The order was no matter of rounding.
    ASSERT_GT(expected.margin, 1e-12) << "seed " << seed;
  }
  EXPECT_GT(steps, 20'000U);
  EXPECT_GT(contested, 500U);  // the token that came was the one to go
}

// One row of numbers for each query; returns what is kept after the last.
[[nodiscard]] std::vector<position> kept_after(const std::vector<std::vector<float>>& queries,
                                               std::vector<token_count> lifetimes,
                                               token_count pool) {
  ranked_simulation head(std::move(lifetimes), pool);
  double mass = 0.0;
  for (const auto& row : queries) head.attend({row.data(), 1, row.size()}, {&mass, 1});
  return {head.kept().begin(), head.kept().end()};
}
using positions = std::vector<position>;

TEST(ranked_simulation, gives_ties_to_the_earlier_token) {
  EXPECT_EQ(kept_after({{1, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {1, 1, 1}, 1), (positions{0}));
  EXPECT_EQ(kept_after({{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {1, 1, 1}, 2), (positions{0, 1}));
}

TEST(ranked_simulation, counts_what_a_decode_would_compute) {
  // After query 2 the pool holds token 0 (1.25) and 1 (1.0) is gone. Most of query 3 was on 1; a
  // decode gives all of it to 2, which then has 1.75. As recorded it would have 1.0 and go.
  EXPECT_EQ(kept_after({{1, 0, 0, 0}, {0, 1, 0, 0}, {0.25F, 0, 0.75F, 0}, {0, 0.75F, 0.25F, 0}},
                       {2, 2, 2, 2}, 1),
            (positions{2, 3}));
}

TEST(ranked_simulation, keeps_lifetimes_alone_where_there_is_no_pool) {
  EXPECT_EQ(
      kept_after({{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}}, {1, forever, 1, 3}, 0),
      (positions{1, 3}));
}

TEST(ranked_simulation, takes_a_query_that_saw_nothing_of_what_is_left) {
  // f16 rounds small weights to 0: query 2 gave all it has to a token that is gone.
  EXPECT_EQ(
      kept_after({{1, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0.5F, 0, 0, 0.5F}}, {1, 1, 1, 1}, 1),
      (positions{0}));
}

// Case D09 of the faults: two heavy hitters behind a window of three, tokens 1 and 4 draw e^3.
TEST(ranked_simulation, keeps_scores_with_their_tokens) {
  const std::vector<positions> expected{{0},          {0, 1},       {0, 1, 2},    {0, 1, 2, 3},
                                        {0, 1, 3, 4}, {0, 1, 4, 5}, {1, 4, 5, 6}, {1, 4, 6, 7}};
  ranked_simulation head(std::vector<token_count>(8, 3), 2);
  double mass = 0.0;
  for (position query = 0; query < 8; ++query) {
    std::vector<float> row(8, 0.0F);
    for (position pos = 0; pos <= query; ++pos)
      row[pos] = pos == 1 || pos == 4 ? std::exp(3.0F) : 1.0F;
    head.attend({row.data(), 1, 8}, {&mass, 1});
    EXPECT_EQ(positions(head.kept().begin(), head.kept().end()), expected[query]) << query;
  }
}

}  // namespace
}  // namespace headwise_tests
