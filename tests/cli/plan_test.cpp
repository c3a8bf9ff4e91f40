// SPDX-License-Identifier: Apache-2.0
//
// headwise plan: its figures against hand arithmetic and against what a real cache holds.

#include <gtest/gtest.h>

#include "numbers.hpp"
#include "tool_run.hpp"

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"
#include "headwise/io/blueprint_json.hpp"
#include "headwise/manager/cache_manager.hpp"
#include "support/files.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

TEST(Plan, FullCacheOfAKnownShape) {
  const tool_result plan =
      run_headwise({"plan", "--shape", "32x32x32x128", "--type", "bf16", "--length", "2048"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_TRUE(contains(plan.out, "full 1,073,741,824 bytes (1 GiB)")) << plan.out;
  EXPECT_TRUE(contains(plan.out, "524,288 bytes (512 KiB) a token")) << plan.out;
  EXPECT_TRUE(contains(plan.out, "33,554,432")) << plan.out;  // a layer
}

TEST(Plan, BatchMultiplies) {
  const tool_result plan = run_headwise(
      {"plan", "--shape", "2x4x2x8", "--type", "f32", "--length", "10", "--batch", "3"});
  EXPECT_TRUE(contains(plan.out, "full 7,680 bytes")) << plan.out;  // 2*2*(8+8)*4*10*3
  EXPECT_TRUE(contains(plan.out, "256 bytes (256 B) a token")) << plan.out;
}

// L03: sizes beyond 32 bits are exact, beyond 64 bits an error.
TEST(Plan, L03LongContexts) {
  const tool_result long_context =
      run_headwise({"plan", "--shape", "80x64x8x128", "--type", "f16", "--length", "1000000"});
  EXPECT_TRUE(contains(long_context.out, "full 327,680,000,000 bytes")) << long_context.out;
  const tool_result beyond = run_headwise(
      {"plan", "--shape", "1048576x8x8x128", "--type", "f16", "--length", "1099511627776"});
  EXPECT_EQ(beyond.code, 1);
  EXPECT_TRUE(contains(beyond.err, "2^64")) << beyond.err;
}

TEST(Plan, SequenceLongerThanPositionsIsRefused) {
  const temporary_folder folder;
  const auto path = folder.path() / "b.json";
  save_blueprint(path, uniform_blueprint({2, 4, 2, 8}, make_spec(local_window(4)), "window"));
  const tool_result plan = run_headwise({"plan", path.string(), "--length", "4294967296"});
  EXPECT_EQ(plan.code, 1);
  EXPECT_TRUE(contains(plan.err, "4,294,967,296")) << plan.err;
  for (const char* command : {"plan", "inspect"}) {
    const tool_result one_more = run_headwise({command, path.string(), "--length", "4294967295"});
    EXPECT_EQ(one_more.code, 1);
    EXPECT_TRUE(contains(one_more.err, "--length") && contains(one_more.err, "4,294,967,294"))
        << one_more.err;
  }
  EXPECT_EQ(run_headwise({"plan", path.string()}).code, 2);  // the blueprint states no length
}

// Windows, sinks + windows and global, over two layers of three heads.
blueprint mixed_blueprint() {
  const special_tokens sinks(token_classes::sink);
  blueprint plan = uniform_blueprint({2, 6, 3, 16}, make_spec(global{}), "global", {4, {}});
  const auto set = [&](std::size_t head, std::string name, policy_spec policy) {
    plan.heads[head].name = std::move(name);
    plan.heads[head].policy = std::move(policy);
    plan.heads[head].resident_fraction = 0.5;
    plan.heads[head].forever_fraction = 0.0;
  };
  set(1, "window 7", make_spec(local_window(7)));
  set(2, "sinks + 32", make_spec(union_of(sinks, local_window(32))));
  set(3, "sinks", make_spec(sinks));
  set(5, "sinks + 500", make_spec(union_of(sinks, local_window(500))));
  plan.origin.length = 300;
  return plan;
}

template <row_codec Key, row_codec Value = Key>
std::size_t payload_of_real_cache(const blueprint& plan, token_count length) {
  cache_manager<builtin_policies, Key, Value> cache(plan, {});
  auto text = cache.open();
  const auto classifier = make_classifier(plan.tokens, 100);
  const std::vector<float> zeros(plan.shape.head_dim, 0.0F);
  const rows<const float> row(zeros.data(), 1, zeros.size());
  for (position pos = 0; pos < length; ++pos) {
    const token next = classifier.classify(7, pos);
    auto step = text.try_append({&next, 1});
    for (std::uint32_t layer = 0; layer < plan.shape.layers; ++layer)
      for (std::uint32_t head = 0; head < plan.shape.kv_heads; ++head)
        step->write({layer, head}, row, row);
    std::move(*step).commit();
  }
  return text.stats().payload_bytes;
}

TEST(Plan, BlueprintAgreesWithARealCache) {
  const temporary_folder folder;
  const auto path = (folder.path() / "b.json").string();
  const blueprint plan = mixed_blueprint();
  save_blueprint(path, plan);
  for (const token_count length : {1U, 4U, 5U, 36U, 37U, 300U, 700U}) {
    const auto printed = [&](const std::string& type) {
      return run_headwise({"plan", path, "--length", std::to_string(length), "--type", type}).out;
    };
    const auto kept = [](std::size_t bytes) {
      return "kept " + headwise_tool::with_commas(bytes) + " bytes";
    };
    EXPECT_TRUE(contains(printed("f16"), kept(payload_of_real_cache<f16>(plan, length))))
        << length << printed("f16");
    EXPECT_TRUE(contains(printed("f32"), kept(payload_of_real_cache<f32>(plan, length))))
        << length << printed("f32");
    EXPECT_TRUE(contains(printed("int8_row"), kept(payload_of_real_cache<int8_row>(plan, length))));
    const std::string mixed = printed("int8_row+int4_group");
    EXPECT_TRUE(contains(mixed, kept(payload_of_real_cache<int8_row, int4_group>(plan, length))));
    EXPECT_TRUE(contains(mixed, "int8_row+int4_group")) << mixed;
  }
  EXPECT_TRUE(contains(run_headwise({"plan", path}).out, "300 tokens"));
}

TEST(Plan, NamesTheTypesThatThereAre) {
  const tool_result plan =
      run_headwise({"plan", "--shape", "2x2x2x8", "--type", "int4", "--length", "8"});
  EXPECT_EQ(plan.code, 2);
  EXPECT_TRUE(contains(plan.err, "{f32,f16,bf16,int8_row,int8_row+int4_group}")) << plan.err;
}

}  // namespace
}  // namespace headwise_tests
