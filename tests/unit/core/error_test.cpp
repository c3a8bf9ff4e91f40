// SPDX-License-Identifier: Apache-2.0
#include "headwise/core/error.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace headwise_tests {
namespace {

using headwise::error_code;

TEST(error, says_place_kind_got_and_expected_in_one_line) {
  try {
    headwise::raise(error_code::out_of_range, "/heads/0/1", "17", "an index below 4");
    FAIL();
  } catch (const headwise::error& e) {
    EXPECT_STREQ(e.what(), "/heads/0/1: out of range: got 17, expected an index below 4");
    EXPECT_EQ(e.code(), error_code::out_of_range);
    EXPECT_EQ(e.place(), "/heads/0/1");
    EXPECT_EQ(e.got(), "17");
    EXPECT_EQ(e.expected(), "an index below 4");
  }
}

TEST(error, every_code_has_a_name_of_its_own) {
  std::set<std::string_view> names;
  constexpr int codes = static_cast<int>(error_code::out_of_memory) + 1;
  for (int code = 0; code < codes; ++code)
    names.insert(headwise::to_string(static_cast<error_code>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(codes));
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(contract, a_broken_one_names_place_and_condition) {
  const auto broken = [](int x) { HEADWISE_EXPECTS(x > 3, "x is too small"); };
  broken(4);
  EXPECT_DEATH(broken(3), "error_test.cpp:[0-9]+: headwise: x is too small \\(x > 3 is false\\)");
}

}  // namespace
}  // namespace headwise_tests
