// SPDX-License-Identifier: Apache-2.0
//
// The state of one sequence: a policy and a few streams for each head, a ranked pool for each head
// that ranks, the length, the open step.
// Everything here works in numbers of rows and bytes; codecs join in append_step.hpp.
//
// With N the length after a step, keep_from is the first query that must still be answered:
//   during the step   min(first attending query, N - horizon)
//   after commit      min(N - 1, N - horizon)            so that it does not depend on chunking
// but never less than it was: what is freed stays so. Only a rollback lowers it, to the next query.
// A row of a stream is resident iff sees(keep_from, pos, lifetime), and it is freed at commit,
// never before. Scores go back to undo_floor, which is N - horizon too, or the end of a prompt that
// was ranked once.
#pragma once

#include <algorithm>
#include <memory_resource>
#include <optional>
#include <span>

#include "headwise/manager/cache_config.hpp"
#include "headwise/manager/head_view.hpp"
#include "headwise/manager/stats.hpp"
#include "headwise/manager/token_check.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

template <class Policies>
class sequence_state {
 public:
  using policy = typename Policies::variant;

  // plan: [layers * kv_heads], layer-major. expected_length: what pools that are a fraction of the
  // length are cut for. Throws what the memory resource throws.
  sequence_state(const model_shape& shape, std::span<const policy> plan,
                 token_count expected_length, const cache_config& config, page_pool& pages,
                 std::pmr::memory_resource* memory)
      : sequence_state(
            shape, plan, config.rollback_horizon, config.step_tokens, pages,
            [&](std::size_t h) { return pool_rows_of(plan[h], expected_length); }, memory) {}
  // The same tokens over the same pages. Throws what the memory resource throws; the destructor
  // then gives back what was shared by that time.
  sequence_state(const sequence_state& parent, std::pmr::memory_resource* memory)
      : sequence_state(
            parent.shape_, parent.plan(), parent.horizon_, parent.tokens_.capacity(),
            parent.rows_.pages(),
            [&](std::size_t h) {
              const ranked_pool* const ranked = parent.pool(h);
              return ranked == nullptr ? token_count{0} : ranked->capacity();
            },
            memory) {
    HEADWISE_EXPECTS(!parent.step_open_, "fork while a step is open");
    parent.rows_.share_with(rows_);
    length_ = parent.length_;
    keep_from_ = parent.keep_from_;
    undo_floor_ = parent.undo_floor_;
    ranked_from_ = parent.ranked_from_;
  }
  // capacity_of(head): rows of its pool of heavy hitters, 0 where it does not rank.
  template <class CapacityOf>
  sequence_state(const model_shape& shape, std::span<const policy> plan, token_count horizon,
                 std::size_t step_tokens, page_pool& pages, const CapacityOf& capacity_of,
                 std::pmr::memory_resource* memory)
      : shape_(shape),
        horizon_(horizon),
        plan_(plan.size(), memory),
        rows_(
            plan.size(), [&](std::size_t h) { return lifetimes_of(plan[h]); }, capacity_of, pages,
            memory),
        written_(memory),
        tokens_(memory) {
    for (const policy& p : plan) plan_.emplace_back(p);
    written_.reserve(plan.size());
    written_.resize(plan.size(), char{1});
    tokens_.reserve(step_tokens);
  }
  sequence_state(const sequence_state&) = delete;
  sequence_state& operator=(const sequence_state&) = delete;
  ~sequence_state() { HEADWISE_EXPECTS(!step_open_, "a sequence closed while a step is open"); }

  [[nodiscard]] const model_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] const page_layout& layout() const noexcept { return rows_.pages().layout(); }
  [[nodiscard]] token_count length() const noexcept { return length_; }
  [[nodiscard]] token_count horizon() const noexcept { return horizon_; }
  [[nodiscard]] std::span<const policy> plan() const noexcept {
    return {plan_.data(), plan_.size()};
  }
  [[nodiscard]] std::span<const token> step_tokens() const noexcept {
    return {tokens_.begin(), tokens_.end()};
  }
  [[nodiscard]] position first_query(std::size_t head) const noexcept {
    const position first = step_open_ ? step_from_ : keep_from_;
    if (pool(head) == nullptr) return first;
    return std::max(first, step_open_ && prompt_ ? newest_query() : ranked_from_);
  }
  // Where the head does not rank: it is the pool that knows how far its queries are.
  [[nodiscard]] position last_query() const noexcept {
    return step_open_ && !tokens_.empty() ? newest_query() : length_;
  }

  [[nodiscard]] std::size_t index(head_id head) const noexcept {
    HEADWISE_EXPECTS(head.layer < shape_.layers && head.kv_head < shape_.kv_heads,
                     "there is no such head in the model");
    return std::size_t{head.layer} * shape_.kv_heads + head.kv_head;
  }
  [[nodiscard]] std::span<const token_stream> streams(std::size_t head) const noexcept {
    return rows_.streams(head);
  }
  // nullptr on a head that does not rank.
  [[nodiscard]] const ranked_pool* pool(std::size_t head) const noexcept {
    return rows_.pool(head);
  }

  // observing: for the queries of the open step, which show the head's pool their attention.
  template <class Key, class Value>
  [[nodiscard]] head_view<Key, Value> view(std::size_t head, bool observing) noexcept {
    const bool counts = observing && !tokens_.empty();
    return {streams(head),   pool(head),          counts ? rows_.head(head).pool : nullptr,
            shape_.head_dim, shape_.group_size(), first_query(head),
            last_query()};
  }

  // Pages that a step of these tokens takes, at most where heads rank. O(heads * tokens).
  [[nodiscard]] std::size_t pages_needed(std::span<const token> tokens,
                                         attend_scope scope) const noexcept {
    std::size_t pages = 0;
    const bool prompt = is_prompt(tokens.size(), scope);
    const position from = step_keep_from(tokens.size(), scope);
    for (std::size_t head = 0; head < plan_.size(); ++head) {
      const step_demand demand = demand_of(head, tokens, from, prompt);
      for (std::size_t s = 0; s < streams(head).size(); ++s)
        pages += streams(head)[s].pages_needed(demand.rows[s]);
      if (pool(head) != nullptr) pages += pool(head)->pages_needed(demand.pool);
    }
    return pages;
  }

  // All or nothing: slots for every head, or false and nothing changed.
  [[nodiscard]] bool try_begin(std::span<const token> tokens, attend_scope scope) noexcept {
    HEADWISE_EXPECTS(!step_open_, "a second step while one is open");
    check_tokens<policy>(tokens, length_, plan(), shape_.kv_heads);
    if (tokens.size() > max_length - length_) return false;
    if (!memory_suffices([&] { tokens_.reserve(tokens.size()); })) return false;
    tokens_.clear();
    tokens_.append(tokens.data(), tokens.size());
    prompt_ = is_prompt(tokens.size(), scope);
    step_from_ = step_keep_from(tokens.size(), scope);
    const auto count = static_cast<token_count>(tokens.size());
    const position undo_from = undo_floor_after(length_ + count);
    std::size_t head = 0;
    while (head < plan_.size() &&
           rows_.head(head).try_begin(demand_of(head, step_tokens(), step_from_, prompt_), length_,
                                      count, undo_from))
      ++head;
    if (head < plan_.size()) {
      while (head > 0) rows_.head(--head).cancel();
      return false;
    }
    step_open_ = true;
    std::fill(written_.begin(), written_.end(), tokens.empty() ? char{1} : char{0});
    return true;
  }

  // put(token index, slot) for each of the step's tokens that the head stores. Different heads may
  // be written by different threads.
  template <class Put>
  void write(std::size_t head, Put&& put) noexcept {
    HEADWISE_EXPECTS(written_[head] == 0 || tokens_.empty(),
                     "a head was written twice in one step");
    written_[head] = 1;
    ranked_pool* const ranked = rows_.head(head).pool;
    HEADWISE_EXPECTS(ranked == nullptr || ranked->is_shown(),
                     "a ranked head needs the column sums of a prompt before its rows");
    const std::span<token_stream> all = rows_.head(head).streams;
    const auto put_row = [&](std::size_t i, const token_stream::slot& slot) {
      *slot.pos = tokens_[i].pos;
      put(i, slot);
    };
    for_each_token(head, step_tokens(), [&](std::size_t i, std::size_t s) {
      if (!all[s].expired(tokens_[i].pos, step_from_))
        put_row(i, all[s].next_slot());
      else if (ranked != nullptr)
        if (const auto slot = ranked->unstored_slot(tokens_[i].pos)) put_row(i, *slot);
    });
    if (ranked != nullptr) ranked->rows_are_written();
  }
  void observe_prompt(std::size_t head, std::span<const float> column_sums) noexcept {
    HEADWISE_EXPECTS(pool(head) != nullptr, "observe_prompt is for a head that ranks");
    HEADWISE_EXPECTS(column_sums.size() == length_ + tokens_.size(),
                     "observe_prompt needs a sum for each position of the sequence");
    rows_.head(head).pool->observe_prompt(column_sums, streams(head), [&](auto&& own) {
      for_each_token(head, step_tokens(), [&](std::size_t i, std::size_t s) {
        const token_stream& stream = streams(head)[s];
        if (stream.lifetime() != forever)
          own(static_cast<std::uint32_t>(s), tokens_[i].pos,
              !stream.expired(tokens_[i].pos, step_from_));
      });
    });
  }

  void commit() noexcept {
    HEADWISE_EXPECTS(std::find(written_.begin(), written_.end(), char{0}) == written_.end(),
                     "commit of a step in which a head was not written");
    if (!tokens_.empty()) {
      length_ += static_cast<token_count>(tokens_.size());
      keep_from_ = std::max(keep_from_, std::min<position>(length_ - 1, floor(length_)));
      undo_floor_ = undo_floor_after(length_);
      if (prompt_) ranked_from_ = length_ - 1;
    }
    for (std::size_t head = 0; head < plan_.size(); ++head)
      rows_.head(head).commit(length_, keep_from_, std::max(keep_from_, ranked_from_),
                              newest_skipped(head));
    step_open_ = false;
    audit();
  }
  void cancel() noexcept {
    for (std::size_t head = 0; head < plan_.size(); ++head) rows_.head(head).cancel();
    step_open_ = false;
    audit();
  }

  // Why a rollback to `length` would not be exact, for the first head that cannot; O(heads).
  [[nodiscard]] std::optional<rollback_refusal> rollback_blocker(
      token_count length) const noexcept {
    for (std::size_t head = 0; head < plan_.size(); ++head) {
      const head_id id{static_cast<std::uint32_t>(head / shape_.kv_heads),
                       static_cast<std::uint32_t>(head % shape_.kv_heads)};
      if (pool(head) != nullptr && length != 0 && length < undo_floor_)
        return rollback_refusal{id, length, undo_floor_};
      for (const token_stream& stream : streams(head))
        if (const auto needed = stream.missing_after_rollback(length))
          return rollback_refusal{id, *needed, stream.oldest().value_or(length_)};
    }
    return std::nullopt;
  }
  [[nodiscard]] bool try_truncate(token_count length) noexcept {
    HEADWISE_EXPECTS(!step_open_, "rollback while a step is open");
    if (length > length_) return false;
    if (length == length_) return true;
    if (rollback_blocker(length)) return false;
    for (std::size_t head = 0; head < plan_.size(); ++head) rows_.head(head).rollback(length);
    length_ = length;
    keep_from_ = std::min(keep_from_, length_);
    undo_floor_ = std::min(undo_floor_, length_);
    ranked_from_ = std::min(ranked_from_, length_);
    audit();
    return true;
  }

  // The tokens and all that later steps and rollbacks depend on, between steps. Throws as the
  // archive does, and where what was read cannot be; false where pages or memory refuse.
  template <class Archive>
  [[nodiscard]] bool transfer(Archive& archive) {
    HEADWISE_EXPECTS(!step_open_, "save while a step is open");
    archive.number(length_);
    archive.number(keep_from_);
    archive.number(undo_floor_);
    archive.number(ranked_from_);
    for (std::size_t head = 0; head < plan_.size(); ++head)
      if (!rows_.head(head).transfer(archive)) return false;
    if constexpr (Archive::loading) {
      bool sound = length_ <= max_length && undo_floor_ <= length_ && keep_from_ <= undo_floor_ &&
                   ranked_from_ <= undo_floor_ && unsound_head() == plan_.size();
      if (sound &&
          !memory_suffices([&] { sound = rows_.hold_each_once(keep_from_, ranked_from_); }))
        return false;
      if (!sound)
        archive.fail(error_code::malformed,
                     "rows of a head, or lengths, that contradict each other",
                     "the rows that its policy keeps, each once");
    }
    return true;
  }

  [[nodiscard]] cache_stats stats() const noexcept {
    HEADWISE_EXPECTS(!step_open_, "stats while a step is open");
    cache_stats result;
    result.length = length_;
    const std::size_t row_bytes = layout().row_bytes();
    result.resident_rows = rows_.rows();
    result.full_rows = plan_.size() * length_;
    result.payload_bytes = result.resident_rows * row_bytes;
    result.full_bytes = result.full_rows * row_bytes;
    result.reserved_bytes = (rows_.slots() - result.resident_rows) * row_bytes;
    result.metadata_bytes = sizeof(*this) + plan_.held_bytes() + written_.held_bytes() +
                            tokens_.held_bytes() + rows_.table_bytes() + rows_.page_bytes() -
                            rows_.slots() * row_bytes;
    return result;
  }

 private:
  // fn(i, stream) for each token: which of the head's streams its lifetime makes it part of. The
  // policy is visited for a block of tokens at a time, so that only the visit is compiled for each
  // type of policy, and what is done with the tokens once.
  template <class Fn>
  void for_each_token(std::size_t head, std::span<const token> tokens, Fn&& fn) const {
    constexpr std::size_t block = 64;
    std::array<std::uint8_t, block> stream;
    for (std::size_t first = 0; first < tokens.size(); first += block) {
      const std::span<const token> part =
          tokens.subspan(first, std::min(block, tokens.size() - first));
      find_streams(head, part, stream.data());
      for (std::size_t i = 0; i < part.size(); ++i) fn(first + i, std::size_t{stream[i]});
    }
  }
  // A policy that breaks its contract must not lose tokens in silence.
  void find_streams(std::size_t head, std::span<const token> tokens, std::uint8_t* found) const {
    const std::span<const token_stream> all = streams(head);
    std::visit(
        [&](const auto& p) {
          for (const token& t : tokens) {
            const token_count lifetime = p.lifetime(t);
            std::uint8_t s = 0;
            while (s < all.size() && all[s].lifetime() != lifetime) ++s;
            HEADWISE_EXPECTS(s < all.size(),
                             "a policy gave a lifetime that is not a member of its lifetimes()");
            *found++ = s;
          }
        },
        plan_[head]);
  }
  [[nodiscard]] step_demand demand_of(std::size_t head, std::span<const token> tokens,
                                      position from, bool prompt) const noexcept {
    step_demand demand;
    demand.pool.prompt = prompt;
    const std::span<const token_stream> all = streams(head);
    const std::uint64_t after = std::uint64_t{length_} + tokens.size();
    for_each_token(head, tokens, [&](std::size_t i, std::size_t s) {
      const bool stored = !all[s].expired(tokens[i].pos, from);
      demand.rows[s] += stored ? 1 : 0;
      if (std::uint64_t{tokens[i].pos} + all[s].lifetime() > after) return;
      ++demand.pool.expiring;
      demand.pool.unstored += stored ? 0 : 1;
    });
    if (pool(head) != nullptr)
      demand.pool.expiring += expiring_rows(all, length_, static_cast<position>(after));
    return demand;
  }
  // The first head that holds other rows than its policy asks for.
  [[nodiscard]] std::size_t unsound_head() noexcept {
    for (std::size_t head = 0; head < plan_.size(); ++head)
      if (!rows_.head(head).is_sound(keep_from_, undo_floor_, length_)) return head;
    return plan_.size();
  }
  void audit() noexcept {
    HEADWISE_AUDIT(unsound_head() == plan_.size(),
                   "a head holds other rows than its policy asks for");
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
  // A step whose attention ranked heads are shown as column sums.
  [[nodiscard]] static bool is_prompt(std::size_t count, attend_scope scope) noexcept {
    return scope == attend_scope::last_query && count > 0;
  }
  [[nodiscard]] position newest_query() const noexcept {
    return length_ + static_cast<position>(tokens_.size()) - 1;
  }
  [[nodiscard]] position undo_floor_after(token_count length) const noexcept {
    return std::max(undo_floor_, prompt_ ? length : floor(length));
  }
  // By stream: the last token of the step that was never given a slot.
  [[nodiscard]] std::array<std::optional<position>, lifetime_set::capacity> newest_skipped(
      std::size_t head) const noexcept {
    std::array<std::optional<position>, lifetime_set::capacity> result;
    if (step_from_ <= length_ - tokens_.size()) return result;
    for_each_token(head, step_tokens(), [&](std::size_t i, std::size_t s) {
      if (streams(head)[s].expired(tokens_[i].pos, step_from_)) result[s] = tokens_[i].pos;
    });
    return result;
  }

  model_shape shape_;
  token_count horizon_;
  fixed_vector<policy> plan_;  // [heads]
  row_table rows_;
  flat_vector<char> written_;  // [heads], in the open step
  flat_vector<token> tokens_;  // of the open step
  token_count length_ = 0;
  position keep_from_ = 0;
  position undo_floor_ = 0;   // ranked heads roll back no further
  position ranked_from_ = 0;  // and answer no query before
  position step_from_ = 0;
  bool prompt_ = false;
  bool step_open_ = false;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
