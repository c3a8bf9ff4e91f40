// SPDX-License-Identifier: Apache-2.0
//
// A row decoded by vectors of HEADWISE_SIMD_BYTES; vector_decoders.hpp includes this text.
#ifdef HEADWISE_SIMD_BYTES
#include "headwise/core/simd_begin-inl.hpp"

template <class Codec>
void decode_by_vectors(const std::byte* row, std::span<float> out) noexcept {
  const std::size_t d = out.size();
  std::size_t i = 0;
  for (; i + unit<Codec> <= d; i += unit<Codec>) {
    vec elements[unit<Codec> / lanes];
    load_vectors<Codec>(row, d, i, elements);
    std::memcpy(out.data() + i, elements, sizeof elements);
  }
  for (; i < d; i += lanes) {
    const vec elements = load_some<Codec>(row, d, i);
    std::memcpy(out.data() + i, &elements, std::min(lanes, d - i) * sizeof(float));
  }
}

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
