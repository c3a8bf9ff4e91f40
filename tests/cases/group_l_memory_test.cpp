// SPDX-License-Identifier: Apache-2.0
//
// Fault cases L: what many steps cost.
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/counting_resource.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

constexpr headwise::model_shape one_wide_head{1, 1, 1, 64};
constexpr int pushes = 50'000;

// Rows are written once and never moved: what was ever asked for is what is held.
TEST(fault_cases, L02_a_growing_head_is_not_rebuilt) {
  counting_resource memory;
  headwise::cache_config config;
  config.memory = &memory;
  engine<headwise::f16> text(one_wide_head, {headwise::global{}}, uniform_fixture(), config);
  for (int i = 0; i < pushes; ++i) text.append(1);
  EXPECT_EQ(text.text().stats().resident_rows, 50'000U);
  EXPECT_EQ(memory.requested_bytes(), memory.bytes());
  EXPECT_LT(static_cast<double>(memory.bytes()),
            1.1 * static_cast<double>(text.text().stats().payload_bytes));
}

TEST(fault_cases, L02_a_full_window_costs_nothing_more) {
  counting_resource memory;
  headwise::cache_config config;
  config.pages = config.reserved_pages = 40;
  config.memory = &memory;
  engine<headwise::f16> text(one_wide_head, {sinks_and_window(1024)}, uniform_fixture(), config,
                             headwise::token_classifier(4));
  text.append(1);
  const std::size_t calls = memory.calls();
  for (int i = 1; i < pushes; ++i) text.append(1);
  EXPECT_EQ(memory.calls(), calls);
  EXPECT_EQ(text.text().stats().resident_rows, 1028U);
  // Pages of the window: 1024 rows in pages of 32, begun anywhere; one more for the sinks.
  EXPECT_LE(text.cache().stats().pages_in_use, 1024U / 32 + 1 + 1);
}

}  // namespace
}  // namespace headwise_tests
