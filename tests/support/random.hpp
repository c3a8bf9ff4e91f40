// SPDX-License-Identifier: Apache-2.0
//
// Seeded numbers that are the same on every platform (the standard's distributions are not).
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace headwise_tests {

class random_source {
 public:
  explicit random_source(std::uint32_t seed) : engine_(seed) {}

  // 0 .. bound - 1
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{bits()} * bound) >> 32);
  }
  // low .. high, both included
  [[nodiscard]] std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + below(high - low + 1);
  }
  [[nodiscard]] bool one_in(std::uint32_t n) { return below(n) == 0; }
  // [-1, 1)
  [[nodiscard]] float number() { return static_cast<float>(bits() >> 8) * 0x1p-23F - 1.0F; }
  [[nodiscard]] std::vector<float> numbers(std::size_t count) {
    std::vector<float> result(count);
    for (float& x : result) x = number();
    return result;
  }
  [[nodiscard]] std::uint32_t bits() { return static_cast<std::uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

}  // namespace headwise_tests
