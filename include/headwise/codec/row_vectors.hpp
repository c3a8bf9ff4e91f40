// SPDX-License-Identifier: Apache-2.0
//
// Rows of a codec as vectors of float, for each width that a processor may have: what loops over
// encoded rows are written with. detail::simd_16, simd_32 and simd_64 hold the same names.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"
#include "headwise/core/simd.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

// Codecs whose elements share a step, for 32 of them at least.
template <class Codec>
concept affine_codec = std::same_as<Codec, int8_row> || std::same_as<Codec, int4_group>;
// Codecs that have kernels.
template <class Codec>
concept vectorised_codec = affine_codec<Codec> || std::same_as<Codec, f32> ||
    std::same_as<Codec, f16> || std::same_as<Codec, bf16>;

#define HEADWISE_SIMD_TEXT "headwise/codec/row_vectors-inl.hpp"
#include "headwise/core/simd_widths-inl.hpp"

}  // namespace detail
HEADWISE_NAMESPACE_END
