// SPDX-License-Identifier: Apache-2.0
//
// The plans of a suite: each what its kind says, whatever else is in the suite, and none of maps
// that are another model's.

#include "suite_plans.hpp"

#include <algorithm>

#include "made_pipeline.hpp"

#include "headwise/blueprint/expected_rows.hpp"

namespace headwise_tests {
namespace {

using headwise::blueprint;
using headwise_tool::plan_family;
using headwise_tool::plan_kind;

class SuitePlans : public Pipeline {
 protected:
  SuitePlans() {
    EXPECT_EQ(record("text.txt", "maps").code, 0);
    facts_ = headwise_tool::load_engine({}, path("model.gguf"))->facts();
  }
  [[nodiscard]] headwise_tool::suite suite_of(const std::vector<plan_family>& plans) const {
    headwise_tool::suite what;
    what.model = path("model.gguf");
    what.windows = {2, 4, 8, 16, 32};
    what.plans = plans;
    return what;
  }
  [[nodiscard]] plan_family family(plan_kind kind, const char* maps = "maps") const {
    plan_family family;
    family.name = to_string(kind);
    family.kind = kind;
    family.window = 6;
    if (needs_profile(kind)) family.maps = {path(maps)};
    return family;
  }
  [[nodiscard]] std::optional<blueprint> plan(const headwise_tool::suite& what,
                                              const plan_family& family, double level) const {
    return headwise_tool::suite_plans(facts_, what, 48).make(family, level);
  }
  // That of a suite without others.
  [[nodiscard]] std::optional<blueprint> plan(const plan_family& family, double level) const {
    return plan(suite_of({family}), family, level);
  }

  headwise_tool::model_facts facts_;
};

std::vector<std::string> sorted_names(const blueprint& plan) {
  std::vector<std::string> names;
  for (const headwise::head_plan& head : plan.heads) names.push_back(head.name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST_F(SuitePlans, AreThoseOfTheirKindWhateverElseThereIs) {
  const plan_family two = family(plan_kind::two_classes);
  for (const plan_kind kind : {plan_kind::budget, plan_kind::budget_by_layer, plan_kind::target,
                               plan_kind::target_by_layer, plan_kind::shuffled})
    for (const double level : {0.3, 0.5, 0.7}) {
      const plan_family own = family(kind);
      const std::optional<blueprint> alone = plan(own, level);
      const std::optional<blueprint> among = plan(suite_of({two, own}), own, level);
      ASSERT_TRUE(alone);
      EXPECT_EQ(alone, among) << own.name << " " << level;
      EXPECT_EQ(plan(suite_of({own, two}), two, 0.8), plan(two, 0.8));
    }
}

TEST_F(SuitePlans, HoldWhatTheyWereAskedTo) {
  for (const plan_kind kind : {plan_kind::budget, plan_kind::budget_by_layer, plan_kind::shuffled,
                               plan_kind::window, plan_kind::sinks_window, plan_kind::heavy_hitters,
                               plan_kind::two_classes, plan_kind::random_classes}) {
    const std::optional<blueprint> made = plan(family(kind), 0.6);
    ASSERT_TRUE(made) << to_string(kind);
    double rows = 0.0;  // as the profile counted them, or as a rule's follow from it
    for (const headwise::head_plan& head : made->heads) rows += head.resident_fraction / 4.0;
    EXPECT_LE(rows, 0.6) << to_string(kind);
    EXPECT_GT(rows, 0.3) << to_string(kind);
  }
}

TEST_F(SuitePlans, ReachTheTargetThatTheyAreNamedAfter) {
  for (const plan_kind kind : {plan_kind::target, plan_kind::target_by_layer})
    for (const double level : {0.5, 0.8, 0.95}) {
      const std::optional<blueprint> made = plan(family(kind), level);
      ASSERT_TRUE(made);
      for (const headwise::head_plan& head : made->heads)
        EXPECT_GE(head.recovery, level) << to_string(kind);
    }
}

TEST_F(SuitePlans, ByLayerAreOneChoiceForItsHeads) {
  bool differ = false;
  const std::pair<plan_kind, plan_kind> kinds[] = {{plan_kind::budget_by_layer, plan_kind::budget},
                                                   {plan_kind::target_by_layer, plan_kind::target}};
  for (const auto& [by_layer, by_head] : kinds)
    for (const double level : {0.3, 0.5, 0.7, 0.9}) {
      const std::optional<blueprint> layers = plan(family(by_layer), level);
      const std::optional<blueprint> heads = plan(family(by_head), level);
      ASSERT_TRUE(layers && heads);
      for (const std::size_t first : {0U, 2U}) {
        EXPECT_EQ(layers->heads[first].policy, layers->heads[first + 1].policy) << level;
        differ = differ || heads->heads[first].policy != heads->heads[first + 1].policy;
      }
    }
  EXPECT_TRUE(differ);
}

// 24 of 48 rows.
TEST_F(SuitePlans, RulesAreWhatTheyAreCalled) {
  using headwise::make_spec, headwise::union_of;
  const headwise::local_window all(24), half(12), behind_sinks(20);
  const headwise::special_tokens sinks(headwise::token_classes::sink);
  const auto expect_policy = [&](plan_kind kind, const headwise::policy_spec& policy) {
    const std::optional<blueprint> made = plan(family(kind), 0.5);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->heads.front().policy, policy) << to_string(kind);
  };
  expect_policy(plan_kind::window, make_spec(all));
  expect_policy(plan_kind::sinks_window, make_spec(union_of(sinks, behind_sinks)));
  expect_policy(plan_kind::heavy_hitters, make_spec(union_of(half, headwise::heavy_hitters(12))));
}

// Four heads: global ones are 48 rows, others 4 sinks and a window of 6.
TEST_F(SuitePlans, TwoClassesGoToTheHeadsThatLoseMost) {
  const std::optional<blueprint> measured = plan(family(plan_kind::target), 0.5);
  const std::optional<blueprint> two = plan(family(plan_kind::two_classes), 0.65);
  ASSERT_TRUE(measured && two);
  EXPECT_EQ(headwise::expected_rows(*two, 48), (2 * 48 + 2 * 10) / 4.0);
  // A window of 8 behind the sinks loses less than one of 6, and most on the same heads, here.
  std::vector<std::pair<double, bool>> heads;
  for (std::size_t h = 0; h < 4; ++h)
    for (const headwise::candidate_recovery& c : measured->heads[h].candidates)
      if (c.name.rfind("special+local(8)", 0) == 0)
        heads.emplace_back(c.recovery,
                           two->heads[h].policy == headwise::make_spec(headwise::global{}));
  ASSERT_EQ(heads.size(), 4U);
  std::sort(heads.begin(), heads.end());
  EXPECT_TRUE(heads[0].second && heads[1].second);
  const std::optional<blueprint> drawn = plan(family(plan_kind::random_classes), 0.65);
  ASSERT_TRUE(drawn);
  EXPECT_EQ(sorted_names(*drawn), sorted_names(*two));
}

TEST_F(SuitePlans, ShuffledOnesAreTheBudgetsOnOtherHeads) {
  const std::optional<blueprint> budget = plan(family(plan_kind::budget), 0.5);
  ASSERT_TRUE(budget);
  bool moved = false, differ = false;
  plan_family shuffled = family(plan_kind::shuffled);
  const std::optional<blueprint> first = plan(shuffled, 0.5);
  for (shuffled.seed = 1; shuffled.seed < 8; ++shuffled.seed) {
    const std::optional<blueprint> made = plan(shuffled, 0.5);
    ASSERT_TRUE(made);
    EXPECT_EQ(sorted_names(*made), sorted_names(*budget));
    for (std::size_t h = 0; h < 4; ++h) {
      moved = moved || made->heads[h].policy != budget->heads[h].policy;
      differ = differ || made->heads[h].policy != first->heads[h].policy;
    }
  }
  EXPECT_TRUE(moved);
  EXPECT_TRUE(differ);
}

TEST_F(SuitePlans, AreNoneWhereTheSmallestHoldsMore) {
  for (const plan_kind kind :
       {plan_kind::budget, plan_kind::budget_by_layer, plan_kind::shuffled, plan_kind::window,
        plan_kind::sinks_window, plan_kind::two_classes, plan_kind::random_classes})
    EXPECT_EQ(plan(family(kind), 0.01), std::nullopt) << to_string(kind);
}

TEST_F(SuitePlans, RefuseMapsOfAnotherModel) {
  made_model deeper;
  deeper.layers = 3;
  folder_.write("deeper.gguf", deeper.file().bytes());
  ASSERT_EQ(run_headwise({"record", "--model", path("deeper.gguf"), "--text", path("text.txt"),
                          "--out", path("other"), "--prompts", "1", "--length", "48"})
                .code,
            0);
  for (const plan_kind kind : {plan_kind::budget, plan_kind::target, plan_kind::two_classes}) {
    const plan_family foreign = family(kind, "other");
    expect_error(headwise::error_code::shape_mismatch,
                 {path("other"), path("model.gguf"), "layers", "3", "2"},
                 [&] { (void)plan(foreign, 0.5); });
    expect_error(headwise::error_code::shape_mismatch, {path("other")}, [&] {
      (void)plan(suite_of({family(kind), foreign}), foreign, 0.5);
    });
  }
  facts_.fingerprint.name = "another";
  expect_error(headwise::error_code::shape_mismatch, {"maps", "another", "made"},
               [&] { (void)plan(family(plan_kind::budget), 0.5); });
}

// The plans of one suite have one set of token rules.
TEST_F(SuitePlans, RefuseMapsWithOtherSinks) {
  ASSERT_EQ(run_headwise({"record", "--model", path("model.gguf"), "--text", path("text.txt"),
                          "--out", path("two sinks"), "--sinks", "2", "--length", "48"})
                .code,
            0);
  const plan_family other = family(plan_kind::budget, "two sinks");
  EXPECT_NO_THROW((void)plan(other, 0.5));
  for (const plan_kind kind : {plan_kind::budget, plan_kind::two_classes})
    expect_error(headwise::error_code::shape_mismatch, {path("two sinks"), "sinks"}, [&] {
      (void)plan(suite_of({family(kind), other}), other, 0.5);
    });
}

}  // namespace
}  // namespace headwise_tests
