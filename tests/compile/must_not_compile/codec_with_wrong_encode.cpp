// SPDX-License-Identifier: Apache-2.0
// A codec writes bytes; one that writes floats is not one.
// refused: C::encode\(in, dst\).*invalid
#include "headwise/manager/cache_manager.hpp"

struct plain {
#ifdef CORRECTED
  using stored = std::byte;
#else
  using stored = float;
#endif
  static constexpr std::string_view name = "plain";
  static std::size_t row_bytes(std::size_t d) noexcept {
    return 4 * d;
  }
  static void encode(std::span<const float>, stored*) noexcept {}
  static void decode(const std::byte*, std::span<float>) noexcept {}
};

static_assert(headwise::row_codec<plain>);
using cache = headwise::cache_manager<headwise::builtin_policies, plain>;
