// SPDX-License-Identifier: Apache-2.0
//
// row_kernels: the loops of decode attention over rows, for each width of vector that a processor
// may have (row_kernels-inl.hpp). Which one is asked of the processor at run time, so a build
// without -march takes the best; no option of the consumer's changes but inside these functions.
//
//   weights[g, r] = scale * <queries[g], row r>              dots,    O(group * rows * head_dim)
//   out[g]       += sum over r of weights[g, r] * row r      sums,    the same
//   logits become probabilities, returns log(sum(exp))       softmax, O(n), and its steps
//
// In dots, queries become integers of 16 bits for rows of int8_row and int4_group that fill a
// vector of codes, of head_dim 512 at most: as if each key were off by up to a 511th of a step, for
// the query's largest element (a 257th for int8_row above head_dim 257). Elements of such keys must
// stay below 2^100 in size. Of every eight query heads where one is no number, or is above 2^100 or
// below 2^-100 in size, all are multiplied as floats.
//
// queries, out: [group, head_dim]; a row: [Codec::row_bytes(head_dim)] bytes, any alignment.
// Pure: any number of threads. Each unit that attends compiles them, unless the program defines
// HEADWISE_EXTERN_KERNELS (kernel_instances.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "headwise/codec/row_vectors.hpp"
#include "headwise/core/rows.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

// Some of the rows that a query sees, each where it lies. They are read eight at a time, an eighth
// of the block apart: rows of different pages, whose lines come from memory side by side. So the
// order in which rows are added up depends on their number alone.
using row_block = std::span<const std::byte* const>;

// Rows that all have a logit of -inf get the weight 0, and -inf is the log of their sum: so parts
// of what a query sees may consist of them. Subtracted from logits, whose greatest is top:
[[nodiscard]] inline float base_of(float top) noexcept {
  return top == -std::numeric_limits<float>::infinity() ? 0.0F : top;
}
[[nodiscard]] inline float inverse_of(double sum) noexcept {
  return sum == 0.0 ? 0.0F : static_cast<float>(1.0 / sum);
}

#define HEADWISE_SIMD_TEXT "headwise/attend/row_kernels-inl.hpp"
#include "headwise/core/simd_widths-inl.hpp"
#define HEADWISE_SIMD_TEXT "headwise/attend/integer_queries-inl.hpp"
#include "headwise/core/simd_widths-inl.hpp"
#define HEADWISE_SIMD_TEXT "headwise/attend/integer_dots-inl.hpp"
#include "headwise/core/simd_widths-inl.hpp"

// The loops over the rows of one codec.
struct row_kernels {
  void (*dots)(row_block, const rows<const float>& queries, float scale, float* weights,
               std::size_t stride) noexcept;
  void (*sums)(row_block, const float* weights, std::size_t stride,
               const rows<float>& out) noexcept;
};
template <vectorised_codec Codec>
[[nodiscard]] row_kernels row_kernels_at(simd_width width) noexcept {
  if constexpr (affine_codec<Codec>) {
#if defined(__x86_64__)
    if (width == simd_width::avx512) return {simd_64::integer_dots<Codec>, simd_64::sums<Codec>};
    if (width == simd_width::avx2) return {simd_32::integer_dots<Codec>, simd_32::sums<Codec>};
#endif
    return {simd_16::integer_dots<Codec>, simd_16::sums<Codec>};
  }
#if defined(__x86_64__)
  if (width == simd_width::avx512) return {simd_64::dots<Codec>, simd_64::sums<Codec>};
  if (width == simd_width::avx2) return {simd_32::dots<Codec>, simd_32::sums<Codec>};
#endif
  static_cast<void>(width);
  return {simd_16::dots<Codec>, simd_16::sums<Codec>};
}
#ifdef HEADWISE_EXTERN_KERNELS
extern template row_kernels row_kernels_at<f32>(simd_width) noexcept;
extern template row_kernels row_kernels_at<f16>(simd_width) noexcept;
extern template row_kernels row_kernels_at<bf16>(simd_width) noexcept;
extern template row_kernels row_kernels_at<int8_row>(simd_width) noexcept;
extern template row_kernels row_kernels_at<int4_group>(simd_width) noexcept;
#endif
// The loops over logits.
struct logit_kernels {
  float (*softmax)(std::span<float>) noexcept;
  float (*top_of)(std::span<const float>) noexcept;
  double (*exponentials)(std::span<float>, float top) noexcept;
  void (*multiply_by)(std::span<float>, float factor) noexcept;
};
[[nodiscard]] inline logit_kernels logit_kernels_at(simd_width width) noexcept {
#if defined(__x86_64__)
  if (width == simd_width::avx512)
    return {simd_64::softmax, simd_64::top_of, simd_64::exponentials, simd_64::multiply_by};
  if (width == simd_width::avx2)
    return {simd_32::softmax, simd_32::top_of, simd_32::exponentials, simd_32::multiply_by};
#endif
  static_cast<void>(width);
  return {simd_16::softmax, simd_16::top_of, simd_16::exponentials, simd_16::multiply_by};
}

}  // namespace detail

HEADWISE_NAMESPACE_END
