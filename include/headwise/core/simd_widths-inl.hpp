// SPDX-License-Identifier: Apache-2.0
//
// Includes HEADWISE_SIMD_TEXT, a header that is written once over vectors of HEADWISE_SIMD_BYTES,
// for each width that a processor of the architecture may have; alone it is empty.
#ifdef HEADWISE_SIMD_TEXT

#define HEADWISE_SIMD_BYTES 16
#include HEADWISE_SIMD_TEXT
#if defined(__x86_64__)
#define HEADWISE_SIMD_BYTES 32
#include HEADWISE_SIMD_TEXT
#define HEADWISE_SIMD_BYTES 64
#include HEADWISE_SIMD_TEXT
#endif

#undef HEADWISE_SIMD_TEXT
#endif  // HEADWISE_SIMD_TEXT
