// SPDX-License-Identifier: Apache-2.0
#include "headwise/core/flat_vector.hpp"

#include <cstdint>
#include <limits>
#include <new>

#include <gtest/gtest.h>

namespace headwise_tests {
namespace {

using headwise::detail::flat_vector;

// Refuses, and remembers what it was asked for.
class asked_resource final : public std::pmr::memory_resource {
 public:
  std::size_t bytes = 0;

 private:
  void* do_allocate(std::size_t size, std::size_t) override {
    bytes = size;
    throw std::bad_alloc();
  }
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

// 12 * (2^64 / 12 + 1) is 8 in 64 bits.
TEST(flat_vector, a_size_that_wraps_is_no_small_allocation) {
  struct twelve {
    std::uint32_t a, b, c;
  };
  asked_resource memory;
  flat_vector<twelve> v(&memory);
  EXPECT_THROW(v.reserve(std::numeric_limits<std::size_t>::max() / sizeof(twelve) + 1),
               std::bad_alloc);
  EXPECT_GE(memory.bytes, std::size_t{std::numeric_limits<std::ptrdiff_t>::max()});
  EXPECT_EQ(v.capacity(), 0U);
}

}  // namespace
}  // namespace headwise_tests
