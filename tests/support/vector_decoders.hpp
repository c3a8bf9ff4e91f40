// SPDX-License-Identifier: Apache-2.0
//
// What codec/row_vectors.hpp makes of a row, for each width that this machine has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "headwise/codec/row_vectors.hpp"

// The widths' namespaces are closed to those who are not in them.
HEADWISE_NAMESPACE_BEGIN
namespace detail {

#define HEADWISE_SIMD_TEXT "support/vector_decoders-inl.hpp"
#include "headwise/core/simd_widths-inl.hpp"

}  // namespace detail
HEADWISE_NAMESPACE_END

namespace headwise_tests {

using row_decoder = void (*)(const std::byte* row, std::span<float> out) noexcept;

template <class Codec>
[[nodiscard]] std::vector<row_decoder> vector_decoders() {
  std::vector<row_decoder> result{headwise::detail::simd_16::decode_by_vectors<Codec>};
#if defined(__x86_64__)
  if (headwise::has_simd(headwise::simd_width::avx2))
    result.push_back(headwise::detail::simd_32::decode_by_vectors<Codec>);
  if (headwise::has_simd(headwise::simd_width::avx512))
    result.push_back(headwise::detail::simd_64::decode_by_vectors<Codec>);
#endif
  return result;
}

}  // namespace headwise_tests
