// SPDX-License-Identifier: Apache-2.0
#include "headwise/manager/cache_manager.hpp"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/counting_resource.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

using headwise::cache_config;
using headwise::cache_manager;
using headwise::error_code;

constexpr headwise::model_shape two_layers{2, 4, 2, 8};
using builtin_plan = std::vector<headwise::builtin_policies::variant>;

void expect_refused(const headwise::model_shape& s, const cache_config& config,
                    const std::string& place, error_code code) {
  try {
    const cache_manager<> cache(s, builtin_plan(s.heads()), config);
    FAIL() << place << " was accepted";
  } catch (const headwise::error& e) {
    EXPECT_EQ(e.place(), place) << e.what();
    EXPECT_EQ(e.code(), code) << e.what();
  }
}

TEST(cache_config, what_cannot_be_is_refused_by_name) {
  cache_config config;
  config.page_tokens = 0;
  expect_refused(two_layers, config, "cache_config.page_tokens", error_code::invalid_argument);
  config = {};
  config.pages = 4;
  config.reserved_pages = 5;
  expect_refused(two_layers, config, "cache_config.reserved_pages", error_code::invalid_argument);
  config = {};
  config.memory = nullptr;
  expect_refused(two_layers, config, "cache_config.memory", error_code::invalid_argument);
}

// Byte counts that pass 64 bits are an error, not a small allocation.
TEST(fault_cases, L03_sizes_beyond_64_bits) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  cache_config config;
  config.page_tokens = most;
  expect_refused({1, 1, 1, most}, config, "cache_config.page_tokens", error_code::out_of_range);
  config = {};
  config.reserved_pages = std::numeric_limits<std::size_t>::max() / 64;
  expect_refused(two_layers, config, "cache_config.reserved_pages", error_code::out_of_range);
  config = {};
  config.step_tokens = std::numeric_limits<std::size_t>::max() / sizeof(token) + 2;
  expect_refused(two_layers, config, "cache_config.step_tokens", error_code::out_of_range);
}

TEST(cache_manager, a_step_that_is_refused_for_pages_asks_no_memory) {
  counting_resource memory;
  cache_manager<> cache({1, 1, 1, 4}, {headwise::global{}},
                        {.page_tokens = 1, .pages = 1, .reserved_pages = 1, .memory = &memory});
  auto text = cache.open();
  const std::vector<float> zeros(4);
  auto step = text.try_append(token{0, 0});
  step->write({0, 0}, {zeros.data(), 1, 4}, {zeros.data(), 1, 4});
  std::move(*step).commit();
  const std::size_t calls = memory.calls();
  EXPECT_FALSE(text.try_append(token{1, 0}).has_value());
  EXPECT_EQ(memory.calls(), calls);
}

// As many bytes a token as 80 layers of 8 KV heads of 128 elements in f16, in one row of one head:
// 327,680, so that 1,000,000 tokens are 327,680,000,000 bytes, which no 32-bit product gives.
TEST(fault_cases, L03_byte_counts_of_a_large_model) {
  constexpr std::uint32_t head_dim = 80 * 8 * 128;
  constexpr position length = 1'000'000;
  cache_manager<> cache({1, 1, 1, head_dim}, {window(1)}, {.page_tokens = 1});
  auto text = cache.open();
  std::vector<token> tokens(length);
  for (position i = 0; i < length; ++i) tokens[i] = {i, 0};
  const std::vector<float> ones(head_dim, 1.0F);
  const headwise::rows<const float> same_row(ones.data(), length, head_dim, 0);
  auto step = text.try_append(tokens, headwise::attend_scope::last_query);
  step->write({0, 0}, same_row, same_row);
  std::move(*step).commit();
  EXPECT_EQ(text.stats().full_bytes, 327'680'000'000U);
  EXPECT_EQ(text.stats().payload_bytes, 327'680U);
}

TEST(cache_manager, a_reserve_that_memory_refuses_leaves_nothing) {
  counting_resource memory;
  for (std::size_t allowed = 0; allowed < 2; ++allowed) {
    memory.refuse_after(allowed);
    EXPECT_THROW(cache_manager<>(two_layers, builtin_plan(4),
                                 {.pages = 10, .reserved_pages = 10, .memory = &memory}),
                 std::bad_alloc);
    memory.allow_all();
    EXPECT_EQ(memory.bytes(), 0U);
  }
}

TEST(cache_manager, plans_have_one_policy_for_each_head) {
  cache_manager<> cache(two_layers, builtin_plan(4), {});
  for (const std::size_t count : {0U, 1U, 3U, 5U}) {
    EXPECT_THROW(cache_manager<>(two_layers, builtin_plan(count), {}), headwise::error);
    try {
      static_cast<void>(cache.open(builtin_plan(count)));
      FAIL() << count;
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.code(), error_code::shape_mismatch);
      EXPECT_EQ(e.expected(), "2 layers x 2 KV heads = 4");
    }
  }
}

TEST(cache_manager, a_blueprint_with_an_unknown_policy_names_the_head) {
  headwise::blueprint plan =
      headwise::uniform_blueprint(two_layers, headwise::make_spec(headwise::global{}));
  plan.heads[3].policy = stranger::every_nth(3, 1, 2).to_spec();
  try {
    const cache_manager<> cache(plan, {});
    FAIL();
  } catch (const headwise::error& e) {
    EXPECT_EQ(e.place(), "blueprint head 3/kind");
    EXPECT_EQ(e.got(), "'every_nth'");
  }
  const cache_manager<test_policies> knows_it(plan, {});
  EXPECT_EQ(std::get<stranger::every_nth>(knows_it.plan()[3]), stranger::every_nth(3, 1, 2));
}

// Sequences of one manager may follow plans of their own.
TEST(cache_manager, sequences_with_plans_of_their_own) {
  cache_manager<test_policies, headwise::f32> cache({1, 1, 1, 4}, {headwise::global{}},
                                                    {.page_tokens = 4});
  auto full = cache.open();
  auto narrow = cache.open({window(2)});
  EXPECT_EQ(full.plan()[0], test_policy(headwise::global{}));
  EXPECT_EQ(narrow.plan()[0], test_policy(window(2)));
  EXPECT_EQ(cache.stats().sequences, 2U);
  const std::vector<float> zeros(10 * 4);
  const headwise::rows<const float> rows(zeros.data(), 10, 4);
  const auto tokens = headwise::token_classifier(0).tokens(
      std::span<const std::int32_t>(std::vector<std::int32_t>(10)));
  for (auto* const text : {&full, &narrow}) {
    auto step = text->try_append(tokens);
    step->write({0, 0}, rows, rows);
    std::move(*step).commit();
  }
  EXPECT_EQ(full.stats().resident_rows, 10U);
  EXPECT_EQ(narrow.stats().resident_rows, 2U);
}

// 1. an empty sequence keeps all of nothing  2. every number of cache_stats by hand
TEST(cache_stats, are_counted) {
  counting_resource memory;
  const cache_config config{.page_tokens = 4, .memory = &memory};
  engine<headwise::f16> text({1, 2, 2, 8}, {headwise::global{}, window(3)}, uniform_fixture(),
                             config);
  EXPECT_EQ(text.text().stats().kept_ratio(), 1.0);  // 1
  EXPECT_EQ(text.text().stats().payload_bytes, 0U);
  text.feed(10);
  const headwise::cache_stats stats = text.text().stats();
  const headwise::manager_stats manager = text.cache().stats();
  EXPECT_EQ(stats.length, 10U);  // 2
  EXPECT_EQ(stats.resident_rows, 13U);
  EXPECT_EQ(stats.full_rows, 20U);
  EXPECT_EQ(stats.payload_bytes, 13U * 32);
  EXPECT_EQ(stats.full_bytes, 20U * 32);
  EXPECT_EQ(stats.kept_ratio(), 13.0 / 20.0);
  // The global head has 3 pages, 12 slots; the window's 7, 8, 9 lie in 2 pages, 8 slots.
  EXPECT_EQ(manager.pages_in_use, 5U);
  EXPECT_EQ(stats.reserved_bytes, (20U - 13U) * 32);
  EXPECT_EQ(stats.held_bytes(), memory.bytes());
  EXPECT_EQ(manager.held_bytes, memory.bytes());
  EXPECT_EQ(manager.idle_bytes, 0U);
  EXPECT_EQ(manager.page_bytes, 192U);  // one line for 4 + 4 * 4, one for keys, one for values
}

}  // namespace
}  // namespace headwise_tests
