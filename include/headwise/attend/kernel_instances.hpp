// SPDX-License-Identifier: Apache-2.0
//
// For programs of many units: define HEADWISE_EXTERN_KERNELS in all of them, include this header in
// one, and the loops of decode attention are compiled there alone. Units with and without the macro
// go together, at one HEADWISE_CHECK_LEVEL. Without the macro this header does nothing.
#pragma once

#include "headwise/attend/row_kernels.hpp"

#ifdef HEADWISE_EXTERN_KERNELS
HEADWISE_NAMESPACE_BEGIN
namespace detail {

template row_kernels row_kernels_at<f32>(simd_width) noexcept;
template row_kernels row_kernels_at<f16>(simd_width) noexcept;
template row_kernels row_kernels_at<bf16>(simd_width) noexcept;
template row_kernels row_kernels_at<int8_row>(simd_width) noexcept;
template row_kernels row_kernels_at<int4_group>(simd_width) noexcept;

}  // namespace detail
HEADWISE_NAMESPACE_END
#endif  // HEADWISE_EXTERN_KERNELS
