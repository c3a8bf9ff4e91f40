// SPDX-License-Identifier: Apache-2.0
//
// claims: what an example program says about itself, checked. main returns exit_code().
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

class claims {
 public:
  void check(bool holds, const char* claim) {
    std::printf("%s  %s\n", holds ? "holds " : "FAILED", claim);
    failed_ |= !holds;
  }
  // Something on the way that has to work and is not what the program is about.
  void require(bool worked) {
    if (!worked) check(false, "every step on the way worked");
  }
  [[nodiscard]] int exit_code() const { return failed_ ? 1 : 0; }

 private:
  bool failed_ = false;
};

// The largest difference of two outputs of the same size.
inline float difference(std::span<const float> a, std::span<const float> b) {
  float worst = 0.0F;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}
