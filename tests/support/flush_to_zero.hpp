// SPDX-License-Identifier: Apache-2.0
//
// flush_to_zero: while it lives, floats below 2^-126 are taken for 0 and become 0, as many engines
// set their processors. is_possible() is false where a processor has no such mode that is known
// here.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headwise_tests {

class flush_to_zero {
 public:
  [[nodiscard]] static constexpr bool is_possible() noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
    return true;
#else
    return false;
#endif
  }
  flush_to_zero() noexcept : before_(read()) {
    write(before_ | mode);
  }
  ~flush_to_zero() {
    write(before_);
  }
  flush_to_zero(const flush_to_zero&) = delete;
  flush_to_zero& operator=(const flush_to_zero&) = delete;

 private:
#if defined(__x86_64__)
  using control = std::uint32_t;
  static constexpr control mode = 0x8040;  // results, and operands
  [[nodiscard]] static control read() noexcept {
    return _mm_getcsr();
  }
  static void write(control to) noexcept {
    _mm_setcsr(to);
  }
#elif defined(__aarch64__)
  using control = std::uint64_t;
  static constexpr control mode = std::uint64_t{1} << 24;
  [[nodiscard]] static control read() noexcept {
    control now;
    asm volatile("mrs %0, fpcr" : "=r"(now));
    return now;
  }
  static void write(control to) noexcept {
    asm volatile("msr fpcr, %0" : : "r"(to) : "memory");
  }
#else
  using control = int;
  static constexpr control mode = 0;
  [[nodiscard]] static control read() noexcept {
    return 0;
  }
  static void write(control) noexcept {}
#endif

  control before_;
};

}  // namespace headwise_tests
