// SPDX-License-Identifier: Apache-2.0
#include "headwise/core/flat_vector.hpp"

#include <cstdint>
#include <limits>
#include <new>

#include <gtest/gtest.h>

#include "support/counting_resource.hpp"

namespace headwise_tests {
namespace {

using headwise::detail::flat_vector;

// 12 * (2^64 / 12 + 1) is 8 in 64 bits.
TEST(flat_vector, a_size_that_wraps_is_no_small_allocation) {
  struct twelve {
    std::uint32_t a, b, c;
  };
  counting_resource memory;
  flat_vector<twelve> v(&memory);
  EXPECT_THROW(v.reserve(std::numeric_limits<std::size_t>::max() / sizeof(twelve) + 1),
               std::bad_alloc);
  EXPECT_EQ(v.capacity(), 0U);
  EXPECT_EQ(memory.bytes(), 0U);
}

}  // namespace
}  // namespace headwise_tests
