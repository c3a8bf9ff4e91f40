// SPDX-License-Identifier: Apache-2.0
//
// Expectations for templates: unlike the macros of the framework they compile once, not once for
// each instantiation.
#pragma once

#include <cmath>
#include <cstddef>

#include <gtest/gtest.h>

namespace headwise_tests {

inline void expect_equal(std::size_t got, std::size_t expected, const char* what) {
  if (got != expected) ADD_FAILURE() << what << " is " << got << ", not " << expected;
}
inline void expect_near(float got, double expected, double bound, const char* what) {
  if (!(std::abs(double{got} - expected) <= bound))
    ADD_FAILURE() << what << " is " << got << ", not " << expected;
}
inline void expect(bool condition, const char* what) {
  if (!condition) ADD_FAILURE() << "not so: " << what;
}

}  // namespace headwise_tests
