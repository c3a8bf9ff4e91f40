// SPDX-License-Identifier: Apache-2.0
//
// From what was measured to a plan: the rule of choice, the learned ids, every aggregation,
// criterion and granularity, and what the blueprint says about it.

#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "headwise/io/blueprint_json.hpp"
#include "headwise/profile/profiler.hpp"
#include "support/recorded_maps.hpp"
#include "support/spec_rule.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

// As in recovery_test.cpp.
constexpr double recovery_bound = 1.0 / (1 << 27);

struct trial {
  model_shape shape;
  token_rules rules;
  std::vector<recorded_map> maps;
  profile_options options;

  explicit trial(std::uint32_t seed) {
    random_source random(seed);
    const std::uint32_t kv_heads = random.between(1, 3);
    shape = {random.between(1, 3), kv_heads * random.between(1, 3), kv_heads, 8};
    rules.sink_count = random.below(4);
    maps = random_maps(random, shape, random.between(1, 3), rules.sink_count);
    options.measure.length = random.between(1, 60);
    options.measure.ladder.windows = {2, 3, 5, 9, 15, 30};
    options.measure.max_tracked_ids = random.one_in(4) ? 3 : 100;
    options.classify.recovery_target = 0.3 + 0.7 * random.below(101) / 100.0;
    options.classify.max_learned_ids = random.below(5);
    options.classify.aggregation = static_cast<group_aggregation>(random.below(3));
    options.classify.criterion = static_cast<recovery_criterion>(random.below(2));
    options.classify.granularity = static_cast<plan_granularity>(random.below(2));
  }
  [[nodiscard]] blueprint plan() const {
    recorded_source source{shape, &maps};
    return profile(source, rules, {}, options);
  }
  // The group's recovery under the plan's own policy, by the oracle.
  [[nodiscard]] double naive_group_recovery(head_id head, const policy_spec& spec) const {
    const std::uint32_t group = shape.query_heads / shape.kv_heads;
    double least = 1.0, most = 0.0, sum = 0.0;
    for (std::uint32_t i = 0; i < group; ++i) {
      const double recovery =
          naive_recovery(maps, head.layer, head.kv_head * group + i, rule_of(spec));
      least = std::min(least, recovery);
      most = std::max(most, recovery);
      sum += recovery;
    }
    const group_aggregation how = options.classify.aggregation;
    return how == group_aggregation::worst ? least
           : how == group_aggregation::max ? most
                                           : sum / group;
  }
  // The kept mass that the target asks for: |A - A_renormalised|_1 = 2 (1 - mass) <= 1 - T.
  [[nodiscard]] double required() const {
    const double target = options.classify.recovery_target;
    return options.classify.criterion == recovery_criterion::mass ? target
                                                                  : 1.0 - (1.0 - target) / 2;
  }
};

template <class Fn>
void for_each_head(const blueprint& plan, Fn&& fn) {
  for (std::uint32_t layer = 0; layer < plan.shape.layers; ++layer)
    for (std::uint32_t head = 0; head < plan.shape.kv_heads; ++head)
      fn(head_id{layer, head}, plan.head({layer, head}));
}

const candidate_recovery& chosen(const head_plan& head) {
  const auto found = std::find_if(
      head.candidates.begin(), head.candidates.end(),
      [&](const auto& c) { return head.name == c.name || head.name.rfind(c.name + "@", 0) == 0; });
  if (found == head.candidates.end()) throw std::logic_error("no candidate " + head.name);
  return *found;
}

TEST(plan, says_of_its_policies_what_the_predicate_says) {
  std::size_t with_ids = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const trial t(seed);
    for_each_head(t.plan(), [&](head_id id, const head_plan& head) {
      ASSERT_NEAR(head.recovery, t.naive_group_recovery(id, head.policy), recovery_bound)
          << "seed " << seed << " " << to_string(id) << " " << head.name;
      const token_count length = t.options.measure.length;
      ASSERT_NEAR(head.resident_fraction * length,
                  naive_rows(t.maps, rule_of(head.policy), length, t.rules.sink_count), 1e-9)
          << "seed " << seed << " " << to_string(id) << " " << head.name;
      with_ids += head.name.find("+ids(") != std::string::npos;
    });
  }
  EXPECT_GT(with_ids, 50U);  // the case that needs care did occur
}

TEST(plan, takes_the_cheapest_candidate_that_passes) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const trial t(seed);
    const double required = t.required();
    const blueprint plan = t.plan();
    const bool by_layer = t.options.classify.granularity == plan_granularity::layer;
    for_each_head(plan, [&](head_id id, const head_plan& head) {
      // 1. It passes. 2. No candidate that passes is cheaper, and none before it is as cheap.
      ASSERT_GE(head.recovery, required);
      const candidate_recovery& mine = chosen(head);
      ASSERT_EQ(mine.recovery, head.recovery);
      ASSERT_EQ(mine.resident_fraction, head.resident_fraction);
      for (const candidate_recovery& other : head.candidates) {
        const std::size_t at = static_cast<std::size_t>(&other - head.candidates.data());
        double recovery = other.recovery;
        if (by_layer)
          for (std::uint32_t h = 0; h < plan.shape.kv_heads; ++h)
            recovery = std::min(recovery, plan.head({id.layer, h}).candidates[at].recovery);
        if (recovery < required) continue;
        ASSERT_GE(other.resident_fraction, mine.resident_fraction) << other.name;
        if (&other < &mine) {
          ASSERT_GT(other.resident_fraction, mine.resident_fraction);
        }
      }
      // 3. global is among them and recovers all. 4. By layer, all heads share one policy.
      ASSERT_EQ(head.candidates.back().name, "global");
      ASSERT_EQ(head.candidates.back().recovery, 1.0);
      if (by_layer) {
        ASSERT_EQ(head.policy, plan.head({id.layer, 0}).policy);
      }
      // 5. No more ids than asked for.
      for (const policy_spec& part : head.policy.parts)
        ASSERT_LE(part.ids.size(), t.options.classify.max_learned_ids);
    });
  }
}

TEST(plan, gives_each_policy_one_name_and_each_name_one_policy) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::map<std::string, policy_spec> by_name;
    const blueprint plan = trial(seed).plan();
    for (const head_plan& head : plan.heads) {
      const auto [at, fresh] = by_name.emplace(head.name, head.policy);
      ASSERT_EQ(at->second, head.policy) << head.name;
    }
    for (const auto& [name, policy] : by_name)
      for (const auto& [other, same] : by_name)
        if (name != other) {
          ASSERT_NE(policy, same) << name << " and " << other;
        }
  }
}

TEST(plan, passes_global_where_all_must_be_kept) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    trial t(seed);
    t.options.classify.recovery_target = 1.0;
    const blueprint plan = t.plan();
    for (const head_plan& head : plan.heads) ASSERT_EQ(head.recovery, 1.0);
  }
}

TEST(plan, answers_for_any_target_without_the_maps) {
  const trial t(5);
  profiler<> work(t.shape, t.rules, t.options.measure);
  for (const recorded_map& map : t.maps) work.add(map.view());
  double last = 0.0;
  for (const double target : {0.5, 0.8, 0.95, 1.0}) {
    classify_options options = t.options.classify;
    options.recovery_target = target;
    trial again = t;
    again.options.classify = options;
    EXPECT_EQ(work.plan(options), again.plan());
    double rows = 0.0;
    for (const head_plan& head : work.plan(options).heads) rows += head.resident_fraction;
    EXPECT_GE(rows, last);
    last = rows;
  }
}

// A file of a plan declares what its policies name, also where the rules had no classes.
TEST(plan, can_be_written_and_read_whatever_the_rules) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const blueprint plan = trial(seed).plan();
    std::stringstream file;
    write_blueprint(file, plan);
    ASSERT_EQ(read_blueprint(file), plan) << "seed " << seed;
    for (const token_class_rule& rule : plan.tokens.classes) ASSERT_TRUE(rule.ids.empty());
  }
}

TEST(plan, tells_where_it_came_from) {
  trial t(7);
  recorded_source source{t.shape, &t.maps};
  std::uint64_t calls = 0;
  const model_fingerprint model{"tiny", 10, "ab12"};
  const blueprint plan =
      profile(source, t.rules, model, t.options,
              [&](std::uint64_t maps, const attention_map_view&) { EXPECT_EQ(maps, ++calls); });
  EXPECT_EQ(calls, t.maps.size());
  EXPECT_EQ(plan.shape, t.shape);
  EXPECT_EQ(plan.model, model);
  EXPECT_EQ(plan.tokens.sink_count, t.rules.sink_count);
  EXPECT_EQ(plan.origin.recovery_target, t.options.classify.recovery_target);
  EXPECT_EQ(plan.origin.aggregation, t.options.classify.aggregation);
  EXPECT_EQ(plan.origin.criterion, t.options.classify.criterion);
  EXPECT_EQ(plan.origin.granularity, t.options.classify.granularity);
  EXPECT_EQ(plan.origin.prompts, t.maps.back().prompt + 1);
  std::uint64_t queries = 0;
  for (const recorded_map& map : t.maps)
    if (map.layer == 0 && map.query_head == 0) queries += map.queries;
  EXPECT_EQ(plan.origin.queries, queries);
  EXPECT_EQ(plan.origin.length, t.options.measure.length);
  EXPECT_EQ(plan.origin.tool, "headwise " HEADWISE_VERSION_STRING);
}

TEST(required_recovery, follows_the_criterion) {
  classify_options options;
  options.recovery_target = 0.9;
  EXPECT_EQ(required_recovery(options), 0.9);
  // |A - A_renormalised|_1 = 2 (1 - mass) <= 1 - T
  options.criterion = recovery_criterion::distance;
  EXPECT_DOUBLE_EQ(required_recovery(options), 0.95);
  for (const double target : {-0.1, 1.1, std::nan("")}) {
    options.recovery_target = target;
    EXPECT_THROW((void)required_recovery(options), error) << target;
  }
}

TEST(aggregate, is_worst_mean_or_max) {
  const std::vector<double> recoveries{0.5, 1.0, 0.75};
  EXPECT_EQ(aggregate(recoveries, group_aggregation::worst), 0.5);
  EXPECT_EQ(aggregate(recoveries, group_aggregation::mean), 0.75);
  EXPECT_EQ(aggregate(recoveries, group_aggregation::max), 1.0);
}

TEST(cheapest, breaks_ties_by_order_and_needs_a_pass) {
  const std::vector<offer> offers{
      {0.5, 1.0, 0.0}, {0.95, 8.0, 0.0}, {1.0, 8.0, 0.0}, {1.0, 9.0, 0.0}};
  EXPECT_EQ(cheapest(offers, 0.4), 0U);
  EXPECT_EQ(cheapest(offers, 0.95), 1U);  // reached is passed; the first of equals
  EXPECT_EQ(cheapest(offers, 0.96), 2U);
  EXPECT_EQ(cheapest(offers, 1.1), std::nullopt);
}

// Four tokens with the ids 5, 6, 5, 7; one row each. By hand:
//   lost at window 1: query 1: 5 -> 0.5; query 2: 5 -> 0.25, 6 -> 0.5; query 3: 5 -> 0.25, 6 ->
//   0.25
TEST(learned_ids, go_by_mass_for_each_row) {
  const std::vector<token> keys{{0, 5, {}}, {1, 6, {}}, {2, 5, {}}, {3, 7, {}}};
  const std::vector<recorded_map> maps{make_map(keys, {1, 0, 0, 0,             //
                                                       0.5F, 0.5F, 0, 0,       //
                                                       0.25F, 0.5F, 0.25F, 0,  //
                                                       0.125F, 0.25F, 0.125F, 0.5F})};
  profile_options options;
  options.measure.use_ladder = false;
  options.measure.candidates = {{"own", make_spec(special_tokens(token_classes::none)), true}};
  const auto plan_at = [&](double target, std::size_t most = 16) {
    recorded_source source{{1, 1, 1, 8}, &maps};
    options.classify.recovery_target = target;
    options.classify.max_learned_ids = most;
    return profile(source, {}, {}, options).heads.front();
  };
  const auto with = [](std::vector<std::int32_t> ids) {
    return make_spec(special_tokens(token_classes::none, std::move(ids)));
  };
  // Nothing to learn: (1 + 0.5 + 0.25 + 0.5) / 4.
  EXPECT_EQ(plan_at(0.5625).policy, with({}));
  EXPECT_EQ(plan_at(0.5625).name, "own");
  EXPECT_EQ(plan_at(0.5625).recovery, 0.5625);
  EXPECT_EQ(plan_at(0.5625).resident_fraction, 0.25);
  // 6 brings 0.75 for one row, 5 brings 1.0 for two: 6 first.
  EXPECT_EQ(plan_at(0.75).policy, with({6}));
  EXPECT_EQ(plan_at(0.75).name, "own+ids(1)@0.0");
  EXPECT_EQ(plan_at(0.75).recovery, 0.75);
  EXPECT_EQ(plan_at(0.75).resident_fraction, 0.5);
  EXPECT_EQ(plan_at(0.75).forever_fraction, 0.25);
  // Both: everything, at the price of global; the first of equals.
  EXPECT_EQ(plan_at(0.76).policy, with({5, 6}));
  EXPECT_EQ(plan_at(0.76).recovery, 1.0);
  EXPECT_EQ(plan_at(0.76).candidates.front().name, "own+ids(2)");
  // With one id at most the candidate fails, and says at what.
  EXPECT_EQ(plan_at(0.76, 1).name, "global");
  EXPECT_EQ(plan_at(0.76, 1).candidates.front().recovery, 0.75);
  // An id that was not tracked is not learned, and what is said stays true.
  options.measure.max_tracked_ids = 1;
  EXPECT_EQ(plan_at(0.76).candidates.front().name, "own+ids(1)");
  EXPECT_EQ(plan_at(0.76).candidates.front().recovery, 0.8125);
}

// At a stated length of two tokens id 7, which the prompt has behind them, costs no row.
TEST(learned_ids, are_not_taken_for_free_where_the_stated_length_ends_before_them) {
  const std::vector<token> keys{{0, 5, {}}, {1, 6, {}}, {2, 7, {}}, {3, 8, {}}};
  const std::vector<recorded_map> maps{
      make_map(keys, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0.5F, 0, 0.25F, 0.25F})};
  recorded_source source{{1, 1, 1, 8}, &maps};
  profile_options options;
  options.measure.length = 2;
  options.measure.use_ladder = false;
  options.measure.candidates = {{"own", make_spec(special_tokens(token_classes::none)), true}};
  options.classify.recovery_target = 0.9;
  options.classify.max_learned_ids = 1;
  const candidate_recovery own = profile(source, {}, {}, options).heads.front().candidates.front();
  EXPECT_EQ(own.name, "own+ids(1)");
  EXPECT_EQ(own.recovery, 1.0 - 0.25 / 4);
}

// Two query heads share a KV head: one could do with id 4 but passes without, the other needs id 1.
TEST(learned_ids, serve_the_worst_query_head) {
  const std::vector<token> keys{{0, 4, {}}, {1, 1, {}}, {2, 2, {}}, {3, 3, {}}};
  const std::vector<recorded_map> maps{
      make_map(keys, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0.125F, 0, 0, 0.875F}, 0, 0),
      make_map(keys, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0.5F, 0.5F, 0, 0, 0.5F, 0, 0.5F}, 0, 1)};
  recorded_source source{{1, 2, 1, 8}, &maps};
  profile_options options;
  options.measure.use_ladder = false;
  options.measure.candidates = {{"own", make_spec(special_tokens(token_classes::none)), true}};
  const head_plan head = profile(source, {}, {}, options).heads.front();
  EXPECT_EQ(head.policy, make_spec(special_tokens(token_classes::none, {1})));
  EXPECT_EQ(head.recovery, 1.0 - 0.125 / 4);
}

TEST(ladder, is_in_order_and_ends_with_global) {
  ladder_options options;
  options.windows = {8, 4, 8, 64};
  options.window_fractions = {0.3};
  std::vector<std::string> names;
  for (const candidate& c : make_ladder(options, 20)) {
    names.push_back(c.name);
    EXPECT_EQ(c.learns_ids, c.name.rfind("special+p", 0) != 0 && c.name != "global") << c.name;
    EXPECT_NO_THROW((void)make_policy<>(c.policy));
  }
  // 0.3 * 20 = 6; 64 reaches the length and is left out.
  EXPECT_EQ(names, (std::vector<std::string>{"special", "special+punctuation", "special+local(4)",
                                             "special+punctuation+local(4)", "special+local(6)",
                                             "special+punctuation+local(6)", "special+local(8)",
                                             "special+punctuation+local(8)", "global"}));
  options.learn_ids = false;
  for (const candidate& c : make_ladder(options, 20)) EXPECT_FALSE(c.learns_ids);
}

TEST(ladder, refuses_what_is_no_window) {
  ladder_options options;
  options.windows = {0};
  EXPECT_THROW((void)make_ladder(options, 20), error);
  for (const double fraction : {0.0, -1.0, 1.5, std::nan("")})
    EXPECT_THROW((void)window_from_fraction(fraction, 20), error);
  EXPECT_EQ(window_from_fraction(0.3, 512), 154U);  // 153.6
  EXPECT_EQ(window_from_fraction(0.5, 5), 3U);      // halves up
  EXPECT_EQ(window_from_fraction(1e-9, 5), 1U);     // never empty
  EXPECT_EQ(window_from_fraction(1.0, forever), forever);
}

TEST(candidates, have_unique_names_and_known_policies) {
  const trial t(1);
  const auto plan_with = [&](std::vector<candidate> candidates) {
    trial again = t;
    again.options.measure.candidates = std::move(candidates);
    return again.plan();
  };
  EXPECT_THROW((void)plan_with({{"special", make_spec(local_window(2))}}), error);
  EXPECT_THROW((void)plan_with({{"x", {"no_such_kind", {}, {}, {}}}}), error);
  // The caller's own global is not doubled.
  const blueprint plan = plan_with({{"everything", make_spec(global{})}});
  EXPECT_EQ(plan.heads.front().candidates.back().name, "everything");
}

// A plan is for a cache of the same Policies: what no such cache can hold is refused before a map
// is read, also what only the ids of its own make of a candidate.
TEST(candidates, are_policies_with_their_ids_too) {
  using bare = policy_list<global, local_window, special_tokens>;
  measure_options options;
  options.use_ladder = false;
  const auto refused = [&](const candidate& c) {
    options.candidates = {c};
    try {
      const profiler<bare> work({1, 1, 1, 8}, {}, options);
    } catch (const error& e) {
      EXPECT_NE(std::string(e.what()).find("candidate 'own'"), std::string::npos) << e.what();
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused({"own", make_spec(local_window(4))}));
  EXPECT_TRUE(refused({"own", make_spec(local_window(4)), true}));
  EXPECT_FALSE(refused({"own", make_spec(special_tokens(token_classes::sink)), true}));
  EXPECT_FALSE(refused({"own", make_spec(global{}), true}));
  EXPECT_TRUE(refused({"own", {"no_such_kind", {}, {}, {}}}));
  // The ladder's rungs are unions, at a stated length and at that of the first prompt.
  for (const token_count length : {0U, 50U}) {
    measure_options ladder;
    ladder.length = length;
    EXPECT_THROW((profiler<bare>({1, 1, 1, 8}, {}, ladder)), error) << length;
  }
}

}  // namespace
}  // namespace headwise_tests
