// SPDX-License-Identifier: Apache-2.0
//
// Candidates that rank, from the ladder to the plan. What they keep is tested in
// ranked_simulation_test.cpp, what they lose in recovery_test.cpp.

#include <cmath>

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

[[nodiscard]] policy_spec hitters_behind(token_count window, const heavy_hitters& pool) {
  return make_spec(union_of(local_window(window), pool));
}

// Four layers of three KV heads, two query heads each, every query recorded.
struct whole_maps {
  model_shape shape{4, 6, 3, 8};
  std::vector<recorded_map> maps;
  measure_options options;

  explicit whole_maps(std::uint32_t seed, std::size_t prompts = 3) {
    random_source random(seed);
    maps = random_maps(random, shape, prompts, 2, recorded_queries::all);
    options.length = 40;
    options.use_ladder = false;
    options.candidates = {{"one", hitters_behind(2, heavy_hitters(1))},
                          {"many", hitters_behind(5, heavy_hitters(9))},
                          {"share", hitters_behind(3, heavy_hitters(0.25, 100))}};
  }
  [[nodiscard]] profiler<> measured(std::uint64_t first, std::uint64_t last) const {
    profiler<> work(shape, {2, {}}, options);
    for (const recorded_map& map : maps)
      if (map.prompt >= first && map.prompt < last) work.add(map.view());
    return work;
  }
};

void expect_same(const profiler<>& a, const profiler<>& b, double bound) {
  for (std::uint32_t layer = 0; layer < 4; ++layer)
    for (std::uint32_t head = 0; head < 6; ++head)
      for (std::size_t c = 0; c < a.sums().table.candidates(); ++c)
        ASSERT_NEAR(a.sums().table.recovery(layer, head, c),
                    b.sums().table.recovery(layer, head, c), bound);
  for (std::size_t c = 0; c < a.sums().table.candidates(); ++c)
    ASSERT_EQ(a.sums().table.resident_rows(c), b.sums().table.resident_rows(c));
}

TEST(ranked_candidates, are_measured_alike_in_any_order_of_heads) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    whole_maps shuffled(seed);
    whole_maps sorted = shuffled;
    std::sort(sorted.maps.begin(), sorted.maps.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.prompt, a.query_head, a.layer) <
             std::tuple(b.prompt, b.query_head, b.layer);
    });
    expect_same(shuffled.measured(0, 3), sorted.measured(0, 3), 0.0);
  }
}

TEST(ranked_candidates, merge_like_others) {
  const whole_maps t(7);
  const profiler<> all = t.measured(0, 3), rest = t.measured(1, 3);
  profiler<> first = t.measured(0, 1);
  first.merge(rest);
  expect_same(first, all, 1e-15);
  profiler<> empty(t.shape, {2, {}}, t.options);
  empty.merge(all);
  expect_same(empty, all, 0.0);
}

TEST(ranked_candidates, have_a_pool_cut_for_the_stated_length) {
  whole_maps t(8);
  t.options.length = 20;
  const profiler<> work = t.measured(0, 3);
  // Windows and pools are full at 20 tokens; a quarter of 20 is 5.
  EXPECT_EQ(work.sums().table.resident_rows(0), 2.0 + 1.0);
  EXPECT_EQ(work.sums().table.resident_rows(1), 5.0 + 9.0);
  EXPECT_EQ(work.sums().table.resident_rows(2), 3.0 + 5.0);
}

[[nodiscard]] std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

// Without its first query.
[[nodiscard]] recorded_map late(recorded_map map) {
  map.queries -= 1;
  map.first_query += 1;
  map.weights.erase(map.weights.begin(),
                    map.weights.begin() + static_cast<std::ptrdiff_t>(map.keys.size()));
  return map;
}

TEST(ranked_candidates, need_a_prompt_of_which_every_query_is_known) {
  whole_maps t(12, 1);
  for (recorded_map& map : t.maps) map = late(map);
  const std::string text = refusal([&] { (void)t.measured(0, 1).plan({}); });
  EXPECT_NE(text.find("candidate 'one'"), std::string::npos) << text;
  EXPECT_NE(text.find("no prompt of which every query was recorded"), std::string::npos) << text;
  // Without such candidates the same maps will do.
  t.options.candidates = {{"none", hitters_behind(3, heavy_hitters(0))}};
  EXPECT_EQ(refusal([&] { (void)t.measured(0, 1).plan({}); }), "");
}

// Their pools hold nothing there, for all that is known: what a plain window of theirs loses is
// lost. In whole prompts beside they hold what they hold.
TEST(ranked_candidates, have_no_pool_in_prompts_of_which_queries_are_unknown) {
  std::size_t differ = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    whole_maps whole(seed), mixed = whole;
    for (recorded_map& map : mixed.maps)
      if (map.prompt != 1 && map.keys.size() > 1) map = late(map);
    whole_maps windows = mixed;
    for (std::size_t c = 0; c < 3; ++c)
      windows.options.candidates[c].policy = make_spec(local_window(c == 0 ? 2 : c == 1 ? 5 : 3));
    profiler<> expected = windows.measured(0, 1);
    const profiler<> pools = mixed.measured(0, 3), last = windows.measured(2, 3),
                     middle = whole.measured(1, 2);
    std::uint64_t queries[3] = {};
    for (const recorded_map& map : mixed.maps) queries[map.prompt] = map.queries;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::uint32_t layer = 0; layer < 4; ++layer)
        for (std::uint32_t head = 0; head < 6; ++head) {
          const auto part = [&](const profiler<>& of, std::size_t prompt) {
            return of.sums().table.recovery(layer, head, c) * static_cast<double>(queries[prompt]);
          };
          const double sum = part(expected, 0) + part(middle, 1) + part(last, 2);
          const double recovery = pools.sums().table.recovery(layer, head, c);
          ASSERT_NEAR(recovery, sum / static_cast<double>(queries[0] + queries[1] + queries[2]),
                      1e-7)
              << seed;
          differ += recovery < whole.measured(0, 3).sums().table.recovery(layer, head, c) - 1e-3;
        }
  }
  EXPECT_GT(differ, 500U);
}

TEST(ranked_candidates, learn_no_ids) {
  whole_maps t(10);
  t.options.candidates.front().learns_ids = true;
  for (const token_count length : {0U, 40U}) {
    t.options.length = length;
    const std::string text = refusal([&] { const profiler<> work(t.shape, {2, {}}, t.options); });
    EXPECT_NE(text.find("candidate 'one'"), std::string::npos) << text;
  }
}

// One head that always looks at token 3: heavy hitters of one row find it, a window does not.
TEST(ranked_candidates, win_where_the_head_looks_back_at_one_token) {
  std::vector<token> keys;
  for (position pos = 0; pos < 32; ++pos) keys.push_back({pos, static_cast<std::int32_t>(pos), {}});
  std::vector<float> weights(32 * 32, 0.0F);
  for (std::size_t query = 0; query < 32; ++query) {
    weights[query * 32 + query] = query < 4 ? 1.0F : 0.25F;
    if (query > 3) weights[query * 32 + 3] = 0.75F;
  }
  const recorded_map map = make_map(keys, weights);
  measure_options options;
  options.ladder.windows = {2, 4, 8, 16};
  options.ladder.learn_ids = false;
  const auto chosen = [&] {
    profiler<> work({1, 1, 1, 8}, {}, options);
    work.add(map.view());
    return work.plan({}).heads.front();
  };
  EXPECT_EQ(chosen().name, "global");
  options.ladder.heavy_hitters = {0.5, 0.0625};
  EXPECT_EQ(chosen().name, "special+punctuation+local(2)+frequent(0.0625)");
  EXPECT_EQ(chosen().recovery, 1.0);
  EXPECT_EQ(chosen().resident_fraction, 4.0 / 32);  // two of the window, two of the pool
  const auto pool = heavy_hitters::of_millionths(62'500, 2);
  EXPECT_EQ(chosen().policy,
            make_spec(union_of(special_tokens(token_classes::sink | token_classes::special |
                                              token_classes::punctuation),
                               local_window(2), pool)));
}

TEST(ladder, has_the_rung_of_frequent_tokens_where_asked) {
  ladder_options options;
  options.windows = {4, 12};
  options.heavy_hitters = {0.3, 1.0 / 3, 0.1, 0.3};
  std::vector<std::string> names;
  for (const candidate& c : make_ladder(options, 20)) {
    names.push_back(c.name);
    EXPECT_NO_THROW((void)make_policy<>(c.policy));
  }
  // Pools of 2, 6 and 7 rows; all stay below 20 tokens with either window.
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "special", "special+punctuation", "special+local(4)",
                "special+punctuation+local(4)", "special+punctuation+local(4)+frequent(0.1)",
                "special+punctuation+local(4)+frequent(0.3)",
                "special+punctuation+local(4)+frequent(0.333333)", "special+local(12)",
                "special+punctuation+local(12)", "special+punctuation+local(12)+frequent(0.1)",
                "special+punctuation+local(12)+frequent(0.3)",
                "special+punctuation+local(12)+frequent(0.333333)", "global"}));
  options.heavy_hitters = {0.4};  // 8 and 12 are all of it
  EXPECT_EQ(make_ladder(options, 20).size(), 2U + 3U + 2U + 1U);
  options.heavy_hitters = {1.0};
  EXPECT_EQ(make_ladder(options, 20).size(), 2U + 2U + 2U + 1U);
  for (const double fraction : {0.0, -1.0, 1.5, std::nan("")}) {
    options.heavy_hitters = {fraction};
    EXPECT_THROW((void)make_ladder(options, 20), error) << fraction;
  }
}

TEST(ranked_candidates, come_with_pools_as_large_as_their_windows) {
  ladder_options options;
  options.windows = {};
  options.even_pools = {9, 4, 10, 4, 300};
  const std::vector<candidate> ladder = make_ladder(options, 20);  // 10 and 10 are all of it
  ASSERT_EQ(ladder.size(), 2U + 2U + 1U);
  EXPECT_EQ(ladder[2].name, "special+local(4)+frequent(4)");
  EXPECT_EQ(ladder[3].name, "special+local(9)+frequent(9)");
  EXPECT_FALSE(ladder[3].learns_ids);
  EXPECT_EQ(ladder[3].policy, make_spec(union_of(special_tokens(options.special), local_window(9),
                                                 heavy_hitters(9))));
  for (const token_count odd : {token_count{19}, token_count{21}}) {
    options.even_pools = {10};
    EXPECT_EQ(make_ladder(options, odd).size(), odd == 19 ? 3U : 4U);
  }
  options.even_pools = {0};
  EXPECT_THROW((void)make_ladder(options, 20), error);
}

}  // namespace
}  // namespace headwise_tests
