// SPDX-License-Identifier: Apache-2.0
//
// The contract of a step's tokens, at check level 1: positions that go on where the sequence ends,
// and ids where a policy decides by them. O(tokens), O(heads) more where an id is missing.
#pragma once

#include <span>
#include <string>

#include "headwise/policy/policy_list.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

[[noreturn]] inline void reject_position(std::size_t got, std::size_t next) noexcept {
  const std::string message =
      "position " + std::to_string(got) +
      (got < next ? " is already stored, next is " : " leaves a gap, next is ") +
      std::to_string(next);
  contract_broken(__FILE__, __LINE__, "token.pos == length", message.c_str());
}

template <class Policy>
void require_ids_unused(std::span<const Policy> plan, std::size_t kv_heads, position pos) noexcept {
  for (std::size_t head = 0; head < plan.size(); ++head) {
    if (!facts_of(plan[head]).needs_token_ids) continue;
    const std::string message = "layer " + std::to_string(head / kv_heads) + " head " +
                                std::to_string(head % kv_heads) +
                                ": its policy decides by token ids, and the token at position " +
                                std::to_string(pos) + " has none";
    contract_broken(__FILE__, __LINE__, "token.id >= 0", message.c_str());
  }
}

template <class Policy>
void check_tokens([[maybe_unused]] std::span<const token> tokens,
                  [[maybe_unused]] token_count length,
                  [[maybe_unused]] std::span<const Policy> plan,
                  [[maybe_unused]] std::size_t kv_heads) noexcept {
#if HEADWISE_CHECK_LEVEL >= 1
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].pos != length + i) reject_position(tokens[i].pos, length + i);
    if (tokens[i].id < 0) require_ids_unused(plan, kv_heads, tokens[i].pos);
  }
#endif
}

}  // namespace detail
HEADWISE_NAMESPACE_END
