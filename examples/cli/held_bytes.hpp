// SPDX-License-Identifier: Apache-2.0
//
// What a cache holds while a text goes through it, measured at its memory resource.
#pragma once

#include <cstdint>

#include "cache_type.hpp"

#include "headwise/blueprint/blueprint.hpp"
#include "headwise/manager/cache_config.hpp"
#include "support/measured_memory.hpp"

namespace headwise_tool {

// Tokens that go through an evaluated cache together; its bytes are read after each step.
inline constexpr std::size_t step_tokens = 32;

// Small pages, none reserved: what is held is what is used.
[[nodiscard]] headwise::cache_config evaluated_cache(measured_memory& memory) noexcept;

// The window of every head, behind the `sinks` first tokens.
[[nodiscard]] headwise::blueprint uniform_window_plan(const headwise::model_shape& shape,
                                                      headwise::token_count sinks,
                                                      headwise::token_count window);

// The smallest such window whose cache holds at least `wanted` bytes, on average over the steps of
// a text of `length` tokens; at most `length`. Found by feeding caches of empty rows.
[[nodiscard]] headwise::token_count window_that_holds(double wanted,
                                                      const headwise::model_shape& shape,
                                                      headwise::token_count sinks,
                                                      headwise::token_count length,
                                                      cache_type type);

}  // namespace headwise_tool
