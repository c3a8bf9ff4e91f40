// SPDX-License-Identifier: Apache-2.0
//
// The contract of a row codec: how one key or value row [head_dim] of float is laid out in bytes.
// A codec is stateless; a row depends on nothing but its own elements, so rows may be evicted,
// copied, forked and restored as bytes. Rows are encoded once and never again.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include "headwise/core/config.hpp"

HEADWISE_NAMESPACE_BEGIN

// row_bytes(d): the bytes of one encoded row of d elements.
// encode(in [d], dst [row_bytes(d)]), decode(src [row_bytes(d)], out [d]): any alignment, O(d).
template <class C>
concept row_codec = requires(std::size_t d, std::span<const float> in, std::byte* dst,
                             const std::byte* src, std::span<float> out) {
  { C::name } -> std::convertible_to<std::string_view>;
  { C::row_bytes(d) }
  noexcept->std::same_as<std::size_t>;
  { C::encode(in, dst) }
  noexcept->std::same_as<void>;
  { C::decode(src, out) }
  noexcept->std::same_as<void>;
};

HEADWISE_NAMESPACE_END
