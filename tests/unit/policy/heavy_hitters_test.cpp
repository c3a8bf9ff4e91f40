// SPDX-License-Identifier: Apache-2.0
//
// heavy_hitters as a policy: its numbers, its place in unions, its form as data.
#include <gtest/gtest.h>

#include "headwise/policy/spec.hpp"
#include "support/every_nth.hpp"

namespace headwise_tests {
namespace {

using headwise::forever;
using headwise::heavy_hitters;
using headwise::local_window;
using headwise::make_policy;
using headwise::make_spec;
using headwise::policy_spec;
using headwise::pool_rows;
using headwise::special_tokens;
using headwise::token_classes;
using headwise::union_of;

static_assert(headwise::ranked_policy<heavy_hitters>);
static_assert(headwise::ranked_policy<union_of<local_window, heavy_hitters>>);
static_assert(headwise::ranked_policy<union_of<stranger::every_nth, heavy_hitters>>);
static_assert(!headwise::ranked_policy<local_window>);
static_assert(!headwise::ranked_policy<union_of<special_tokens, local_window>>);

TEST(heavy_hitters, leave_lifetimes_to_the_other_parts) {
  const headwise::token t{7, 3};
  EXPECT_EQ(heavy_hitters(5).lifetime(t), 1U);
  const union_of both(local_window(4), heavy_hitters(5));
  EXPECT_EQ(both.lifetime(t), 4U);
  EXPECT_EQ(both.lifetimes(), (headwise::lifetime_set{4}));
  EXPECT_EQ(pool_rows(both, 100), 5U);
}

TEST(heavy_hitters, of_two_pools_the_larger_holds_both) {
  EXPECT_EQ(pool_rows(union_of(heavy_hitters(3), heavy_hitters(9)), 100), 9U);
  EXPECT_EQ(pool_rows(union_of(heavy_hitters(0.5, 1000), heavy_hitters(9)), 100), 50U);
  EXPECT_EQ(pool_rows(union_of(union_of(heavy_hitters(3), local_window(2)), special_tokens()), 9),
            3U);
}

TEST(heavy_hitters, are_plain_data_and_back) {
  for (const heavy_hitters& policy : {heavy_hitters(0), heavy_hitters(64), heavy_hitters(forever),
                                      heavy_hitters(0.3, 256), heavy_hitters(1.0, 1)}) {
    const auto back = make_policy(make_spec(policy));
    EXPECT_EQ(std::get<heavy_hitters>(back), policy);
  }
  const union_of all(special_tokens(token_classes::sink), local_window(8), heavy_hitters(0.3, 99));
  const auto back = make_policy(make_spec(all));
  EXPECT_EQ((std::get<union_of<special_tokens, local_window, heavy_hitters>>(back)), all);
}

TEST(heavy_hitters, merge_in_a_flat_union) {
  const auto spec = [](policy_spec a, policy_spec b) {
    return headwise::normalized({"union", {}, {}, {std::move(a), std::move(b)}});
  };
  EXPECT_EQ(spec(make_spec(heavy_hitters(3)), make_spec(heavy_hitters(8))),
            make_spec(heavy_hitters(8)));
  EXPECT_EQ(spec(make_spec(heavy_hitters(0.25, 8)), make_spec(heavy_hitters(0.25, 5))),
            make_spec(heavy_hitters(0.25, 8)));
  // A count and a fraction, or two fractions, are no single pool.
  for (const policy_spec& other : {make_spec(heavy_hitters(8)), make_spec(heavy_hitters(0.5, 8))}) {
    const policy_spec both = spec(make_spec(heavy_hitters(0.25, 8)), other);
    EXPECT_EQ(both.parts.size(), 2U);
    EXPECT_THROW(static_cast<void>(make_policy(both)), headwise::error);
  }
}

TEST(heavy_hitters, parameters_out_of_range_are_refused_by_place) {
  const auto refused = [](std::map<std::string, std::int64_t, std::less<>> params) -> std::string {
    try {
      static_cast<void>(make_policy({"heavy_hitters", std::move(params), {}, {}}, "/policies/2"));
      return "not refused";
    } catch (const headwise::error& e) {
      return e.place();
    }
  };
  EXPECT_EQ(refused({}), "/policies/2/rows");
  EXPECT_EQ(refused({{"rows", -1}}), "/policies/2/rows");
  EXPECT_EQ(refused({{"rows", std::int64_t{1} << 32}}), "/policies/2/rows");
  EXPECT_EQ(refused({{"rows", 4}, {"cap", 4}}), "/policies/2/cap");
  EXPECT_EQ(refused({{"fraction_in_millionths", 0}, {"cap", 4}}),
            "/policies/2/fraction_in_millionths");
  EXPECT_EQ(refused({{"fraction_in_millionths", 1'000'001}, {"cap", 4}}),
            "/policies/2/fraction_in_millionths");
  EXPECT_EQ(refused({{"fraction_in_millionths", 5}}), "/policies/2/cap");
  EXPECT_EQ(refused({{"fraction_in_millionths", 5}, {"cap", 0}}), "/policies/2/cap");
  EXPECT_EQ(refused({{"fraction_in_millionths", 5}, {"rows", 4}}), "/policies/2/rows");
}

}  // namespace
}  // namespace headwise_tests
