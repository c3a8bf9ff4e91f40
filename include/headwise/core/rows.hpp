// SPDX-License-Identifier: Apache-2.0
//
// rows<T>: a row-major view [count, width] with a stride in elements; owns nothing, and is valid
// while what it views is. It checks no bounds.
//
// O(1) throughout. A value: any number of threads may copy and read one; what they may do with the
// elements is their owner's to say.
#pragma once

#include <cstddef>
#include <span>

#include "headwise/core/config.hpp"

HEADWISE_NAMESPACE_BEGIN

template <class T>
struct rows {
  T* data = nullptr;
  std::size_t count = 0;
  std::size_t width = 0;
  std::size_t stride = 0;  // elements from one row to the next; 0 repeats a row that is only read

  constexpr rows() = default;
  constexpr rows(T* first, std::size_t row_count, std::size_t row_width,
                 std::size_t row_stride) noexcept
      : data(first), count(row_count), width(row_width), stride(row_stride) {}
  // Dense: stride == width.
  constexpr rows(T* first, std::size_t row_count, std::size_t row_width) noexcept
      : rows(first, row_count, row_width, row_width) {}
  // A mutable view reads as a const one.
  constexpr operator rows<const T>() const noexcept { return {data, count, width, stride}; }

  // i: below count.
  [[nodiscard]] constexpr std::span<T> operator[](std::size_t i) const noexcept {
    return {data + i * stride, width};
  }
};

HEADWISE_NAMESPACE_END
