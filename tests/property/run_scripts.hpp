// SPDX-License-Identifier: Apache-2.0
//
// Random scripts against the naive cache, seeded. HEADWISE_PROPERTY_FACTOR=20 runs twenty times as
// many; HEADWISE_PROPERTY_SEED=7 starts with script 7, which is how a failure is looked at alone.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "property/script.hpp"

namespace headwise_tests {

[[nodiscard]] inline std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::stoul(text));
}

// The five tests together: at least 2.2 million checks.
inline constexpr std::size_t checks_of_a_test = 330'000;

template <class Key, class Value>
void run_scripts(std::uint32_t first_seed) {
  const std::size_t target = checks_of_a_test * from_environment("HEADWISE_PROPERTY_FACTOR", 1);
  std::uint32_t seed = from_environment("HEADWISE_PROPERTY_SEED", first_seed);
  script_counts counts;
  for (; counts.checks < target && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("HEADWISE_PROPERTY_SEED=" + std::to_string(seed));
    script<Key, Value>(random_source(seed), counts).run(60);
  }
  std::printf(
      "%zu head/query checks (%zu with heavy hitters), %zu attention outputs, %zu prompts, "
      "%zu rollbacks, %zu blocked, %zu forks, %zu cancels, %zu saves, %zu heads refilled, "
      "%zu refusals\n",
      counts.checks, counts.ranked, counts.attends, counts.prompts, counts.rollbacks,
      counts.blocked, counts.forks, counts.cancels, counts.saves, counts.refills, counts.refusals);
  // Every kind of operation did occur, many times.
  EXPECT_GT(std::min({counts.rollbacks, counts.blocked, counts.forks, counts.cancels, counts.saves,
                      counts.refills, counts.refusals}),
            50U);
  EXPECT_GT(counts.attends, counts.checks / 10);
  EXPECT_GT(counts.ranked, counts.checks / 20);
  EXPECT_GT(counts.prompts, 50U);
}

}  // namespace headwise_tests
