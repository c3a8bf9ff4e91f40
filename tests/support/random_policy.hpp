// SPDX-License-Identifier: Apache-2.0
//
// Random policies of every kind, each with the rule that it stands for, written out here once more
// so that a test does not ask a policy whether the policy is right; and random tokens for them.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "support/every_nth.hpp"
#include "support/random.hpp"
#include "support/reference_cache.hpp"

namespace headwise_tests {

struct ruled_policy {
  test_policy policy;
  lifetime_rule rule;
};

inline constexpr std::uint32_t test_vocabulary = 20;

[[nodiscard]] inline lifetime_rule longer_of(lifetime_rule a, lifetime_rule b) {
  return [a = std::move(a), b = std::move(b)](const token& t) { return std::max(a(t), b(t)); };
}

struct ruled_window {
  headwise::local_window policy;
  lifetime_rule rule;
};
[[nodiscard]] inline ruled_window random_window(random_source& random) {
  const token_count window = random.one_in(2) ? random.between(1, 6) : random.between(1, 80);
  return {headwise::local_window(window), [window](const token&) { return window; }};
}

struct ruled_special {
  headwise::special_tokens policy;
  lifetime_rule rule;
};
[[nodiscard]] inline ruled_special random_special(random_source& random) {
  const std::uint32_t mask = random.below(8);
  std::vector<std::int32_t> ids(random.below(4));
  for (auto& id : ids) id = static_cast<std::int32_t>(random.below(test_vocabulary));
  return {headwise::special_tokens(static_cast<headwise::token_classes>(mask), ids),
          [mask, ids](const token& t) -> token_count {
            const bool kept = (static_cast<std::uint32_t>(t.classes) & mask) != 0 ||
                              std::find(ids.begin(), ids.end(), t.id) != ids.end();
            return kept ? headwise::forever : 1;
          }};
}

struct ruled_nth {
  stranger::every_nth policy;
  lifetime_rule rule;
};
[[nodiscard]] inline ruled_nth random_nth(random_source& random) {
  const token_count n = random.between(1, 9);
  const token_count near = random.between(1, 5);
  const token_count far = random.between(1, 40);
  return {stranger::every_nth(n, near, far), [n, near, far](const token& t) -> token_count {
            if (t.pos % n == 0) return headwise::forever;
            return t.pos % n == n / 2 ? far : near;
          }};
}

[[nodiscard]] inline ruled_policy random_policy(random_source& random) {
  using headwise::union_of;
  switch (random.below(6)) {
    case 0:
      return {headwise::global{}, [](const token&) { return headwise::forever; }};
    case 1: {
      ruled_window window = random_window(random);
      return {window.policy, std::move(window.rule)};
    }
    case 2: {
      ruled_special special = random_special(random);
      return {std::move(special.policy), std::move(special.rule)};
    }
    case 3: {
      ruled_nth nth = random_nth(random);
      return {nth.policy, std::move(nth.rule)};
    }
    case 4: {
      ruled_special special = random_special(random);
      ruled_window window = random_window(random);
      return {union_of(std::move(special.policy), window.policy),
              longer_of(std::move(special.rule), std::move(window.rule))};
    }
    default: {
      ruled_nth nth = random_nth(random);
      ruled_window window = random_window(random);
      return {union_of(nth.policy, window.policy),
              longer_of(std::move(nth.rule), std::move(window.rule))};
    }
  }
}

// Every id has its classes, as in a vocabulary; position 0 is a sink.
[[nodiscard]] inline std::vector<token> random_tokens(random_source& random, position first,
                                                      std::uint32_t count) {
  std::vector<token> result;
  for (std::uint32_t i = 0; i < count; ++i) {
    token t{first + i, static_cast<std::int32_t>(random.below(test_vocabulary))};
    if (t.id % 7 == 0) t.classes |= headwise::token_classes::punctuation;
    if (t.id % 11 == 0) t.classes |= headwise::token_classes::special;
    if (t.pos == 0) t.classes |= headwise::token_classes::sink;
    result.push_back(t);
  }
  return result;
}

}  // namespace headwise_tests
