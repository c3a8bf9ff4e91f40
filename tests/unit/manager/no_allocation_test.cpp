// SPDX-License-Identifier: Apache-2.0
//
// Decode asks nobody for memory: not the heap, not the cache's memory resource.
#include <optional>
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

struct decoder {
  using manager = headwise::cache_manager<test_policies>;

  explicit decoder(const headwise::cache_config& config)
      : cache(three_layers, mixed_plan(), config),
        text(cache.open()),
        scratch(three_layers.group_size(), three_layers.head_dim, tokens_decoded, config.memory),
        key(random.numbers(three_layers.head_dim)),
        query(random.numbers(three_layers.group_size() * three_layers.head_dim)),
        out(query.size()),
        lse(three_layers.group_size()) {}

  // One token through every head, as an engine does it.
  void decode() {
    const position pos = text.length();
    const token t{pos, static_cast<std::int32_t>(pos % 100)};
    std::optional step = text.try_append({&t, 1});
    ASSERT_TRUE(step.has_value()) << "at position " << pos;
    const std::size_t d = three_layers.head_dim;
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

// Without a reserve a page costs one call for its rows and one for its link, and only then.
TEST(decode_memory, without_a_reserve_only_new_pages_allocate) {
  counting_resource memory;
  headwise::cache_config config = reserved(memory, 0);
  config.reserved_pages = 0;
  decoder engine(config);
  engine.decode();
  std::size_t quiet_tokens = 0;
  for (int i = 1; i < 500; ++i) {
    const token next{engine.text.length(), static_cast<std::int32_t>(engine.text.length() % 100)};
    const std::size_t pages = engine.text.pages_needed({&next, 1});
    const std::size_t before = memory.calls();
    engine.decode();
    EXPECT_EQ(memory.calls() - before, 2 * pages);
    if (pages == 0) ++quiet_tokens;
  }
  EXPECT_GT(quiet_tokens, 300U);
}

}  // namespace
}  // namespace headwise_tests
