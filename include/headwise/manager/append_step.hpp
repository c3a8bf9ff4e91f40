// SPDX-License-Identifier: Apache-2.0
//
// append_step: one transaction of a sequence. For every head: write its rows, then read head() and
// attend; commit when all heads are written. A step that is destroyed uncommitted is cancelled, and
// then every head is bitwise as it was.
//
// Between try_append and commit any threads may write and attend different heads.
#pragma once

#include <cstring>
#include <utility>

#include "headwise/core/rows.hpp"
#include "headwise/manager/head_view.hpp"
#include "headwise/manager/sequence_state.hpp"

HEADWISE_NAMESPACE_BEGIN

template <class Policies, row_codec Key, row_codec Value>
class append_step {
 public:
  explicit append_step(detail::sequence_state<Policies>& state) noexcept : state_(&state) {}
  append_step(append_step&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  append_step& operator=(append_step&& other) noexcept {
    if (this != &other) {
      cancel();
      state_ = std::exchange(other.state_, nullptr);
    }
    return *this;
  }
  ~append_step() { cancel(); }

  // The tokens of the step, [n].
  [[nodiscard]] std::span<const token> tokens() const noexcept { return state().step_tokens(); }

  // keys, values: [n, head_dim], one row for each token of the step, keys as the kernel shall read
  // them (rotation is the engine's). Once for each head. O(n * head_dim).
  void write(head_id head, rows<const float> keys, rows<const float> values) noexcept {
    HEADWISE_EXPECTS(keys.count == tokens().size() && values.count == tokens().size(),
                     "write needs one key and one value row for each token of the step");
    HEADWISE_EXPECTS(keys.width == state().shape().head_dim && values.width == keys.width,
                     "the rows of write are not head_dim wide");
    state().write(state().index(head), [&](std::size_t i, const auto& slot) {
      Key::encode(keys[i], slot.key);
      Value::encode(values[i], slot.value);
    });
  }
  // keys: [n, Key::row_bytes(head_dim)] bytes, values likewise: rows that are encoded already.
  void write_encoded(head_id head, rows<const std::byte> keys,
                     rows<const std::byte> values) noexcept {
    HEADWISE_EXPECTS(keys.count == tokens().size() && values.count == tokens().size() &&
                         keys.width == state().layout().key_bytes &&
                         values.width == state().layout().value_bytes,
                     "write_encoded needs one row of the codec's size for each token of the step");
    state().write(state().index(head), [&](std::size_t i, const auto& slot) {
      std::memcpy(slot.key, keys[i].data(), keys.width);
      std::memcpy(slot.value, values[i].data(), values.width);
    });
  }

  // Copies the rows of the step's tokens from the head of another sequence of the same codecs and
  // head_dim, as they are encoded: what a sequence is refilled from whose plan became known after
  // its prompt. `from` must hold each row that this head stores, in its streams; one that is global
  // holds all. O(n * (streams + log(page_tokens)) + its pages).
  void write(head_id head, const head_view<Key, Value>& from) noexcept {
    HEADWISE_EXPECTS(from.head_dim() == state().shape().head_dim,
                     "the rows to copy are not head_dim wide");
    typename head_view<Key, Value>::row_finder source(from);
    state().write(state().index(head), [&](std::size_t i, const auto& slot) {
      const std::optional<slab> row = source.find(tokens()[i].pos);
      HEADWISE_EXPECTS(
          row.has_value() && row->keys != slot.key,
          "the head to copy from has given up a row of the step, or is the step's own");
      std::memcpy(slot.key, row->keys, state().layout().key_bytes);
      std::memcpy(slot.value, row->values, state().layout().value_bytes);
    });
  }

  // Heads that rank, in a last_query step, before their rows are written. column_sums: for each
  // position, [length + n], the probabilities summed over the step's queries and the group; without
  // the newest query where attend or observe will count it. The tokens whose lifetime has ended by
  // then are ranked once, by these sums. O(length + n * pool).
  void observe_prompt(head_id head, std::span<const float> column_sums) noexcept {
    state().observe_prompt(state().index(head), column_sums);
  }

  // What the step's queries see, the step's own rows included once they are written. A head that
  // ranks must be shown the attention of every query, in order: by attend or head_view::observe.
  [[nodiscard]] head_view<Key, Value> head(head_id id) const noexcept {
    return state().template view<Key, Value>(state().index(id), true);
  }

  // Keeps the step. Every head must have been written, unless the step has no tokens, and heads
  // that rank must have been shown its attention. O(heads), plus the rows that leave and, where
  // only the last query attended, the step's tokens.
  void commit() && noexcept {
    state().commit();
    state_ = nullptr;
  }

 private:
  [[nodiscard]] detail::sequence_state<Policies>& state() const noexcept {
    HEADWISE_EXPECTS(state_ != nullptr, "a step is used after its commit or after it was moved");
    return *state_;
  }
  void cancel() noexcept {
    if (state_ != nullptr) std::exchange(state_, nullptr)->cancel();
  }

  detail::sequence_state<Policies>* state_;
};

HEADWISE_NAMESPACE_END
