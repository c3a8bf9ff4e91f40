// SPDX-License-Identifier: Apache-2.0
//
// ranked_pool: the heavy hitters of one head. A token whose lifetime ends with the query at i
// competes, after i's attention is counted, for one of `capacity` slots: a free one, or that of the
// lowest member (ranks_below() in core/types.hpp). What loses is gone. The rule is that of H2O
// (arXiv:2306.14048) over the tokens that no other part of the head's policy keeps.
//
// A row moves into its slot when no query before its entry can be asked for any more; until then
// the stream keeps the row and the entry its score. So a rollback drops entries and puts scores
// back, and a step can be cancelled at any point. Slots follow from the order of the queries alone:
// how a text is cut into steps makes no difference, not even to the order of sums.
// Memory: 4 bytes for a score, and 4 for each query that can be taken back, for each row of the
// finite streams and the pool. O(capacity + rows) a query. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "headwise/core/fixed_vector.hpp"
#include "headwise/core/rows.hpp"
#include "headwise/store/pool_members.hpp"
#include "headwise/store/slot_pages.hpp"
#include "headwise/store/token_stream.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

// What a step may ask of a pool, at most.
struct pool_demand {
  std::size_t expiring = 0;  // rows of finite streams whose lifetime ends within the step
  std::size_t unstored = 0;  // of these: tokens of the step that no stream stores
  bool prompt = false;       // the step is ranked once, by the column sums of its attention
};

class ranked_pool {
 public:
  using stream_span = std::span<const token_stream>;  // the head's, by ascending lifetime

  // Throws what the memory resource throws.
  ranked_pool(token_count capacity, stream_span streams, page_pool& pages,
              std::pmr::memory_resource* memory)
      : members_(capacity, memory),
        stored_(pages, memory),
        unstored_(forever, pages),
        scores_(streams.size(), memory),
        log_(memory) {
    for (const token_stream& stream : streams)
      if (stream.lifetime() != forever) scores_.emplace_back(memory);
  }
  // Makes `copy`, an empty pool for the same streams, one with the same members over the same
  // pages. Throws what the memory resource throws; clear() then frees what was shared by that time.
  void share_with(ranked_pool& copy) const {
    copy.members_ = members_;
    for (std::size_t s = 0; s < scores_.size(); ++s) copy.scores_[s] = scores_[s];
    copy.log_ = log_;
    copy.next_query_ = next_query_;
    stored_.share_with(copy.stored_);
  }

  [[nodiscard]] token_count capacity() const noexcept { return members_.capacity(); }
  // Rows in slots, and within a step the winners of a prompt that no stream keeps.
  [[nodiscard]] std::size_t rows() const noexcept { return stored_.rows() + unstored_.rows(); }
  // Of the slots.
  [[nodiscard]] std::size_t pages() const noexcept { return stored_.pages(); }
  // The first query whose attention is not counted yet: what it sees is known, what later ones see
  // is not.
  [[nodiscard]] position next_query() const noexcept { return next_query_; }
  [[nodiscard]] std::size_t metadata_bytes() const noexcept {
    std::size_t bytes =
        scores_.held_bytes() + stored_.held_bytes() + members_.held_bytes() + log_.held_bytes();
    for (const score_fifo& scores : scores_) bytes += scores.held_bytes();
    return bytes;
  }

  // Pages that a step takes until it ends, at most.
  [[nodiscard]] std::size_t pages_needed(const pool_demand& demand) const noexcept {
    return stored_.more_pages(members_after(demand)) + stored_.copies(entries_after(demand)) +
           unstored_.pages_needed(winners_unstored(demand));
  }
  // added: rows that the step adds to each finite stream. undo_from: no rollback after the step
  // goes further back. False where pages or memory refuse; cancel() then undoes.
  [[nodiscard]] bool try_begin(const pool_demand& demand, std::span<const std::size_t> added,
                               position first, token_count queries, position undo_from) noexcept {
    next_query_ = first_query_ = first;
    undo_from_ = undo_from;
    marks_before_ = log_.size();
    prompt_ = demand.prompt;
    shown_ = !demand.prompt;
    written_ = false;
    const position after = first + queries;
    const std::size_t undone = after - std::clamp(undo_from, first, after);
    return memory_suffices([&] { reserve(demand, added, undone + 1); }) &&
           stored_.try_take(members_after(demand), entries_after(demand)) &&
           unstored_.try_extend(winners_unstored(demand));
  }
  // weights: the probabilities that the query gave to the rows it sees, [query heads, rows seen] in
  // the order of for_each_slab. Counts them; then the tokens whose lifetime ends compete.
  void observe(position query, headwise::rows<const float> weights, stream_span streams) noexcept {
    HEADWISE_EXPECTS(query == next_query_ && shown_,
                     "a ranked head attends its queries in order, each counted once");
    HEADWISE_EXPECTS(written_, "a ranked head is shown attention before its rows are written");
    HEADWISE_EXPECTS(
        weights.width == for_each_score(query, query + 1, streams, [](float&, std::size_t) {}),
        "observe needs one weight for each row that is seen");
    remember(query, streams);
    for_each_score(query, query + 1, streams, [&](float& score, std::size_t at) {
      float sum = 0.0F;
      for (std::size_t head = 0; head < weights.count; ++head) sum += weights[head][at];
      score += sum;
    });
    expire(query, streams);
  }
  // For a prompt: column_sums [first + queries], by position, over all its queries and query heads
  // that are not observed. All whose lifetime ends before the newest query compete, with these
  // scores. for_each_own(fn) calls fn(stream, position, stored) for each token of the step that a
  // finite stream takes or would take, in order.
  template <class ForEachOwn>
  void observe_prompt(std::span<const float> column_sums, stream_span streams,
                      ForEachOwn&& for_each_own) noexcept {
    HEADWISE_EXPECTS(!shown_, "column sums come once, before the rows of a last_query step");
    const auto newest = static_cast<position>(column_sums.size() - 1);
    remember(first_query_, streams);
    for (token_count slot = 0; slot < members_.size(); ++slot)
      members_.score_before(first_query_, slot) += column_sums[members_.newest(slot).pos];
    std::array<std::size_t, lifetime_set::capacity> index{};
    for (std::uint32_t s = 0; s < scores_.size(); ++s) {
      index[s] = streams[s].rows();
      streams[s].for_each_position([&](position pos, std::size_t at) {
        if (streams[s].expired(pos, first_query_)) return;
        scores_[s][at] += column_sums[pos];
        if (streams[s].expired(pos, newest)) members_.compete(s, pos, scores_[s][at], newest - 1);
      });
    }
    for_each_own([&](std::uint32_t s, position pos, bool stored) {
      if (stored) scores_[s][index[s]++] += column_sums[pos];
      if (streams[s].expired(pos, newest))
        members_.compete(stored ? s : no_stream, pos, column_sums[pos], newest - 1);
    });
    members_.sort_newest(first_query_);
    next_query_ = newest;
    shown_ = true;
  }
  // The step's rows are in their streams.
  void rows_are_written() noexcept { written_ = true; }
  // The attention of a prompt is known, or the step is none: rows may be written.
  [[nodiscard]] bool is_shown() const noexcept { return shown_; }
  // The slot of a token of the step that no stream takes; nullopt where it won none.
  [[nodiscard]] std::optional<token_stream::slot> unstored_slot(position pos) noexcept {
    const auto entries = members_.entries_from(first_query_);
    const auto found = std::lower_bound(entries.begin(), entries.end(), pos,
                                        [](const pool_entry& e, position p) { return e.pos < p; });
    if (found == entries.end() || found->pos != pos || found->stream != no_stream)
      return std::nullopt;
    return unstored_.next_slot();
  }

  // Before the streams commit. after: the new length. What entered before the query `settled` does
  // so for good.
  void commit(position after, position settled, stream_span streams) noexcept {
    if (prompt_ && next_query_ + 1 == after) expire(next_query_, streams);
    HEADWISE_EXPECTS(next_query_ == after && shown_,
                     "commit of a step whose attention a ranked head was not shown");
    members_.settle(settled,
                    [&](const pool_entry& e) { stored_.put(e.slot, e.pos, row_of(e, streams)); });
    log_.forget_before(undo_from_);
    end_step();
  }
  // Before the streams cancel.
  void cancel(stream_span streams) noexcept {
    while (log_.size() > marks_before_ + 1) log_.pop();
    if (log_.size() > marks_before_) take_back(streams);
    next_query_ = first_query_;
    end_step();
  }
  // Before the streams roll back. length: 0, or one that undo_from of the last step allowed.
  void rollback(position length, stream_span streams) noexcept {
    if (length == 0) return clear();
    while (log_.size() > 0 && log_.query() >= length) take_back(streams);
    next_query_ = length;
    stored_.give_back(members_.size());
  }
  // After the streams freed their oldest rows, or took back their newest: the scores follow.
  void follow(stream_span streams, bool oldest_left) noexcept {
    for (std::size_t s = 0; s < scores_.size(); ++s) {
      const std::size_t gone = scores_[s].size() - streams[s].rows();
      oldest_left ? scores_[s].drop_front(gone) : scores_[s].drop_back(gone);
    }
  }
  void clear() noexcept {
    stored_.clear();
    members_.clear();
    log_.clear();
    next_query_ = 0;
  }

  // fn(slab) for the members at `query`, by slot. O(members).
  template <class Fn>
  void for_each_slab(position query, stream_span streams, Fn& fn) const {
    token_count run = 0, slot = 0;
    for (; slot < members_.size(); ++slot) {
      const pool_entry* const e = members_.entry_before(query, slot);
      if (e == nullptr && slot >= stored_.rows()) break;
      if (e == nullptr) continue;
      stored_.for_each_slab(run, slot, fn);
      fn(row_of(*e, streams));
      run = slot + 1;
    }
    stored_.for_each_slab(run, slot, fn);
  }
  // fn(position, score) for each row that the next query may see and that has a score.
  template <class Fn>
  void for_each_scored(stream_span streams, Fn&& fn) const {
    for (std::size_t s = 0; s < scores_.size(); ++s)
      streams[s].for_each_position([&](position pos, std::size_t at) {
        if (!streams[s].expired(pos, next_query_)) fn(pos, scores_[s][at]);
      });
    for (token_count slot = 0; slot < members_.size(); ++slot)
      fn(members_.newest(slot).pos, members_.newest(slot).score);
  }

  // Between steps. Throws as the archive does; false where pages or memory refuse; clear() then
  // frees. Check is_sound() before any other use.
  template <class Archive>
  [[nodiscard]] bool transfer(Archive& archive) {
    members_.transfer(archive);
    for (score_fifo& scores : scores_) scores.transfer(archive);
    log_.transfer(archive);
    archive.number(next_query_);
    return stored_.transfer(archive, members_.size());
  }
  // No token competes twice, and none that a query from `first` on sees in a stream is a member.
  // Only where is_sound(). O(members * log(members) + pages); throws what the memory resource
  // throws.
  [[nodiscard]] bool holds_each_once(position first, stream_span streams,
                                     std::pmr::memory_resource* memory) const {
    flat_vector<position> all(memory);
    all.reserve(stored_.rows() + members_.entries());
    for (token_count slot = 0; slot < stored_.rows(); ++slot) all.push_back(stored_.pos(slot));
    std::sort(all.begin(), all.end());
    for (const token_stream& stream : streams) {
      token_stream::cursor row(stream);
      for (const position pos : all)
        if (!stream.expired(pos, first) && row.find(pos)) return false;
    }
    for (const pool_entry& e : members_.all_entries()) all.push_back(e.pos);
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) == all.end();
  }

  // The equation between steps: a score for each row of a finite stream, as many pages as members
  // need, in each slot the row of its settled member, for each entry a row whose lifetime ended
  // with the entry's query, and for each query from undo_floor on a score in the log for each row
  // that it saw. O(rows + members).
  [[nodiscard]] bool is_sound(position undo_floor, token_count length,
                              stream_span streams) noexcept {
    bool sound = members_.is_sound(stored_.rows(), length, scores_.size()) &&
                 next_query_ == length && unstored_.rows() == 0 &&
                 stored_.more_pages(members_.size()) == 0;
    for (std::size_t s = 0; sound && s < scores_.size(); ++s)
      sound = scores_[s].size() == streams[s].rows();
    for (token_count slot = 0; sound && slot < stored_.rows(); ++slot)
      sound = stored_.pos(slot) < length && stored_.pos(slot) == members_.settled(slot).pos;
    for (const pool_entry& e : members_.all_entries())
      sound = sound && streams[e.stream].find(e.pos).has_value() &&
              streams[e.stream].expired(e.pos, e.query + 1) &&
              !streams[e.stream].expired(e.pos, e.query);
    return sound && log_.is_sound(undo_floor, length, [&](position query, std::size_t count) {
      std::size_t scored = 0;
      for_each_score(query, query, streams, [&](float&, std::size_t) { ++scored; });
      return scored == count;
    });
  }

 private:
  static constexpr std::uint32_t no_stream = lifetime_set::capacity;  // unstored_ holds the row

  [[nodiscard]] std::size_t members_after(const pool_demand& demand) const noexcept {
    return std::min<std::size_t>(capacity(), members_.size() + demand.expiring);
  }
  [[nodiscard]] std::size_t winners_unstored(const pool_demand& demand) const noexcept {
    return std::min<std::size_t>(demand.unstored, capacity());
  }
  // Entries that wait to settle, or may by the end of the step. Those of a prompt are of one query,
  // so at most one for each slot, and those of its newest query.
  [[nodiscard]] std::size_t entries_after(const pool_demand& demand) const noexcept {
    const std::size_t most = capacity() + std::size_t{lifetime_set::capacity};
    return members_.entries() + (demand.prompt ? std::min(demand.expiring, most) : demand.expiring);
  }

  void reserve(const pool_demand& demand, std::span<const std::size_t> added, std::size_t marks) {
    std::size_t scored = members_after(demand);
    for (std::size_t s = 0; s < scores_.size(); ++s) {
      scores_[s].reserve(scores_[s].size() + added[s]);
      scored += scores_[s].size() + added[s];
    }
    stored_.reserve(members_after(demand), entries_after(demand));
    members_.reserve(members_after(demand), entries_after(demand));
    log_.reserve_more(marks, marks * scored);
    for (std::size_t s = 0; s < scores_.size(); ++s)
      for (std::size_t i = 0; i < added[s]; ++i) scores_[s].push(0.0F);
  }
  void end_step() noexcept {
    stored_.give_back(members_.size());
    unstored_.cancel();
    prompt_ = false;
  }
  [[nodiscard]] slab row_of(const pool_entry& e, stream_span streams) const noexcept {
    const token_stream& holder = e.stream == no_stream ? unstored_ : streams[e.stream];
    const auto found = holder.find(e.pos);
    HEADWISE_EXPECTS(found.has_value(), "a heavy hitter is read before its row is written");
    return found->row;
  }
  // fn(score, index among the rows seen) for each row before `end` that the query sees and that has
  // a score, in the order of for_each_slab. Returns the number of all such rows.
  template <class Fn>
  std::size_t for_each_score(position query, position end, stream_span streams, Fn&& fn) noexcept {
    std::size_t seen = 0;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      const std::size_t first = streams[s].index_of(oldest_seen(query, streams[s].lifetime()));
      const std::size_t last = streams[s].index_of(end);
      if (s < scores_.size())
        for (std::size_t i = first; i < last; ++i) fn(scores_[s][i], seen + (i - first));
      seen += last - first;
    }
    for (token_count slot = 0; slot < members_.size(); ++slot) {
      if (slot >= stored_.rows() && members_.entry_before(query, slot) == nullptr) break;
      fn(members_.score_before(query, slot), seen++);
    }
    return seen;
  }

  // Where the step, from its first query on, or a later rollback may have to take the query back.
  // Its own row would go too.
  void remember(position query, stream_span streams) noexcept {
    if (log_.size() > marks_before_ && query < undo_from_) return;
    log_.open(query);
    for_each_score(query, query, streams, [&](float& score, std::size_t) { log_.push(score); });
  }
  // Undoes all from the query of the newest mark on.
  void take_back(stream_span streams) noexcept {
    const position query = log_.query();
    members_.take_back(query);
    const float* before = log_.newest();
    for_each_score(query, query, streams, [&](float& score, std::size_t) { score = *before++; });
    log_.pop();
  }
  // The token of each stream whose lifetime ends with the query competes.
  void expire(position query, stream_span streams) noexcept {
    next_query_ = query + 1;
    for (std::uint32_t s = 0; s < scores_.size(); ++s) {
      const token_count lifetime = streams[s].lifetime();
      if (lifetime > query + 1) continue;
      const position pos = oldest_seen(query, lifetime);
      if (const auto found = streams[s].find(pos))
        members_.compete(s, pos, scores_[s][found->index], query);
    }
  }

  pool_members members_;
  slot_pages stored_;                // the rows of settled members
  token_stream unstored_;            // winners of a prompt that no stream keeps, until commit
  fixed_vector<score_fifo> scores_;  // [finite streams]
  score_log log_;
  position next_query_ = 0;
  // Of the open step.
  position first_query_ = 0;
  position undo_from_ = 0;
  std::size_t marks_before_ = 0;  // in the log when it began
  bool prompt_ = false;
  bool shown_ = true;
  bool written_ = false;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
