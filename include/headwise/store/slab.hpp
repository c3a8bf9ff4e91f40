// SPDX-License-Identifier: Apache-2.0
//
// slab: a contiguous run of encoded rows with their positions; what a kernel reads. A view: valid
// until the next commit, cancel, rollback or close of its sequence.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headwise/core/types.hpp"

HEADWISE_NAMESPACE_BEGIN

struct slab {
  const position* positions = nullptr;  // [count], ascending but in a ranked pool
  const std::byte* keys = nullptr;      // [count, Key::row_bytes(head_dim)], dense
  const std::byte* values = nullptr;    // [count, Value::row_bytes(head_dim)], dense
  std::uint32_t count = 0;              // rows; at least 1 in a view
};

HEADWISE_NAMESPACE_END
