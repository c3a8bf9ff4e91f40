// SPDX-License-Identifier: Apache-2.0
//
// Rows of all the kinds that a codec with a step has trouble with: any magnitude, far from zero,
// equal elements, one that stands out, nothing but zeros, elements below 2^-126, elements of 2^127.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "support/random.hpp"

namespace headwise_tests {

[[nodiscard]] inline std::vector<float> varied_row(random_source& random, std::size_t d) {
  std::vector<float> row = random.numbers(d);
  const auto magnitude = static_cast<float>(std::pow(10.0, 30.0 * double{random.number()}));
  const std::size_t one = random.below(static_cast<std::uint32_t>(d));
  const auto fill_all = [&](auto&& element) {
    for (float& x : row) x = element(x);
  };
  switch (random.below(11)) {
    case 0:
      fill_all([&](float x) { return x * magnitude; });
      break;
    case 1:  // each of a magnitude of its own
      fill_all([&](float x) {
        return x * static_cast<float>(std::pow(10.0, 30.0 * double{random.number()}));
      });
      break;
    case 2:  // far from zero, on either side
      fill_all([&, side = row[one] < 0.0F ? -1.0F : 1.0F](float x) {
        return magnitude * (x * 0.01F + side);
      });
      break;
    case 3: {
      const float all = row[one] * magnitude;
      fill_all([&](float) { return all; });
      break;
    }
    case 4: {
      const float hot = row[one] * magnitude;
      fill_all([&](float) { return 0.0F; });
      row[one] = hot;
      break;
    }
    case 5:
      row[one] = magnitude;
      break;
    case 6:
      fill_all([&](float x) { return x < 0.0F ? -0.0F : 0.0F; });
      break;
    case 7:
      fill_all([&](float x) { return x * 0x1p-126F; });
      break;
    case 8:
      fill_all([&](float x) { return x * (random.one_in(2) ? 0x1p-124F : 0x1p-127F); });
      break;
    case 9:
      fill_all([&](float x) { return x * 0x1p127F; });
      break;
    default:  // both ends, nothing between
      fill_all([&](float x) { return x < 0.0F ? -0x1p127F : 0x1p127F; });
      break;
  }
  return row;
}

}  // namespace headwise_tests
