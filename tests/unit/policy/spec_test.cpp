// SPDX-License-Identifier: Apache-2.0
#include "headwise/policy/spec.hpp"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/every_nth.hpp"
#include "support/random.hpp"
#include "support/random_policy.hpp"

namespace headwise_tests {
namespace {

using headwise::error_code;
using headwise::make_policy;
using headwise::make_spec;
using headwise::normalized;
using headwise::policy_spec;

policy_spec all() {
  return {"global", {}, {}, {}};
}
policy_spec window_spec(std::int64_t w) {
  return {"local_window", {{"window", w}}, {}, {}};
}
policy_spec special_spec(std::int64_t classes, std::vector<std::int32_t> ids = {}) {
  return {"special_tokens", {{"classes", classes}}, std::move(ids), {}};
}
policy_spec union_spec(std::vector<policy_spec> parts) {
  return {"union", {}, {}, std::move(parts)};
}

// 1. a policy comes back from its spec  2. a spec comes back from its policy
// 3. a spec that make_spec wrote is normalized
TEST(policy_spec, round_trips_for_every_policy_of_a_list) {
  random_source random(4);
  for (int round = 0; round < 2000; ++round) {
    const test_policy policy = random_policy(random).policy;
    const policy_spec spec = make_spec(policy);
    EXPECT_EQ(make_policy<test_policies>(spec), policy);           // 1
    EXPECT_EQ(make_spec(make_policy<test_policies>(spec)), spec);  // 2
    EXPECT_EQ(normalized(spec), spec);                             // 3
  }
}

TEST(policy_spec, a_union_may_be_written_in_any_order_and_nesting) {
  const policy_spec special = special_spec(3, {9, 2}), window = window_spec(5);
  const auto expected = make_policy(union_spec({special_spec(3, {2, 9}), window}));
  EXPECT_EQ(make_policy(union_spec({window, special})), expected);
  EXPECT_EQ(make_policy(union_spec({union_spec({window}), union_spec({special, window})})),
            expected);
  EXPECT_EQ(make_policy(union_spec(
                {special_spec(1, {9}), window_spec(2), special_spec(2, {2, 9}), window_spec(5)})),
            expected);
}

TEST(policy_spec, the_smallest_form) {
  EXPECT_EQ(normalized(union_spec({window_spec(3)})), window_spec(3));
  EXPECT_EQ(normalized(union_spec({window_spec(3), window_spec(8), window_spec(5)})),
            window_spec(8));
  EXPECT_EQ(normalized(union_spec({window_spec(3), all()})), all());
  EXPECT_EQ(normalized(union_spec({union_spec({all(), window_spec(3)}), special_spec(1)})), all());
  EXPECT_EQ(normalized(union_spec({special_spec(1, {4, 2}), special_spec(2, {2, 3})})),
            special_spec(3, {2, 3, 4}));
  EXPECT_EQ(normalized(special_spec(0, {3, 1, 3})), special_spec(0, {1, 3}));
  const policy_spec without_classes{"special_tokens", {}, {1}, {}};
  EXPECT_EQ(normalized(without_classes), special_spec(0, {1}));
  const policy_spec nth = stranger::every_nth(4, 1, 2).to_spec();
  EXPECT_EQ(normalized(union_spec({nth, nth})), nth);
  EXPECT_EQ(normalized(union_spec({nth, window_spec(2), nth})), union_spec({nth, window_spec(2)}));
}

struct refused {
  policy_spec spec;
  error_code code;
  std::string place;
};

// Every wrong member is named by its place, also where a merge or a global part would hide it.
TEST(policy_spec, wrong_members_are_named_by_their_place) {
  constexpr std::int64_t beyond = std::int64_t{1} << 32;
  const policy_spec no_window{"local_window", {}, {}, {}};
  const policy_spec odd_window{"local_window", {{"window", 4}, {"widow", 2}}, {}, {}};
  const policy_spec window_with_ids{"local_window", {{"window", 4}}, {1}, {}};
  const policy_spec window_with_parts{"local_window", {{"window", 4}}, {}, {all()}};
  const policy_spec global_with_param{"global", {{"window", 4}}, {}, {}};
  const policy_spec union_with_ids{"union", {}, {3}, {all()}};
  const policy_spec union_with_param{"union", {{"window", 3}}, {}, {all()}};
  const refused cases[] = {
      {no_window, error_code::missing, "/p/window"},
      {window_spec(0), error_code::out_of_range, "/p/window"},
      {window_spec(-1), error_code::out_of_range, "/p/window"},
      {window_spec(beyond), error_code::out_of_range, "/p/window"},
      {odd_window, error_code::malformed, "/p/widow"},
      {window_with_ids, error_code::malformed, "/p/ids"},
      {window_with_parts, error_code::malformed, "/p/parts"},
      {global_with_param, error_code::malformed, "/p/window"},
      {special_spec(-1), error_code::out_of_range, "/p/classes"},
      {special_spec(beyond), error_code::out_of_range, "/p/classes"},
      {special_spec(1, {4, -3}), error_code::out_of_range, "/p/ids/1"},
      {union_spec({}), error_code::missing, "/p/parts"},
      {union_with_ids, error_code::malformed, "/p/ids"},
      {union_with_param, error_code::malformed, "/p/window"},
      {union_spec({window_spec(4), window_spec(0)}), error_code::out_of_range, "/p/parts/1/window"},
      {union_spec({window_spec(4), odd_window}), error_code::malformed, "/p/parts/1/widow"},
      {union_spec({special_spec(1), special_spec(-1)}), error_code::out_of_range,
       "/p/parts/1/classes"},
      {union_spec({all(), window_spec(0)}), error_code::out_of_range, "/p/parts/1/window"},
      {union_spec({window_spec(4), union_spec({all(), no_window})}), error_code::missing,
       "/p/parts/1/parts/1/window"},
      {union_spec({union_spec({}), all()}), error_code::missing, "/p/parts/0/parts"},
      {{"nucleus", {}, {}, {}}, error_code::unsupported, "/p/kind"},
      {{"", {}, {}, {}}, error_code::unsupported, "/p/kind"},
  };
  for (const refused& r : cases) {
    try {
      static_cast<void>(make_policy(r.spec, "/p"));
      FAIL() << r.place << " was accepted";
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.place(), r.place) << e.what();
      EXPECT_EQ(e.code(), r.code) << e.what();
    }
  }
}

TEST(policy_spec, an_unknown_kind_is_told_what_is_known) {
  try {
    static_cast<void>(make_policy({"nucleus", {}, {}, {}}, "/policies/p3"));
    FAIL();
  } catch (const headwise::error& e) {
    EXPECT_STREQ(e.what(),
                 "/policies/p3/kind: unsupported: got 'nucleus', expected a policy that this "
                 "cache's policy_list holds: 'global', 'local_window', 'special_tokens', "
                 "'heavy_hitters', 'union of special_tokens and local_window', 'union of "
                 "special_tokens and heavy_hitters', 'union of local_window and heavy_hitters', "
                 "'union of special_tokens and local_window and heavy_hitters'");
  }
  const policy_spec nth = stranger::every_nth(4, 1, 2).to_spec();
  try {
    static_cast<void>(make_policy(union_spec({window_spec(3), nth})));
    FAIL();
  } catch (const headwise::error& e) {
    EXPECT_EQ(e.got(), "'union of local_window and every_nth'");
  }
  EXPECT_NO_THROW(static_cast<void>(make_policy<test_policies>(union_spec({window_spec(3), nth}))));
}

}  // namespace
}  // namespace headwise_tests
