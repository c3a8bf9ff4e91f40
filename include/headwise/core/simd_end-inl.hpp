// SPDX-License-Identifier: Apache-2.0
//
// Closes what simd_begin-inl.hpp opened.
#ifdef HEADWISE_SIMD_BYTES

}  // namespace
#if HEADWISE_SIMD_BYTES > 16
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

#endif  // HEADWISE_SIMD_BYTES
