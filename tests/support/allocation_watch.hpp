// SPDX-License-Identifier: Apache-2.0
//
// allocation_watch: what was asked of operator new while it lives, by whomever; allocation_refusal:
// lets it refuse. Every test program links allocation_watch.cpp, which replaces operator new, that
// of shared libraries too. One of each at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>

namespace headwise_tests {

inline std::atomic<std::size_t> largest_request{0};
inline std::atomic<std::size_t> request_count{0};
inline constexpr std::size_t no_refusal = std::numeric_limits<std::size_t>::max();
inline std::atomic<std::size_t> requests_to_meet{no_refusal};

class allocation_watch {
 public:
  allocation_watch() : before_(request_count) { largest_request = 0; }
  [[nodiscard]] std::size_t largest() const { return largest_request; }  // bytes
  [[nodiscard]] std::size_t count() const { return request_count - before_; }

 private:
  std::size_t before_;
};

// `more` requests are met while it lives, and no others.
class allocation_refusal {
 public:
  explicit allocation_refusal(std::size_t more) { requests_to_meet = more; }
  allocation_refusal(const allocation_refusal&) = delete;
  allocation_refusal& operator=(const allocation_refusal&) = delete;
  ~allocation_refusal() { requests_to_meet = no_refusal; }
};

}  // namespace headwise_tests
