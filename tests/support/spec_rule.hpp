// SPDX-License-Identifier: Apache-2.0
//
// What a policy of a built-in kind stands for, read off its spec and written out here once more, so
// that a test does not ask a policy whether the policy is right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include <gtest/gtest.h>

#include "headwise/policy/spec.hpp"

namespace headwise_tests {

[[nodiscard]] inline headwise::token_count lifetime_by_spec(const headwise::policy_spec& spec,
                                                            const headwise::token& t) {
  const auto number = [&](const char* name) {
    return static_cast<std::uint32_t>(spec.params.at(name));
  };
  if (spec.kind == "global") return headwise::forever;
  if (spec.kind == "local_window") return number("window");
  if (spec.kind == "special_tokens") {
    const bool of_class = (static_cast<std::uint32_t>(t.classes) & number("classes")) != 0;
    const bool of_id = std::find(spec.ids.begin(), spec.ids.end(), t.id) != spec.ids.end();
    return of_class || of_id ? headwise::forever : 1;
  }
  if (spec.kind != "union") ADD_FAILURE() << "no rule for the kind " << spec.kind;
  headwise::token_count longest = 1;
  for (const headwise::policy_spec& part : spec.parts)
    longest = std::max(longest, lifetime_by_spec(part, t));
  return longest;
}

[[nodiscard]] inline std::function<headwise::token_count(const headwise::token&)> rule_of(
    const headwise::policy_spec& spec) {
  return [spec](const headwise::token& t) { return lifetime_by_spec(spec, t); };
}

}  // namespace headwise_tests
