// SPDX-License-Identifier: Apache-2.0
//
// cache_config: how a cache_manager takes memory. attend_scope: which queries of a step will look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>

#include "headwise/core/types.hpp"

HEADWISE_NAMESPACE_BEGIN

inline constexpr std::size_t unlimited_pages = std::numeric_limits<std::size_t>::max();

struct cache_config {
  // Row slots of a page. Small pages waste less, rows of large ones are read faster. Where pages
  // are neither limited nor reserved, windows of up to eight pages, and the first page_tokens rows
  // that a head keeps for good, lie in pages of a quarter of it, but not below 8; else all are
  // alike.
  std::uint32_t page_tokens = 32;
  // Pages that may be in use at once, over all sequences. A step that needs more is refused.
  std::size_t pages = unlimited_pages;
  // Pages taken at construction and kept; the others come one by one from `memory` and go back to
  // it when free. With reserved_pages == pages no append ever asks `memory` for a page.
  std::size_t reserved_pages = 0;
  // A sequence may always be rolled back to this many tokens behind the greatest length that it
  // had; rows stay that much longer. Not into a prompt by which heavy hitters were ranked at once.
  token_count rollback_horizon = 0;
  // Tokens of a step that a sequence has room for from the start; a longer step asks `memory` once.
  std::size_t step_tokens = 1;
  // All rows, pages, tables and states come from here. Not so the policies of a manager's plan and
  // the id sets that they share, which are made before there is a manager.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

enum class attend_scope {
  every_query,  // each token of the step attends: chunks, drafts, decode
  last_query,   // only the newest does: a prompt whose attention the engine computed by itself;
                // rows that the newest cannot see are not stored at all
};

HEADWISE_NAMESPACE_END
