// SPDX-License-Identifier: Apache-2.0
//
// What each key drew at each age or later: against a loop over all weights, at every width.

#include "headwise/profile/mass_by_age.hpp"

#include <gtest/gtest.h>

#include "headwise/profile/map_check.hpp"
#include "support/typed_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

mass_by_age measured(const recorded_map& map, const std::vector<token_count>& lifetimes,
                     std::size_t skipped, simd_width width = widest_simd()) {
  mass_by_age mass(lifetimes, width);
  const attention_map_view view = map.view();
  mass.start(map.keys.size());
  for (std::size_t row = skipped; row < map.queries; ++row)
    mass.add_row(static_cast<position>(map.first_query + row), view.weights, row,
                 checked_row_sum(view, row));
  mass.finish();
  return mass;
}

recorded_map random_map(std::uint32_t seed) {
  random_source random(seed);
  return random_maps(random, {1, 1, 1, 8}, 1, 0).front();
}

TEST(mass_by_age, is_what_a_loop_over_all_weights_finds) {
  const std::vector<token_count> lifetimes{7, 1, forever, 2, 40, 7, 16, 33};
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const recorded_map map = random_map(seed);
    const std::size_t skipped = seed % 3 == 0 ? map.queries / 2 : 0;
    const mass_by_age mass = measured(map, lifetimes, skipped);
    ASSERT_EQ(mass.ages(), 6U);
    for (const token_count lifetime : {1U, 2U, 7U, 16U, 33U, 40U})
      for (std::size_t key = 0; key < map.keys.size(); ++key) {
        double drawn = 0.0;
        for (std::size_t row = skipped; row < map.queries; ++row)
          if (map.first_query + row >= key + lifetime)
            drawn += static_cast<double>(map.at(row, key)) / map.row_sum(row);
        ASSERT_NEAR(mass.tail(mass.index(lifetime))[key], drawn, 0x1p-28 * drawn + 1e-14)
            << "seed " << seed << " lifetime " << lifetime << " key " << key;
      }
  }
}

TEST(mass_by_age, where_nothing_is_drawn_is_exactly_nothing) {
  recorded_map map = random_map(3);
  const std::size_t keys = map.keys.size();
  map.first_query = 0;
  map.queries = keys;
  map.weights.assign(keys * keys, 0.0F);
  for (std::size_t row = 0; row < keys; ++row)  // thirds, on the last three keys
    for (std::size_t key = row < 2 ? 0 : row - 2; key <= row; ++key) map.at(row, key) = 1.0F / 3;
  for (std::size_t row = 0; row < 2; ++row)
    map.at(row, row) += (2.0F - static_cast<float>(row)) / 3;
  const mass_by_age mass = measured(map, {2, 3}, 0);
  for (std::size_t key = 0; key < keys; ++key) {
    ASSERT_EQ(mass.tail(1)[key], 0.0);
    ASSERT_NEAR(mass.tail(0)[key], key + 2 < keys ? 1.0 / 3 : 0.0, 1e-7);
  }
}

TEST(mass_by_age, has_the_same_bits_at_every_width) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const recorded_map map = random_map(seed);
    const mass_by_age expected = measured(map, {1, 3, 20}, 0, simd_width::portable);
    for (const simd_width width : {simd_width::avx2, simd_width::avx512}) {
      if (!has_simd(width)) continue;
      const mass_by_age got = measured(map, {1, 3, 20}, 0, width);
      for (std::size_t age = 0; age < 3; ++age)
        for (std::size_t key = 0; key < map.keys.size(); ++key)
          ASSERT_EQ(got.tail(age)[key], expected.tail(age)[key]);
    }
  }
}

// One object measures many maps.
TEST(mass_by_age, starts_anew) {
  const recorded_map first = random_map(5), second = random_map(6);
  mass_by_age mass({1, 3});
  for (const recorded_map* map : {&first, &second}) {
    mass.start(map->keys.size());
    for (std::size_t row = 0; row < map->queries; ++row)
      mass.add_row(static_cast<position>(map->first_query + row), map->view().weights, row,
                   checked_row_sum(map->view(), row));
    mass.finish();
  }
  const mass_by_age alone = measured(second, {1, 3}, 0);
  for (std::size_t age = 0; age < 2; ++age)
    for (std::size_t key = 0; key < second.keys.size(); ++key)
      ASSERT_EQ(mass.tail(age)[key], alone.tail(age)[key]);
  mass.start(1);  // and of this one no query counts
  mass.finish();
  ASSERT_EQ(mass.tail(0)[0], 0.0);
}

}  // namespace
}  // namespace headwise_tests
