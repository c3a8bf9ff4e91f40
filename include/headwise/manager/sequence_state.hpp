// SPDX-License-Identifier: Apache-2.0
//
// The state of one sequence: a policy and a few streams for each head, its length, its open step.
// Everything here works in numbers of rows and bytes; codecs join in append_step.hpp.
//
// With N the length after a step, keep_from is the first query that must still be answered:
//   during the step   min(first attending query, N - horizon)
//   after commit      min(N - 1, N - horizon)            so that it does not depend on chunking
// but never less than it was: what is freed stays so. Only a rollback lowers it, to the next query.
// A row is resident iff sees(keep_from, pos, lifetime), and it is freed at commit, never before.
#pragma once

#include <algorithm>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headwise/manager/cache_config.hpp"
#include "headwise/manager/stats.hpp"
#include "headwise/policy/policy_list.hpp"
#include "headwise/store/token_stream.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

template <class Policies>
class sequence_state {
 public:
  using policy = typename Policies::variant;

  // plan: [layers * kv_heads], layer-major.
  sequence_state(const model_shape& shape, std::span<const policy> plan, token_count horizon,
                 page_pool& pool, std::pmr::memory_resource* memory)
      : shape_(shape),
        horizon_(horizon),
        pool_(&pool),
        plan_(plan.begin(), plan.end(), memory),
        first_stream_(memory),
        streams_(memory),
        written_(plan.size(), char{1}, memory),
        tokens_(memory) {
    first_stream_.reserve(plan_.size() + 1);
    std::size_t count = 0;
    for (const policy& p : plan_) count += lifetimes_of(p).size();
    streams_.reserve(count);
    for (const policy& p : plan_) {
      HEADWISE_EXPECTS(lifetimes_of(p).size() > 0 && lifetimes_of(p)[0] > 0,
                       "a policy gives no lifetimes, or one below 1");
      first_stream_.push_back(static_cast<std::uint32_t>(streams_.size()));
      for (const token_count lifetime : lifetimes_of(p)) streams_.emplace_back(lifetime);
    }
    first_stream_.push_back(static_cast<std::uint32_t>(streams_.size()));
  }
  // The same tokens over the same pages. Throws what the memory resource throws; the destructor
  // then gives back what was shared by that time.
  sequence_state(const sequence_state& parent, std::pmr::memory_resource* memory)
      : sequence_state(parent.shape_, parent.plan_, parent.horizon_, *parent.pool_, memory) {
    HEADWISE_EXPECTS(!parent.step_open_, "fork while a step is open");
    for (std::size_t i = 0; i < streams_.size(); ++i)
      parent.streams_[i].share_with(streams_[i], *pool_);
    length_ = parent.length_;
    keep_from_ = parent.keep_from_;
  }
  sequence_state(const sequence_state&) = delete;
  sequence_state& operator=(const sequence_state&) = delete;
  ~sequence_state() {
    HEADWISE_EXPECTS(!step_open_, "a sequence closed while a step is open");
    for (token_stream& stream : streams_) stream.clear(*pool_);
  }

  [[nodiscard]] const model_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] const page_layout& layout() const noexcept { return pool_->layout(); }
  [[nodiscard]] token_count length() const noexcept { return length_; }
  [[nodiscard]] std::span<const policy> plan() const noexcept { return plan_; }
  [[nodiscard]] std::span<const token> step_tokens() const noexcept { return tokens_; }
  [[nodiscard]] position first_query() const noexcept {
    return step_open_ ? step_from_ : keep_from_;
  }

  [[nodiscard]] position last_query() const noexcept {
    return length_ +
           (step_open_ && !tokens_.empty() ? static_cast<position>(tokens_.size()) - 1 : 0);
  }

  [[nodiscard]] std::size_t index(head_id head) const noexcept {
    HEADWISE_EXPECTS(head.layer < shape_.layers && head.kv_head < shape_.kv_heads,
                     "there is no such head in the model");
    return std::size_t{head.layer} * shape_.kv_heads + head.kv_head;
  }
  [[nodiscard]] std::span<const token_stream> streams(std::size_t head) const noexcept {
    return {streams_.data() + first_stream_[head], streams_.data() + first_stream_[head + 1]};
  }

  // Pages that a step of these tokens takes. O(heads * tokens).
  [[nodiscard]] std::size_t pages_needed(std::span<const token> tokens,
                                         attend_scope scope) const noexcept {
    std::size_t pages = 0;
    const position from = step_keep_from(tokens.size(), scope);
    for (std::size_t head = 0; head < plan_.size(); ++head)
      for (const token_stream& stream : streams(head))
        pages += stream.pages_needed(count_rows(head, stream, tokens, from), layout());
    return pages;
  }

  // All or nothing: slots for every head, or false and nothing changed.
  [[nodiscard]] bool try_begin(std::span<const token> tokens, attend_scope scope) noexcept {
    check_tokens(tokens);
    if (tokens.size() > max_length - length_) return false;
    if (pages_needed(tokens, scope) > pool_->available()) return false;
    if (!memory_suffices([&] { tokens_.assign(tokens.begin(), tokens.end()); })) return false;
    step_from_ = step_keep_from(tokens.size(), scope);
    step_open_ = true;
    std::fill(written_.begin(), written_.end(), tokens.empty() ? char{1} : char{0});
    for (std::size_t head = 0; head < plan_.size(); ++head) {
      for (token_stream& stream : mutable_streams(head)) {
        if (stream.try_extend(count_rows(head, stream, tokens, step_from_), *pool_)) continue;
        for (token_stream* undo = streams_.data(); undo <= &stream; ++undo) undo->cancel(*pool_);
        step_open_ = false;
        return false;
      }
    }
    return true;
  }

  // put(token index, slot) for each of the step's tokens that the head stores. Different heads may
  // be written by different threads.
  template <class Put>
  void write(std::size_t head, Put&& put) noexcept {
    HEADWISE_EXPECTS(written_[head] == 0 || tokens_.empty(),
                     "a head was written twice in one step");
    written_[head] = 1;
    const std::span<token_stream> head_streams = mutable_streams(head);
    std::visit(
        [&](const auto& p) {
          for (std::size_t i = 0; i < tokens_.size(); ++i) {
            token_stream& stream = stream_of(head_streams, p.lifetime(tokens_[i]));
            if (stream.expired(tokens_[i].pos, step_from_)) continue;
            const token_stream::slot slot = stream.next_slot(layout());
            *slot.pos = tokens_[i].pos;
            put(i, slot);
          }
        },
        plan_[head]);
  }

  void commit() noexcept {
    HEADWISE_EXPECTS(std::find(written_.begin(), written_.end(), char{0}) == written_.end(),
                     "commit of a step in which a head was not written");
    if (!tokens_.empty()) {
      length_ += static_cast<token_count>(tokens_.size());
      keep_from_ = std::max(keep_from_, std::min<position>(length_ - 1, floor(length_)));
    }
    for (std::size_t head = 0; head < plan_.size(); ++head)
      for (token_stream& stream : mutable_streams(head))
        stream.commit(keep_from_, newest_skipped(head, stream), *pool_);
    step_open_ = false;
    audit();
  }
  void cancel() noexcept {
    for (token_stream& stream : streams_) stream.cancel(*pool_);
    step_open_ = false;
    audit();
  }

  // Why a rollback to `length` would not be exact, for the first head that cannot; O(heads).
  [[nodiscard]] std::optional<rollback_refusal> rollback_blocker(
      token_count length) const noexcept {
    for (std::size_t head = 0; head < plan_.size(); ++head)
      for (const token_stream& stream : streams(head))
        if (const auto needed = stream.missing_after_rollback(length))
          return rollback_refusal{{static_cast<std::uint32_t>(head / shape_.kv_heads),
                                   static_cast<std::uint32_t>(head % shape_.kv_heads)},
                                  *needed,
                                  stream.oldest(layout()).value_or(length_)};
    return std::nullopt;
  }
  [[nodiscard]] bool try_truncate(token_count length) noexcept {
    HEADWISE_EXPECTS(!step_open_, "rollback while a step is open");
    if (length > length_) return false;
    if (length == length_) return true;
    if (rollback_blocker(length)) return false;
    for (token_stream& stream : streams_) stream.rollback(length, *pool_);
    length_ = length;
    keep_from_ = std::min(keep_from_, length_);
    audit();
    return true;
  }

  [[nodiscard]] cache_stats stats() const noexcept {
    HEADWISE_EXPECTS(!step_open_, "stats while a step is open");
    cache_stats result;
    result.length = length_;
    std::size_t pages = 0;
    for (const token_stream& stream : streams_) {
      result.resident_rows += stream.rows();
      pages += stream.pages();
    }
    const std::size_t row_bytes = layout().row_bytes();
    result.full_rows = plan_.size() * length_;
    result.payload_bytes = result.resident_rows * row_bytes;
    result.full_bytes = result.full_rows * row_bytes;
    result.reserved_bytes = (pages * layout().page_tokens - result.resident_rows) * row_bytes;
    result.metadata_bytes =
        sizeof(*this) + plan_.capacity() * sizeof(policy) +
        first_stream_.capacity() * sizeof(std::uint32_t) +
        streams_.capacity() * sizeof(token_stream) + written_.capacity() +
        tokens_.capacity() * sizeof(token) +
        pages * (pool_->link_bytes() + layout().page_bytes() - layout().page_tokens * row_bytes);
    return result;
  }

 private:
  // The stream of a lifetime. A policy that breaks its contract must not lose tokens in silence.
  [[nodiscard]] static token_stream& stream_of(std::span<token_stream> head_streams,
                                               token_count lifetime) noexcept {
    const auto found = std::find_if(head_streams.begin(), head_streams.end(),
                                    [&](const auto& s) { return s.lifetime() == lifetime; });
    HEADWISE_EXPECTS(found != head_streams.end(),
                     "a policy gave a lifetime that is not a member of its lifetimes()");
    return *found;
  }
  void audit() const noexcept {
    for ([[maybe_unused]] const token_stream& stream : streams_)
      HEADWISE_AUDIT(stream.is_sound(keep_from_, length_, layout()),
                     "a stream holds other rows than its head's policy asks for");
  }
  [[nodiscard]] std::span<token_stream> mutable_streams(std::size_t head) noexcept {
    return {streams_.data() + first_stream_[head], streams_.data() + first_stream_[head + 1]};
  }
  // The first query that a rollback may lead back to.
  [[nodiscard]] position floor(token_count length) const noexcept {
    return length > horizon_ ? length - horizon_ : 0;
  }
  [[nodiscard]] position step_keep_from(std::size_t count, attend_scope scope) const noexcept {
    if (count == 0) return keep_from_;
    const auto after = static_cast<token_count>(length_ + count);
    const position attending = scope == attend_scope::every_query ? length_ : after - 1;
    return std::max(keep_from_, std::min(attending, floor(after)));
  }
  [[nodiscard]] std::size_t count_rows(std::size_t head, const token_stream& stream,
                                       std::span<const token> tokens,
                                       position from) const noexcept {
    return std::visit(
        [&](const auto& p) {
          std::size_t count = 0;
          for (const token& t : tokens)
            if (p.lifetime(t) == stream.lifetime() && !stream.expired(t.pos, from)) ++count;
          return count;
        },
        plan_[head]);
  }
  [[nodiscard]] std::optional<position> newest_skipped(std::size_t head,
                                                       const token_stream& stream) const noexcept {
    if (step_from_ <= length_ - tokens_.size()) return std::nullopt;
    for (auto t = tokens_.rbegin(); t != tokens_.rend(); ++t)
      if (stream.expired(t->pos, step_from_) && lifetime_of(plan_[head], *t) == stream.lifetime())
        return t->pos;
    return std::nullopt;
  }
  void check_tokens(std::span<const token> tokens) const noexcept {
    HEADWISE_EXPECTS(!step_open_, "a second step while one is open");
#if HEADWISE_CHECK_LEVEL >= 1
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].pos != length_ + i) reject_position(tokens[i].pos, length_ + i);
      if (tokens[i].id < 0) require_ids_unused(tokens[i].pos);
    }
#else
    static_cast<void>(tokens);
#endif
  }
  [[noreturn]] static void reject_position(std::size_t got, std::size_t next) noexcept {
    const std::string message =
        "position " + std::to_string(got) +
        (got < next ? " is already stored, next is " : " leaves a gap, next is ") +
        std::to_string(next);
    contract_broken(__FILE__, __LINE__, "token.pos == length", message.c_str());
  }
  void require_ids_unused(position pos) const noexcept {
    for (std::size_t head = 0; head < plan_.size(); ++head) {
      if (!std::visit([](const auto& p) { return needs_token_ids(p); }, plan_[head])) continue;
      const std::string message =
          "layer " + std::to_string(head / shape_.kv_heads) + " head " +
          std::to_string(head % shape_.kv_heads) +
          ": its policy special_tokens needs token ids, and the token at position " +
          std::to_string(pos) + " has none";
      contract_broken(__FILE__, __LINE__, "token.id >= 0", message.c_str());
    }
  }

  model_shape shape_;
  token_count horizon_;
  page_pool* pool_;
  std::pmr::vector<policy> plan_;                 // [heads]
  std::pmr::vector<std::uint32_t> first_stream_;  // [heads + 1]
  std::pmr::vector<token_stream> streams_;        // by head, then by ascending lifetime
  std::pmr::vector<char> written_;                // [heads], in the open step
  std::pmr::vector<token> tokens_;                // of the open step
  token_count length_ = 0;
  position keep_from_ = 0;
  position step_from_ = 0;
  bool step_open_ = false;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
