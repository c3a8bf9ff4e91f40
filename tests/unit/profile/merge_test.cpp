// SPDX-License-Identifier: Apache-2.0
//
// Measuring parts of a set apart and merging them gives what measuring the whole gives.

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

// Weights in 64ths: all sums are exact, so that equal means equal to the last bit.
void make_dyadic(random_source& random, recorded_map& map) {
  for (std::size_t row = 0; row < map.queries; ++row) {
    for (std::size_t key = 0; key < map.keys.size(); ++key) map.at(row, key) = 0.0F;
    for (int i = 0; i < 64; ++i)
      map.at(row, random.below(static_cast<std::uint32_t>(map.first_query + row + 1))) += 1.0F / 64;
  }
}

struct parts {
  model_shape shape{2, 4, 2, 8};
  token_rules rules{2, {}};
  measure_options options;
  std::vector<recorded_map> maps;

  explicit parts(std::uint32_t seed) {
    random_source random(seed);
    options.length = 50;
    options.ladder.windows = {2, 5, 11};
    maps = random_maps(random, shape, 6, rules.sink_count);
    for (recorded_map& map : maps) make_dyadic(random, map);
  }
  // Of the prompts first .. last - 1.
  [[nodiscard]] profiler<> measured(std::uint64_t first, std::uint64_t last) const {
    profiler<> work(shape, rules, options);
    for (const recorded_map& map : maps)
      if (map.prompt >= first && map.prompt < last) work.add(map.view());
    return work;
  }
};

TEST(merge, of_parts_is_the_whole) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const parts p(seed);
    const blueprint whole = p.measured(0, 6).plan({});
    // 1. Left to right. 2. Right to left: associative. 3. Starting from nothing.
    profiler<> left = p.measured(0, 2), middle = p.measured(2, 5), right = p.measured(5, 6);
    profiler<> a = left, b = middle, c(p.shape, p.rules, p.options);
    a.merge(middle);
    a.merge(right);
    b.merge(right);
    left.merge(b);
    c.merge(a);
    ASSERT_EQ(a.plan({}), whole);
    ASSERT_EQ(left.plan({}), whole);
    ASSERT_EQ(c.plan({}), whole);
  }
}

TEST(merge, is_the_same_every_time) {
  random_source random(4);
  const model_shape shape{2, 4, 2, 8};
  const std::vector<recorded_map> maps = random_maps(random, shape, 4, 1);
  recorded_source first{shape, &maps}, second{shape, &maps};
  EXPECT_EQ(profile(first, {}), profile(second, {}));
}

TEST(merge, refuses_what_does_not_belong_together) {
  const parts p(1);
  profiler<> work = p.measured(0, 3);
  parts longer(1), wider(1), other(1);
  longer.options.length = 51;
  wider.options.ladder.windows = {2, 5};
  other.options.ladder.windows = {2, 5, 12};
  EXPECT_THROW(work.merge(longer.measured(3, 6)), error);
  EXPECT_THROW(work.merge(wider.measured(3, 6)), error);
  EXPECT_THROW(work.merge(other.measured(3, 6)), error);  // as many candidates, but others
  EXPECT_THROW(work.merge(profiler<>(p.shape, p.rules, p.options)), error);  // nothing measured
}

TEST(recovery_table, has_an_empty_value) {
  recovery_table table({1, 1, 1, 8}, 1), empty;
  const resident_count count{3, 1, 4};
  const double lost = 0.5;
  table.add_prompt({&count, 1});
  table.add_map(0, 0, {&lost, 1}, 2);
  table.merge(empty);
  empty.merge(table);
  for (const recovery_table& t : {table, empty}) {
    EXPECT_EQ(t.recovery(0, 0, 0), 0.75);
    EXPECT_EQ(t.recovery(0, 0, 0, 0.25), 0.875);
    EXPECT_EQ(t.recovery(0, 0, 0, 0.75), 1.0);  // never above
    EXPECT_EQ(t.resident_rows(0), 3.0);
    EXPECT_EQ(t.resident_rows(0, 2), 5.0);
    EXPECT_EQ(t.forever_fraction(0), 0.25);
    EXPECT_EQ(t.prompts(), 1U);
  }
}

// The maps and prompts that were read leave nothing behind that grows with their number.
TEST(learned_mass, is_bounded_by_its_ids) {
  learned_mass mass({1, 1, 1, 8}, 1, 2);
  const std::vector<token> keys{
      {0, 9, {}}, {1, no_token_id, {}}, {2, 4, {}}, {3, 5, {}}, {4, 9, {}}};
  EXPECT_EQ(mass.slots(keys),
            (std::vector<std::uint32_t>{0, learned_mass::no_slot, 1, learned_mass::no_slot, 0}));
  EXPECT_EQ(std::vector<std::int32_t>(mass.ids().begin(), mass.ids().end()),
            (std::vector<std::int32_t>{9, 4}));
}

}  // namespace
}  // namespace headwise_tests
