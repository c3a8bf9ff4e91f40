// SPDX-License-Identifier: Apache-2.0
//
// Random policies of every kind, each with the rule that it stands for, written out here once more
// so that a test does not ask a policy whether the policy is right; and random tokens, shapes and
// configs for them.
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
  token_count pool = 0;        // rows of heavy hitters, at most where sixteenths are given
  token_count sixteenths = 0;  // of the length that a sequence is opened for

  [[nodiscard]] token_count pool_rows(token_count expected_length) const {
    if (sixteenths == 0 || pool == 0) return pool;
    const std::uint64_t share = (std::uint64_t{expected_length} * sixteenths + 15) / 16;
    return static_cast<token_count>(std::clamp<std::uint64_t>(share, 1, pool));
  }
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

// fractions: some pools are a share of the expected length.
[[nodiscard]] inline ruled_policy random_policy(random_source& random, bool fractions = false) {
  using headwise::union_of;
  const token_count pool = random.one_in(2) ? random.between(1, 4) : random.between(1, 40);
  const token_count parts = fractions && random.one_in(2) ? random.between(1, 16) : 0;
  const headwise::heavy_hitters hitters =
      parts == 0 ? headwise::heavy_hitters(pool) : headwise::heavy_hitters(parts / 16.0, pool);
  ruled_window window = random_window(random);
  ruled_special special = random_special(random);
  ruled_nth nth = random_nth(random);
  switch (random.below(10)) {
    case 0:
      return {headwise::global{}, [](const token&) { return headwise::forever; }};
    case 1:
      return {window.policy, window.rule};
    case 2:
      return {special.policy, special.rule};
    case 3:
      return {nth.policy, nth.rule};
    case 4:
      return {union_of(special.policy, window.policy), longer_of(special.rule, window.rule)};
    case 5:
      return {union_of(nth.policy, window.policy), longer_of(nth.rule, window.rule)};
    case 6:
      return {hitters, [](const token&) { return token_count{1}; }, pool, parts};
    case 7:
      return {union_of(window.policy, hitters), window.rule, pool, parts};
    case 8:
      return {union_of(special.policy, window.policy, hitters),
              longer_of(special.rule, window.rule), pool, parts};
    default:
      return {union_of(nth.policy, hitters), nth.rule, pool, parts};
  }
}

[[nodiscard]] inline headwise::model_shape random_shape(random_source& random) {
  constexpr std::uint32_t dims[] = {1, 3, 4, 8, 33};
  const std::uint32_t kv_heads = random.between(1, 3);
  return {random.between(1, 2), kv_heads * random.between(1, 3), kv_heads,
          dims[random.below(std::size(dims))]};
}
[[nodiscard]] inline headwise::cache_config random_config(random_source& random,
                                                          std::pmr::memory_resource* memory) {
  headwise::cache_config config;
  config.page_tokens = random.one_in(2) ? random.between(1, 8) : random.between(1, 64);
  if (random.one_in(2)) config.pages = random.between(4, 200);
  if (random.one_in(2))
    config.reserved_pages =
        random.below(1 + static_cast<std::uint32_t>(std::min<std::size_t>(config.pages, 60)));
  if (random.one_in(3)) config.reserved_pages = std::min<std::size_t>(config.pages, 100);
  config.rollback_horizon = random.one_in(3) ? 0 : random.between(0, 16);
  config.memory = memory;
  return config;
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
