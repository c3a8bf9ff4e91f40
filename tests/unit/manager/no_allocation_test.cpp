// SPDX-License-Identifier: Apache-2.0
//
// Decode asks nobody for memory: not the heap, not the cache's memory resource.
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/attend/attend.hpp"
#include "headwise/manager/cache_manager.hpp"
#include "support/allocation_watch.hpp"
#include "support/counting_resource.hpp"
#include "support/every_nth.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

using headwise::position;
using headwise::token;

constexpr headwise::model_shape three_layers{3, 8, 4, 8};
constexpr position tokens_decoded = 2000;

// Each kind of head three times: windows of several sizes, special tokens, unions, a stranger's
// policy, and two global heads.
std::vector<test_policy> mixed_plan() {
  const headwise::special_tokens special(headwise::token_classes::sink, {3, 5});
  return {headwise::global{},
          headwise::local_window(1),
          headwise::local_window(7),
          headwise::local_window(64),
          special,
          headwise::union_of(special, headwise::local_window(33)),
          stranger::every_nth(50, 2, 20),
          headwise::local_window(500),
          headwise::union_of(stranger::every_nth(40, 3, 9), headwise::local_window(5)),
          special,
          headwise::local_window(16),
          headwise::global{}};
}

// Heavy hitters alone and in unions with every other kind, next to heads that do not rank.
std::vector<test_policy> ranking_plan() {
  const headwise::special_tokens special(headwise::token_classes::sink, {3, 5});
  const auto beside = [](headwise::token_count window, headwise::token_count pool) {
    return headwise::union_of(headwise::local_window(window), headwise::heavy_hitters(pool));
  };
  const auto all = [&](headwise::token_count window, headwise::token_count pool) {
    return headwise::union_of(special, headwise::local_window(window),
                              headwise::heavy_hitters(pool));
  };
  return {headwise::heavy_hitters(1),
          headwise::heavy_hitters(40),
          beside(1, 5),
          beside(64, 32),
          headwise::local_window(64),
          all(1, 7),
          all(33, 20),
          headwise::union_of(stranger::every_nth(40, 3, 9), headwise::heavy_hitters(24)),
          headwise::global{},
          headwise::heavy_hitters(100),
          beside(100, 50),
          headwise::union_of(special, headwise::local_window(5))};
}

struct decoder {
  using manager = headwise::cache_manager<test_policies>;

  explicit decoder(const headwise::cache_config& config,
                   std::vector<test_policy> plan = mixed_plan())
      : cache(three_layers, std::move(plan), config),
        text(cache.open()),
        scratch(three_layers.group_size(), three_layers.head_dim, tokens_decoded, config.memory),
        key(random.numbers(three_layers.head_dim)),
        query(random.numbers(three_layers.group_size() * three_layers.head_dim)),
        out(query.size()),
        lse(three_layers.group_size()) {}

  // One token through every head, as an engine does it: other rows and queries each time, so that
  // ranks change.
  void decode() {
    const position pos = text.length();
    const token t{pos, static_cast<std::int32_t>(pos % 100)};
    std::optional step = text.try_append({&t, 1});
    ASSERT_TRUE(step.has_value()) << "at position " << pos;
    const std::size_t d = three_layers.head_dim;
    for (std::vector<float>* numbers : {&key, &query})
      for (float& x : *numbers) x = 4.0F * random.number();
    for (std::uint32_t layer = 0; layer < three_layers.layers; ++layer)
      for (std::uint32_t head = 0; head < three_layers.kv_heads; ++head) {
        const headwise::rows<const float> row(key.data(), 1, d);
        step->write({layer, head}, row, row);
        headwise::attend(step->head({layer, head}), pos, {query.data(), lse.size(), d}, 0.25F,
                         {out.data(), lse.size(), d}, lse, scratch);
      }
    std::move(*step).commit();
  }

  random_source random{7};
  manager cache;
  manager::sequence_type text;
  headwise::attend_scratch scratch;
  std::vector<float> key, query, out, lse;
};

headwise::cache_config reserved(counting_resource& memory, headwise::token_count horizon) {
  headwise::cache_config config;
  config.page_tokens = 16;
  config.pages = config.reserved_pages = 600;
  config.rollback_horizon = horizon;
  config.memory = &memory;
  return config;
}

class decode_without_allocation : public testing::TestWithParam<headwise::token_count> {};

TEST_P(decode_without_allocation, from_the_second_token_on) {
  counting_resource memory;
  decoder engine(reserved(memory, GetParam()));
  engine.decode();
  const allocation_watch heap;
  const std::size_t memory_before = memory.calls();
  for (position i = 1; i < tokens_decoded; ++i) {
    engine.decode();
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(heap.count(), 0U);
  EXPECT_EQ(memory.calls(), memory_before);
  EXPECT_EQ(engine.text.length(), tokens_decoded);
  EXPECT_LT(engine.text.stats().kept_ratio(), 0.5);  // most was evicted on the way
}

// The tables of scores grow until a pool and the streams before it are full, and no more.
TEST_P(decode_without_allocation, once_the_pools_are_full) {
  constexpr position warm_up = 300;
  counting_resource memory;
  decoder engine(reserved(memory, GetParam()), ranking_plan());
  for (position i = 0; i < warm_up; ++i) engine.decode();
  const allocation_watch heap;
  const std::size_t memory_before = memory.calls();
  for (position i = warm_up; i < tokens_decoded; ++i) {
    engine.decode();
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(heap.count(), 0U);
  EXPECT_EQ(memory.calls(), memory_before);
  EXPECT_EQ(engine.text.length(), tokens_decoded);
  EXPECT_LT(engine.text.stats().kept_ratio(), 0.25);
}

INSTANTIATE_TEST_SUITE_P(horizons, decode_without_allocation, testing::Values(0U, 8U));

TEST(decode_memory, rollback_and_cancel_do_not_allocate_either) {
  counting_resource memory;
  decoder engine(reserved(memory, 8));
  for (int i = 0; i < 100; ++i) engine.decode();
  const allocation_watch heap;
  const std::size_t memory_before = memory.calls();
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 5; ++i) engine.decode();
    ASSERT_TRUE(engine.text.try_rollback(4));
    const token t{engine.text.length(), 1};
    ASSERT_TRUE(engine.text.try_append({&t, 1}).has_value());  // and cancelled at once
  }
  EXPECT_EQ(heap.count(), 0U);
  EXPECT_EQ(memory.calls(), memory_before);
}

TEST(decode_memory, rollback_and_cancel_of_ranked_heads_do_not_allocate_either) {
  counting_resource memory;
  decoder engine(reserved(memory, 8), ranking_plan());
  const auto round = [&] {
    for (int i = 0; i < 5; ++i) engine.decode();
    ASSERT_TRUE(engine.text.try_rollback(4));
    const token t{engine.text.length(), 1};
    ASSERT_TRUE(engine.text.try_append({&t, 1}).has_value());  // and cancelled at once
  };
  for (int i = 0; i < 300; ++i) engine.decode();
  const allocation_watch heap;
  const std::size_t memory_before = memory.calls();
  for (int i = 0; i < 200; ++i) {
    round();
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(heap.count(), 0U);
  EXPECT_EQ(memory.calls(), memory_before);
}

// Without a reserve a page costs one call for its rows and, now and then, one for where it is
// listed.
TEST(decode_memory, without_a_reserve_only_new_pages_allocate) {
  counting_resource memory;
  headwise::cache_config config = reserved(memory, 0);
  config.reserved_pages = 0;
  decoder engine(config);
  engine.decode();
  std::size_t quiet_tokens = 0, pages_taken = 0, calls = 0;
  for (int i = 1; i < 500; ++i) {
    const token next{engine.text.length(), static_cast<std::int32_t>(engine.text.length() % 100)};
    const std::size_t pages = engine.text.pages_needed({&next, 1});
    const std::size_t before = memory.calls();
    engine.decode();
    EXPECT_GE(memory.calls() - before, pages);
    EXPECT_LE(memory.calls() - before, 2 * pages);
    calls += memory.calls() - before;
    pages_taken += pages;
    if (pages == 0) ++quiet_tokens;
  }
  EXPECT_GT(quiet_tokens, 300U);
  EXPECT_LT(calls, pages_taken + pages_taken / 3);
}

}  // namespace
}  // namespace headwise_tests
