// SPDX-License-Identifier: Apache-2.0
//
// Threads that share the heads of a profile, as profiler.hpp says: the blueprint has the same bytes
// for any number of them. Run under the thread sanitizer as well.

#include <thread>

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/made_blueprint.hpp"
#include "support/shared_work.hpp"

namespace headwise_tests {
namespace {

std::string profile_by_threads(const shared_work& work, std::uint32_t count) {
  std::vector<headwise::profiler<>> parts;
  for (std::uint32_t i = 0; i < count; ++i) parts.push_back(work.empty({i, count}));
  std::vector<std::thread> threads;
  for (headwise::profiler<>& part : parts)
    threads.emplace_back([&work, &part] { work.measure(part); });
  for (std::thread& thread : threads) thread.join();
  return text_of(headwise::profiler<>::join(parts).plan({}));
}

TEST(profile_threads, of_any_number_write_the_same_bytes) {
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    const shared_work work(seed);
    const std::string expected = text_of(work.measured({}).plan({}));
    for (const std::uint32_t count : {1U, 2U, 3U, 8U})
      EXPECT_EQ(profile_by_threads(work, count), expected) << count << " threads, seed " << seed;
  }
}

}  // namespace
}  // namespace headwise_tests
