// SPDX-License-Identifier: Apache-2.0
//
// Seeded numbers that are the same on every platform (the standard's distributions are not); or the
// choices that the bytes of a fuzzer make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace headwise_tests {

class random_source {
 public:
  explicit random_source(std::uint32_t seed) : engine_(seed) {}
  // Each choice is one byte of `bytes`, which outlive the source; floats, which decide nothing, are
  // seeded as ever.
  explicit random_source(std::span<const std::uint8_t> bytes)
      : engine_(1), bytes_(bytes), from_bytes_(true) {}

  // Whether the bytes are used up; further choices are 0.
  [[nodiscard]] bool is_spent() const noexcept { return from_bytes_ && bytes_.empty(); }

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
  [[nodiscard]] float number() {
    return static_cast<float>(static_cast<std::uint32_t>(engine_()) >> 8) * 0x1p-23F - 1.0F;
  }
  [[nodiscard]] std::vector<float> numbers(std::size_t count) {
    std::vector<float> result(count);
    for (float& x : result) x = number();
    return result;
  }
  [[nodiscard]] std::uint32_t bits() {
    return from_bytes_ ? next_byte() * 0x01010101U : static_cast<std::uint32_t>(engine_());
  }

 private:
  [[nodiscard]] std::uint32_t next_byte() noexcept {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

  std::mt19937 engine_;
  std::span<const std::uint8_t> bytes_;  // what is left
  bool from_bytes_ = false;
};

}  // namespace headwise_tests
