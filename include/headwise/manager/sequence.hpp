// SPDX-License-Identifier: Apache-2.0
//
// sequence: the cached tokens of one text. Move-only; must be closed (destroyed) before its
// manager. One owner thread; const calls may run on any threads while none writes.
#pragma once

#include <memory>

#include "headwise/manager/append_step.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

// Frees a state with the memory resource that it came from.
template <class Policies>
class state_deleter {
 public:
  explicit state_deleter(std::pmr::memory_resource* memory = nullptr,
                         std::size_t* sequences = nullptr) noexcept
      : memory_(memory), sequences_(sequences) {}
  void operator()(sequence_state<Policies>* state) const noexcept {
    state->~sequence_state();
    memory_->deallocate(state, sizeof(*state), alignof(sequence_state<Policies>));
    --*sequences_;
  }
  [[nodiscard]] std::pmr::memory_resource* memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t* sequences() const noexcept { return sequences_; }

 private:
  std::pmr::memory_resource* memory_;
  std::size_t* sequences_;  // open sequences of the manager
};

template <class Policies>
using state_ptr = std::unique_ptr<sequence_state<Policies>, state_deleter<Policies>>;

struct saved_access;  // saved_sequence.hpp

// Throws what the memory resource throws.
template <class Policies, class... Args>
[[nodiscard]] state_ptr<Policies> make_state(std::pmr::memory_resource* memory,
                                             std::size_t* sequences, Args&&... args) {
  using state_type = sequence_state<Policies>;
  // Frees the memory if the constructor throws.
  struct room {
    std::pmr::memory_resource* memory;
    void* block;
    ~room() {
      if (block != nullptr) memory->deallocate(block, sizeof(state_type), alignof(state_type));
    }
  } room{memory, memory->allocate(sizeof(state_type), alignof(state_type))};
  auto* const state = ::new (room.block) state_type(std::forward<Args>(args)..., memory);
  room.block = nullptr;
  ++*sequences;
  return state_ptr<Policies>(state, state_deleter<Policies>(memory, sequences));
}

}  // namespace detail

template <class Policies, row_codec Key, row_codec Value>
class sequence {
 public:
  using policy = typename Policies::variant;
  using step = append_step<Policies, Key, Value>;

  explicit sequence(detail::state_ptr<Policies> state) noexcept : state_(std::move(state)) {}

  // Opens a step for tokens at the positions length() .. length() + n. nullopt where the pages or
  // the memory do not suffice or the sequence would pass max_length; then nothing changed. No step
  // may be open. n = 0 is a step without rows. The tokens are copied. O(heads * n).
  [[nodiscard]] std::optional<step> try_append(
      std::span<const token> tokens, attend_scope scope = attend_scope::every_query) noexcept {
    if (!state().try_begin(tokens, scope)) return std::nullopt;
    return std::optional<step>(std::in_place, state());
  }
  [[nodiscard]] std::optional<step> try_append(const token& next) noexcept {
    return try_append(std::span<const token>(&next, 1));
  }
  // The pages that this step would take from the manager's pool. O(heads * n).
  [[nodiscard]] std::size_t pages_needed(
      std::span<const token> tokens,
      attend_scope scope = attend_scope::every_query) const noexcept {
    return state().pages_needed(tokens, scope);
  }

  // Takes back the last n tokens: exact, or false and unchanged. Succeeds back to rollback_horizon
  // tokens behind the greatest length so far, and further while nothing that the next query sees
  // has been freed; a head of several lifetimes may refuse already where a freed token of the same
  // lifetime is among those taken back, and no head that ranks goes back into a last_query prompt.
  // False also where n > length(). O(heads + rows dropped).
  [[nodiscard]] bool try_rollback(token_count n) noexcept {
    return n <= length() && try_truncate(length() - n);
  }
  // The same, told by the length to go back to; false where it is above length().
  [[nodiscard]] bool try_truncate(token_count new_length) noexcept {
    return state().try_truncate(new_length);
  }
  // Why try_rollback(n) says no for n <= length(); nullopt where it would succeed.
  [[nodiscard]] std::optional<rollback_refusal> rollback_blocker(token_count n) const noexcept {
    HEADWISE_EXPECTS(n <= length(), "a rollback of more tokens than the sequence has");
    return state().rollback_blocker(length() - n);
  }

  // A second sequence with the same tokens; pages are shared until one side writes into them. By
  // the owner thread, as it counts in the manager. No step may be open. Throws std::bad_alloc where
  // the memory resource refuses. O(pages).
  [[nodiscard]] sequence fork() {
    const auto& deleter = state_.get_deleter();
    return sequence(detail::make_state<Policies>(deleter.memory(), deleter.sequences(),
                                                 std::as_const(state())));
  }

  // What the newest query sees, as far back as head_view::first_query says; right after a rollback
  // perhaps only what the next one will.
  [[nodiscard]] head_view<Key, Value> head(head_id id) const noexcept {
    return state().template view<Key, Value>(state().index(id), false);
  }
  [[nodiscard]] token_count length() const noexcept { return state().length(); }
  // [layers * kv_heads], layer-major.
  [[nodiscard]] std::span<const policy> plan() const noexcept { return state().plan(); }
  // No step may be open.
  [[nodiscard]] cache_stats stats() const noexcept { return state().stats(); }

 private:
  friend struct detail::saved_access;

  [[nodiscard]] detail::sequence_state<Policies>& state() const noexcept {
    HEADWISE_EXPECTS(state_ != nullptr, "a sequence is used after it was moved");
    return *state_;
  }

  detail::state_ptr<Policies> state_;
};

HEADWISE_NAMESPACE_END
