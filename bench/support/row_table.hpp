// SPDX-License-Identifier: Apache-2.0
//
// row_table: seeded keys or values of several heads, [heads, rows, head_dim]. Every element is a
// multiple of 1/64 below 2, which f16 holds exactly, so that caches with different element types
// must compute the same.
#pragma once

#include <cstdint>
#include <vector>

#include "headwise/core/rows.hpp"

namespace headwise_bench {

class row_table {
 public:
  row_table(std::uint64_t seed, std::size_t heads, std::size_t row_count, std::size_t width)
      : rows_(row_count), width_(width), elements_(heads * row_count * width) {
    // Knuth's 64-bit linear congruential generator: the same numbers everywhere.
    std::uint64_t state = seed + 1;
    for (float& element : elements_) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      element = (static_cast<float>((state >> 33) % 255) - 127.0F) / 64.0F;
    }
  }

  [[nodiscard]] std::size_t row_count() const { return rows_; }
  [[nodiscard]] headwise::rows<const float> view(std::size_t head, std::size_t first,
                                                 std::size_t count) const {
    return {elements_.data() + (head * rows_ + first) * width_, count, width_};
  }

 private:
  std::size_t rows_, width_;
  std::vector<float> elements_;
};

}  // namespace headwise_bench
