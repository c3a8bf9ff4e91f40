// SPDX-License-Identifier: Apache-2.0
//
// Fault case M01. The rule: one owner thread for each manager; while it opens no step and changes
// nothing, any threads may read.
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

constexpr headwise::model_shape narrow_heads{1, 4, 2, 16};
constexpr std::size_t threads = 8;

std::vector<test_policy> plan() {
  return {headwise::global{}, ids_and_window({0}, 5)};
}

// All that a const sequence can be asked.
std::vector<float> read(const engine<headwise::f16>& text) {
  std::vector<float> result(2 * 2 * 16);
  headwise::attend_scratch scratch(2, 16, text.text().length());
  const std::vector<float> query(2 * 16, 0.1F);
  for (std::uint32_t head = 0; head < 2; ++head)
    headwise::attend(text.text().head({0, head}), text.text().length() - 1, {query.data(), 2, 16},
                     0.25F, {result.data() + head * 2 * 16, 2, 16}, {}, scratch);
  result.push_back(static_cast<float>(text.text().stats().held_bytes()));
  result.push_back(static_cast<float>(text.text().rollback_blocker(2).has_value()));
  result.push_back(static_cast<float>(text.text().pages_needed(text.next_tokens({0, 0}))));
  return result;
}

template <class Work>
std::vector<std::vector<float>> in_threads(Work&& work) {
  std::vector<std::vector<float>> results(threads);
  std::vector<std::jthread> running;
  for (auto& result : results) running.emplace_back([&] { result = work(); });
  running.clear();  // joins
  return results;
}

TEST(fault_cases, M01_readers_share_a_const_sequence) {
  engine<headwise::f16> text(narrow_heads, plan(), random_fixture(1));
  text.feed(40);
  const std::vector<float> expected = read(text);
  for (const auto& result : in_threads([&] { return read(text); })) EXPECT_EQ(result, expected);
}

TEST(fault_cases, M01_managers_share_nothing) {
  const auto whole_life = [] {
    engine<headwise::f16> text(narrow_heads, plan(), random_fixture(2));
    std::vector<float> result = text.feed(30).values;
    const std::vector<float> after = read(text);
    result.insert(result.end(), after.begin(), after.end());
    return result;
  };
  const auto results = in_threads(whole_life);  // the first use of everything is in a thread
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_EQ(whole_life(), results[0]);
}

}  // namespace
}  // namespace headwise_tests
