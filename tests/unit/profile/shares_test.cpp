// SPDX-License-Identifier: Apache-2.0
//
// Shares of the heads, measured apart and joined, are what one profiler measures, to the last bit.

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/files.hpp"
#include "support/made_blueprint.hpp"
#include "support/shared_work.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

TEST(shares, joined_are_the_whole) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const shared_work work(seed);
    const profiler<> whole = work.measured({});
    for (std::uint32_t count = 1; count <= 9; ++count) {  // there are 6 KV heads
      const profiler<> joined = profiler<>::join(work.parts(count));
      ASSERT_EQ(joined.maps(), whole.maps());
      for (const double target : {0.5, 0.9, 0.99}) {
        classify_options options;
        options.recovery_target = target;
        ASSERT_EQ(text_of(joined.plan(options)), text_of(whole.plan(options)))
            << "seed " << seed << ", " << count << " shares";
      }
      classify_options within{.recovery_target = 0.0, .budget = 0.6};
      ASSERT_EQ(text_of(joined.plan(within)), text_of(whole.plan(within)));
    }
  }
}

TEST(shares, joined_can_go_on) {
  const shared_work work(1);
  profiler<> twice = work.measured({}), joined = profiler<>::join(work.parts(2));
  twice.merge(work.measured({}));
  joined.merge(work.measured({}));
  EXPECT_EQ(joined.plan({}), twice.plan({}));
  profiler<> half = work.measured({0, 2});
  half.merge(work.measured({0, 2}));
  std::vector<profiler<>> parts{half, work.measured({1, 2})};
  EXPECT_THROW((void)profiler<>::join(parts), error);  // of twice as many prompts
  parts[1].merge(work.measured({1, 2}));
  EXPECT_EQ(profiler<>::join(parts).plan({}), twice.plan({}));
}

TEST(shares, joined_measure_like_any_other) {
  const shared_work work(1);
  profiler<> twice = work.measured({}), joined = profiler<>::join(work.parts(2));
  twice.merge(work.measured({}));
  work.measure(joined);
  const recovery_table &table = joined.sums().table, &expected = twice.sums().table;
  const learned_mass &learned = joined.sums().learned, &expected_learned = twice.sums().learned;
  for (std::uint32_t head = 0; head < 4; ++head) {
    for (std::size_t c = 0; c < joined.candidates().size(); ++c)
      EXPECT_NEAR(table.lost_mass(2, head, c), expected.lost_mass(2, head, c), 1e-9);
    for (std::uint32_t slot = 0; slot < learned.ids().size(); ++slot)
      EXPECT_NEAR(learned.gain(slot, 2, head, 0), expected_learned.gain(slot, 2, head, 0), 1e-9);
  }
}

TEST(shares, hold_each_head_once) {
  const model_shape shape{3, 4, 2, 8};
  for (std::uint32_t count = 1; count < 9; ++count) {
    std::size_t all = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const held_heads heads(shape, {i, count});
      std::size_t next = 0;
      heads.for_each([&](std::uint32_t layer, std::uint32_t head) {
        EXPECT_EQ(heads.index(layer, head), next++);
        EXPECT_TRUE(heads.holds(layer, head / 2 * 2 + 1 - head % 2));  // the rest of the group
      });
      EXPECT_EQ(heads.size(), next);
      all += next;
    }
    EXPECT_EQ(all, 12U);
  }
}

TEST(shares, that_do_not_belong_together_are_refused) {
  const shared_work work(2), others(3);
  const auto refuses = [](error_code code, std::vector<profiler<>> parts) {
    expect_error(code, {"profiler.join"}, [&] { (void)profiler<>::join(parts); });
  };
  refuses(error_code::invalid_argument, {});
  refuses(error_code::shape_mismatch, {work.measured({1, 2}), work.measured({0, 2})});
  refuses(error_code::shape_mismatch, {work.measured({0, 2})});
  refuses(error_code::shape_mismatch, {work.measured({0, 2}), others.measured({1, 2})});
  shared_work same_but_for_ids = work;
  for (recorded_map& map : same_but_for_ids.maps)
    for (token& key : map.keys) key.id += 10;
  refuses(error_code::shape_mismatch, {work.measured({0, 2}), same_but_for_ids.measured({1, 2})});
  expect_error(error_code::missing, {"maps"}, [&] {
    (void)profiler<>::join(std::vector{work.measured({0, 2}), work.empty({1, 2})});
  });
  profiler<> amid = work.empty({1, 2});
  amid.add(work.first_map_of(amid));
  expect_error(error_code::missing, {"no map"}, [&] {
    (void)profiler<>::join(std::vector{work.measured({0, 2}), amid});
  });
  profiler<> half = work.measured({0, 2});
  expect_error(error_code::shape_mismatch, {"profiler.merge", "share"}, [&] {
    half.merge(work.measured({1, 2}));
  });
  expect_error(error_code::out_of_range, {"share of the heads", "2"}, [&] {
    (void)work.empty({2, 2});
  });
  expect_error(error_code::out_of_range, {"share of the heads"}, [&] { (void)work.empty({0, 0}); });
}

TEST(shares, take_only_their_maps) {
  const shared_work work(4);
  profiler<> first = work.empty({0, 2});
  EXPECT_DEATH(first.add(work.first_map_of(work.empty({1, 2}))), "another share");
}

}  // namespace
}  // namespace headwise_tests
