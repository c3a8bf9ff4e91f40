// SPDX-License-Identifier: Apache-2.0
//
// allocation_watch: what was asked of operator new while it lives, by whomever. Every test program
// links allocation_watch.cpp, which replaces operator new. One watch at a time.
#pragma once

#include <atomic>
#include <cstddef>

namespace headwise_tests {

inline std::atomic<std::size_t> largest_request{0};
inline std::atomic<std::size_t> request_count{0};

class allocation_watch {
 public:
  allocation_watch() : before_(request_count) { largest_request = 0; }
  [[nodiscard]] std::size_t largest() const { return largest_request; }  // bytes
  [[nodiscard]] std::size_t count() const { return request_count - before_; }

 private:
  std::size_t before_;
};

}  // namespace headwise_tests
