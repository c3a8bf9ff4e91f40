// SPDX-License-Identifier: Apache-2.0
//
// Whether a form of the takeover computes what stock llama.cpp does, on this model, processor and
// build. A few tokens at once and some one by one, with rows of 32 bits, in one context: once with
// llama.cpp's own attention, once with ours. Each layer's output is held against the attention
// computed in double from the layer's own rows and queries, with the scale that the graph states:
// llama.cpp's within what 16 bits round, ours within what 32 bits do, so that a scale that is off
// by 2 % shows. In the end the logits of both are compared. Two prompts' worth of time, once at
// start. By the owner thread.
#pragma once

#include <string>

#include "hooked_context.hpp"

#include "headwise/core/types.hpp"

namespace headwise_llama_cpp {

// Of the store that find_difference() takes: with rows of 32 bits and every head global.
[[nodiscard]] row_store_sizes self_check_sizes(std::size_t workers) noexcept;

// Empty: they agree, and the hook has been left at `form`, without rows. Else the first thing that
// does not, and the context is of no more use. rows: an empty sequence, which is used. Throws
// headwise::error where already the stock graph shows what the adapter cannot take, or layers that
// are not those of rows.shape().
[[nodiscard]] std::string find_difference(const llama_model& model, hooked_context& context,
                                          graph_form form, row_store& rows);

}  // namespace headwise_llama_cpp
