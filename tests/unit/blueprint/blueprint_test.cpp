// SPDX-License-Identifier: Apache-2.0
#include "headwise/blueprint/blueprint.hpp"

#include <gtest/gtest.h>

namespace headwise_tests {
namespace {

using namespace headwise;

TEST(blueprint, finds_the_plan_of_a_head) {
  blueprint plan = uniform_blueprint({3, 4, 2, 8}, make_spec(global{}));
  plan.head({2, 1}).recovery = 0.5;
  EXPECT_EQ(plan.index({2, 1}), 5U);
  EXPECT_EQ(plan.heads[5].recovery, 0.5);
}

// A head that the model does not have is a caller's bug, also where it would be another layer's.
TEST(blueprint, has_no_plan_of_a_head_that_there_is_not) {
  blueprint plan = uniform_blueprint({3, 4, 2, 8}, make_spec(global{}));
  EXPECT_DEATH((void)plan.index({0, 2}), "no such head");
  EXPECT_DEATH((void)plan.index({3, 0}), "no such head");
  plan.heads.pop_back();
  EXPECT_DEATH((void)plan.head({2, 1}), "has no plan");
}

TEST(uniform_blueprint, is_named_after_its_policy) {
  const auto name = [](const policy_spec& policy, std::string given = {}) {
    return uniform_blueprint({1, 1, 1, 8}, policy, std::move(given)).heads.front().name;
  };
  EXPECT_EQ(name(make_spec(global{})), "global");
  EXPECT_EQ(name(make_spec(local_window(64))), "local_window(window 64)");
  EXPECT_EQ(name(make_spec(union_of(special_tokens(token_classes::sink, {3, 5}), local_window(8)))),
            "special_tokens(classes 1, 2 ids)+local_window(window 8)");
  EXPECT_EQ(name(make_spec(local_window(64)), "window"), "window");
}

// 1. Of global everything is known. 2. Of another policy nothing was measured.
TEST(uniform_blueprint, claims_no_measurement) {
  const head_plan all = uniform_blueprint({1, 1, 1, 8}, make_spec(global{})).heads.front();
  EXPECT_EQ(all.recovery, 1.0);
  EXPECT_EQ(all.forever_fraction, 1.0);
  const head_plan some =
      uniform_blueprint({1, 1, 1, 8}, make_spec(special_tokens(token_classes::special)))
          .heads.front();
  EXPECT_EQ(some.recovery, 0.0);
  EXPECT_EQ(some.forever_fraction, std::nullopt);
}

}  // namespace
}  // namespace headwise_tests
