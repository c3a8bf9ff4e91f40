// SPDX-License-Identifier: Apache-2.0
//
// Random scripts against the naive cache, seeded. HEADWISE_PROPERTY_FACTOR=20 runs twenty times as
// many; HEADWISE_PROPERTY_SEED=7 starts with script 7, which is how a failure is looked at alone.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "property/script.hpp"

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"

namespace headwise_tests {
namespace {

[[nodiscard]] std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::stoul(text));
}

// The five tests together: at least 2.2 million checks.
constexpr std::size_t checks_of_a_test = 440'000;

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

TEST(cache_against_reference, f32) {
  run_scripts<headwise::f32, headwise::f32>(1);
}
TEST(cache_against_reference, f16) {
  run_scripts<headwise::f16, headwise::f16>(100'001);
}
TEST(cache_against_reference, bf16_keys_f32_values) {
  run_scripts<headwise::bf16, headwise::f32>(200'001);
}
// Rows are compared as bytes: whatever is done to them, none is ever quantised again.
TEST(cache_against_reference, int8_keys_int4_values) {
  run_scripts<headwise::int8_row, headwise::int4_group>(300'001);
}
TEST(cache_against_reference, int4) {
  run_scripts<headwise::int4_group, headwise::int4_group>(400'001);
}

}  // namespace
}  // namespace headwise_tests
