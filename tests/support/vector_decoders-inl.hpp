// SPDX-License-Identifier: Apache-2.0
//
// A row decoded by vectors of HEADWISE_SIMD_BYTES; vector_decoders.hpp includes this text.
#ifdef HEADWISE_SIMD_BYTES
#include "headwise/core/simd_begin-inl.hpp"

template <class Codec>
void decode_by_vectors(const std::byte* row, std::span<float> out) noexcept {
  for (std::size_t i = 0; i < out.size(); i += lanes) {
    const std::size_t count = std::min(lanes, out.size() - i);
    const vec elements = load_at<Codec>(row, out.size(), i, count);
    std::memcpy(out.data() + i, &elements, count * sizeof(float));
  }
}

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
