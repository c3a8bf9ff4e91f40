// SPDX-License-Identifier: Apache-2.0
//
// Measuring parts of a set apart and merging them gives what measuring the whole gives.

#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "headwise/io/blueprint_json.hpp"
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

  explicit parts(std::uint32_t seed, bool dyadic = true) {
    random_source random(seed);
    options.length = 50;
    options.ladder.windows = {2, 5, 11};
    maps = random_maps(random, shape, 6, rules.sink_count);
    if (!dyadic) return;
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

// Of weights whose sums do round: the same parts in the same order give the same bytes, whether the
// first part is merged into or starts from nothing.
TEST(merge, is_the_same_every_time) {
  const parts p(4, false);
  const auto merged = [&](profiler<> work, std::uint64_t first) {
    for (std::uint64_t prompt = first; prompt < 6; ++prompt)
      work.merge(p.measured(prompt, prompt + 1));
    std::ostringstream text;
    write_blueprint(text, work.plan({}));
    return text.str();
  };
  const std::string once = merged(p.measured(0, 1), 1);
  EXPECT_EQ(merged(p.measured(0, 1), 1), once);
  EXPECT_EQ(merged(p.measured(0, 0), 0), once);
}

TEST(merge, of_an_empty_profiler_changes_nothing) {
  const parts p(3);
  const profiler<> empty = p.measured(0, 0);
  profiler<> left = p.measured(0, 6), right = empty, both = empty;
  left.merge(empty);
  right.merge(left);
  both.merge(empty);
  EXPECT_EQ(left.plan({}), p.measured(0, 6).plan({}));
  EXPECT_EQ(right.plan({}), left.plan({}));
  EXPECT_EQ(both.maps(), 0U);
}

// Whoever merges first and measures afterwards numbers prompts as anybody does, from 0.
TEST(merge, into_an_empty_profiler_leaves_it_open_for_any_prompt) {
  const parts p(6);
  profiler<> work = p.measured(0, 0);
  work.merge(p.measured(4, 6));
  EXPECT_NO_THROW((void)work.plan({}));  // what was merged is whole
  for (const recorded_map& map : p.maps)
    if (map.prompt < 4) work.add(map.view());
  EXPECT_EQ(work.maps(), p.maps.size());
  profiler<> other_way = p.measured(4, 6);
  other_way.merge(p.measured(0, 4));
  EXPECT_EQ(work.plan({}), other_way.plan({}));
  // A prompt in hand is still asked for whole.
  profiler<> amid = p.measured(0, 0);
  amid.merge(p.measured(4, 6));
  amid.add(p.maps.front().view());
  EXPECT_THROW((void)amid.plan({}), error);
  EXPECT_THROW(amid.merge(p.measured(5, 6)), error);
}

TEST(merge, counts_the_maps_of_both) {
  const parts p(2);
  profiler<> work = p.measured(0, 2);
  work.merge(p.measured(2, 6));
  EXPECT_EQ(work.maps(), p.maps.size());
}

TEST(merge, refuses_what_does_not_belong_together) {
  const parts p(1);
  profiler<> work = p.measured(0, 3);
  parts longer(1), wider(1), other(1), later(1), ruled(1);
  longer.options.length = 51;
  wider.options.ladder.windows = {2, 5};
  other.options.ladder.windows = {2, 5, 12};
  later.options.skip_queries = 1;
  ruled.rules.sink_count = 1;
  profiler<> empty = p.measured(0, 0);
  // other: as many candidates, but others
  for (const parts* strange : {&longer, &wider, &other, &later, &ruled}) {
    EXPECT_THROW(work.merge(strange->measured(3, 6)), error);
    EXPECT_THROW(empty.merge(strange->measured(3, 6)), error);
    EXPECT_THROW(work.merge(strange->measured(0, 0)), error);
  }
  profiler<> amid(p.shape, p.rules, p.options);
  amid.add(p.maps.front().view());
  EXPECT_THROW(work.merge(amid), error);
  EXPECT_THROW(empty.merge(amid), error);
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
    EXPECT_EQ(t.harm(0, 0, 0), 1.0 / 256);
    EXPECT_EQ(t.harm(0, 0, 0, 0.25), 1.0 / 4096);
    EXPECT_EQ(t.harm(0, 0, 0, 0.75), 0.0);
    EXPECT_EQ(t.resident_rows(0), 3.0);
    EXPECT_EQ(t.resident_rows(0, 2), 5.0);
    EXPECT_EQ(t.forever_fraction(0), 0.25);
    EXPECT_EQ(t.prompts(), 1U);
  }
}

// A quarter lost in both prompts, or all that two of eight queries look at.
TEST(recovery_table, knows_what_one_prompt_loses_from_what_all_do) {
  const resident_count count{3, 1, 4};
  recovery_table both({1, 2, 1, 8}, 1), twice;
  for (const std::uint64_t queries : {6U, 2U}) {
    recovery_table of_one({1, 2, 1, 8}, 1);
    const double everywhere = 0.25 * static_cast<double>(queries), once = queries == 2 ? 2.0 : 0.0;
    of_one.add_prompt({&count, 1});
    of_one.add_map(0, 0, {&everywhere, 1}, queries);
    of_one.add_map(0, 1, {&once, 1}, queries);
    both.merge(of_one);
  }
  EXPECT_EQ(both.recovery(0, 0, 0), 0.75);
  EXPECT_EQ(both.recovery(0, 1, 0), 0.75);
  EXPECT_EQ(both.harm(0, 0, 0), 1.0 / 256);
  EXPECT_EQ(both.harm(0, 1, 0), 0.5);
  EXPECT_EQ(both.harm(0, 1, 0, 1.0), 0.5 / 16);
  twice.merge(both);
  twice.merge(both);
  EXPECT_EQ(twice.harm(0, 1, 0), 0.5);
}

TEST(recovery_table, knows_its_heads_and_candidates) {
  const recovery_table table({2, 3, 1, 8}, 2);
  EXPECT_EQ(table.queries(1, 2), 0U);
  EXPECT_DEATH((void)table.queries(2, 0), "no such query head");
  EXPECT_DEATH((void)table.queries(0, 3), "no such query head");  // not that of the next layer
  volatile std::size_t beyond = 2;  // the compiler must not know, or it warns of what is tested
  EXPECT_DEATH(static_cast<void>(table.lost_mass(0, 0, beyond)), "no such candidate");
  EXPECT_DEATH(static_cast<void>(table.forever_fraction(beyond)), "no such candidate");
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

// Of an id that a full part met and dropped, nobody knows the rows: it may not be half counted.
TEST(learned_mass, merges_no_id_that_a_full_part_may_have_dropped) {
  const auto part = [](std::initializer_list<std::int32_t> ids) {
    learned_mass mass({1, 1, 1, 8}, 1, 2);
    for (const std::int32_t id : ids)
      for (const std::uint32_t slot : mass.slots(std::vector<token>{{0, id, {}}}))
        if (slot != learned_mass::no_slot) mass.add_cost(slot, 0, {1, 1});
    return mass;
  };
  const auto rows_of = [](const learned_mass& mass) {
    std::map<std::int32_t, std::uint64_t> rows;
    for (std::uint32_t slot = 0; slot < mass.ids().size(); ++slot)
      rows[mass.ids()[slot]] = mass.cost(slot, 0).rows;
    return rows;
  };
  using expected = std::map<std::int32_t, std::uint64_t>;
  learned_mass known = part({7, 5}), full = part({4, 5, 7}), more = part({7, 5});
  learned_mass other_way = full;
  other_way.merge(known);
  known.merge(full);
  EXPECT_EQ(rows_of(known), (expected{{4, 1}, {5, 2}}));
  EXPECT_EQ(rows_of(other_way), (expected{{4, 1}, {5, 2}}));
  known.merge(more);  // 7 was dropped: it does not come back with less than its rows
  EXPECT_EQ(rows_of(known), (expected{{4, 1}, {5, 3}}));
  EXPECT_EQ(known.slots(std::vector<token>{{0, 7, {}}}).front(), learned_mass::no_slot);
  more.merge(part({5}));  // full, but of nothing dropped
  EXPECT_EQ(rows_of(more), (expected{{5, 2}, {7, 1}}));
}

}  // namespace
}  // namespace headwise_tests
