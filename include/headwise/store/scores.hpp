// SPDX-License-Identifier: Apache-2.0
//
// score_fifo: the scores of a stream's rows, oldest first, one for each row that the stream holds.
// score_log: what scores were before a query was counted, so that it can be taken back.
// Both belong to one sequence, so forks that share rows each go on with scores of their own.
// O(1) a call, reserve() amortized. One thread at a time.
#pragma once

#include <algorithm>

#include "headwise/core/flat_vector.hpp"
#include "headwise/core/types.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

class score_fifo {
 public:
  explicit score_fifo(std::pmr::memory_resource* memory) : ring_(memory) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t held_bytes() const noexcept { return ring_.held_bytes(); }
  [[nodiscard]] float& operator[](std::size_t i) noexcept { return ring_[slot(i)]; }
  [[nodiscard]] float operator[](std::size_t i) const noexcept { return ring_[slot(i)]; }

  // Room for `count` scores in all. Throws what the memory resource throws.
  void reserve(std::size_t count) {
    if (count <= ring_.size()) return;
    flat_vector<float> larger(ring_.memory());
    larger.reserve(std::max(count, 2 * ring_.size()));
    for (std::size_t i = 0; i < size_; ++i) larger.push_back((*this)[i]);
    larger.resize(larger.capacity());
    ring_.swap(larger);
    first_ = 0;
  }
  template <class Archive>
  void transfer(Archive& archive) {
    std::uint64_t count = size_;
    archive.number(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      float score = Archive::loading ? 0.0F : (*this)[i];
      archive.number(score);
      if constexpr (Archive::loading) {
        reserve(size_ + 1);
        push(score);
      }
    }
  }
  void push(float score) noexcept { ring_[slot(size_++)] = score; }
  void drop_front(std::size_t count) noexcept {
    first_ = size_ == count ? 0 : slot(count);
    size_ -= count;
  }
  void drop_back(std::size_t count) noexcept { size_ -= count; }

 private:
  [[nodiscard]] std::size_t slot(std::size_t i) const noexcept {
    const std::size_t at = first_ + i;
    return at < ring_.size() ? at : at - ring_.size();
  }

  flat_vector<float> ring_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

class score_log {
 public:
  explicit score_log(std::pmr::memory_resource* memory) : marks_(memory), scores_(memory) {}

  [[nodiscard]] std::size_t size() const noexcept { return marks_.size(); }
  // Of the newest mark.
  [[nodiscard]] position query() const noexcept {
    return static_cast<position>(marks_.back().query);
  }
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return marks_.held_bytes() + scores_.held_bytes();
  }

  // Room for that many more. Throws what the memory resource throws.
  void reserve_more(std::size_t marks, std::size_t scores) {
    marks_.reserve_amortized(marks_.size() + marks);
    scores_.reserve_amortized(scores_.size() + scores);
  }
  // Opens the mark of a query; push() then adds the scores of the rows that it sees.
  void open(position query) noexcept { marks_.push_back({query, scores_.size()}); }
  void push(float score) noexcept { scores_.push_back(score); }
  // The scores of the newest mark, in the order in which they were pushed.
  [[nodiscard]] const float* newest() const noexcept {
    return scores_.data() + marks_.back().first;
  }
  void pop() noexcept {
    scores_.resize(marks_.back().first);
    marks_.pop_back();
  }
  // Drops the marks of queries before `query`.
  void forget_before(position query) noexcept {
    const auto kept =
        std::find_if(marks_.begin(), marks_.end(), [&](const mark& m) { return m.query >= query; });
    const std::size_t first = kept == marks_.end() ? scores_.size() : kept->first;
    scores_.erase_front(first);
    marks_.erase_front(static_cast<std::size_t>(kept - marks_.begin()));
    for (mark& m : marks_) m.first -= first;
  }
  template <class Archive>
  void transfer(Archive& archive) {
    archive.numbers(marks_);
    archive.numbers(scores_);
  }
  // The marks are those of the queries first .. end, and fn(query, number of its scores) holds for
  // each.
  template <class Fn>
  [[nodiscard]] bool is_sound(position first, position end, Fn&& fn) const {
    if (marks_.size() != end - first) return false;
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      const std::size_t last = i + 1 < marks_.size() ? marks_[i + 1].first : scores_.size();
      const auto query = static_cast<position>(first + i);
      if (marks_[i].query != query || marks_[i].first > last || !fn(query, last - marks_[i].first))
        return false;
    }
    return marks_.empty() ? scores_.empty() : marks_[0].first == 0;
  }
  void clear() noexcept {
    marks_.clear();
    scores_.clear();
  }

 private:
  struct mark {
    std::uint64_t query;  // a position; wide, so that a mark has no padding
    std::uint64_t first;  // of its scores
  };

  flat_vector<mark> marks_;  // by query
  flat_vector<float> scores_;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
