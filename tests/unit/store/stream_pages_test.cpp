// SPDX-License-Identifier: Apache-2.0
//
// token_stream over pages of two sizes: which it takes, and that it stays the stream it is.
#include <deque>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/store/token_stream.hpp"
#include "support/counting_resource.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

using headwise::position;
using headwise::token_count;
using headwise::detail::page_pool;
using headwise::detail::token_stream;

constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

[[nodiscard]] bool extend(token_stream& stream, position first, std::size_t count) {
  if (!stream.try_extend(count)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const token_stream::slot slot = stream.next_slot();
    const auto pos = static_cast<position>(first + i);
    for (void* const to : {static_cast<void*>(slot.pos), static_cast<void*>(slot.key),
                           static_cast<void*>(slot.value)})
      std::memcpy(to, &pos, sizeof pos);
  }
  return true;
}

// Slots after 1, 9 and 41 rows: windows of up to eight pages take small ones, and so do the first
// rows of those that stay for good.
TEST(stream_pages, are_small_for_short_windows_and_first_rows) {
  struct expectation {
    token_count lifetime;
    std::size_t limit, slots[3];
  };
  for (const expectation& e :
       {expectation{256, any_number, {8, 16, 48}}, expectation{257, any_number, {32, 32, 64}},
        expectation{headwise::forever, any_number, {8, 16, 64}},
        expectation{256, 1000, {32, 32, 64}}, expectation{headwise::forever, 1000, {32, 32, 64}}}) {
    counting_resource memory;
    page_pool pool({32, 4, 4}, e.limit, 0, &memory);
    token_stream stream(e.lifetime, pool);
    position next = 0;
    std::size_t step = 0;
    for (const position rows : {1U, 9U, 41U}) {
      ASSERT_TRUE(extend(stream, next, rows - next));
      next = rows;
      stream.commit(0, std::nullopt);
      EXPECT_EQ(stream.pages().slots(), e.slots[step++]) << e.lifetime << ' ' << rows;
    }
    EXPECT_EQ(memory.bytes(),
              stream.pages().bytes() + stream.pages().blocks() * pool.block_bytes());
    stream.clear();
    EXPECT_EQ(memory.bytes(), 0U);
  }
}

// What a query sees, as positions that keys and values agree on.
[[nodiscard]] std::deque<position> seen(const token_stream& stream, position query) {
  std::deque<position> result;
  const auto collect = [&](const headwise::slab& s) {
    for (std::uint32_t i = 0; i < s.count; ++i) {
      position key = 0, value = 0;
      std::memcpy(&key, s.keys + i * sizeof key, sizeof key);
      std::memcpy(&value, s.values + i * sizeof value, sizeof value);
      EXPECT_EQ(key, s.positions[i]);
      EXPECT_EQ(value, s.positions[i]);
      result.push_back(key);
    }
  };
  stream.for_each_slab(query, query, collect);
  return result;
}

// A stream beside a deque of its positions: steps kept or cancelled, rollbacks, forks that go on
// and are dropped, refusals of memory.
class stream_and_deque {
 public:
  stream_and_deque(token_count lifetime, std::uint32_t page_tokens, std::uint32_t seed)
      : random_(seed),
        pool_({page_tokens, 4, 4}, any_number, 0, &memory_),
        stream_(lifetime, pool_) {}
  stream_and_deque(const stream_and_deque&) = delete;
  stream_and_deque& operator=(const stream_and_deque&) = delete;
  ~stream_and_deque() { stream_.clear(); }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      switch (random_.below(8)) {
        case 0:
          rollback();
          break;
        case 1:
          fork();
          break;
        default:
          step(stream_, random_.one_in(6) ? random_.below(100) : random_.below(4));
      }
      check(stream_);
    }
    stream_.clear();
    EXPECT_EQ(memory_.bytes(), 0U);
  }

 private:
  void step(token_stream& stream, std::size_t count) {
    const std::size_t pages = pool_.pages_in_use(), needed = stream.pages_needed(count);
    if (random_.one_in(5)) memory_.refuse_after(random_.below(4));
    const bool extended = extend(stream, length_, count);
    memory_.allow_all();
    if (!extended || random_.one_in(4)) {
      stream.cancel();
      EXPECT_EQ(pool_.pages_in_use(), pages);
      return;
    }
    EXPECT_EQ(pool_.pages_in_use(), pages + needed);
    for (std::size_t i = 0; i < count; ++i) rows_.push_back(length_++);
    const position keep_from = length_ == 0 ? 0 : length_ - 1;
    stream.commit(keep_from, std::nullopt);
    while (!rows_.empty() && stream.expired(rows_.front(), keep_from)) rows_.pop_front();
  }
  void rollback() {
    const token_count length = length_ - random_.below(std::min<token_count>(length_, 60) + 1);
    if (stream_.missing_after_rollback(length)) return;
    stream_.rollback(length);
    length_ = length;
    while (!rows_.empty() && rows_.back() >= length) rows_.pop_back();
  }
  // Another stream over the same pages writes on; then one of the two goes.
  void fork() {
    token_stream copy(stream_.lifetime(), pool_);
    stream_.share_with(copy);
    const auto rows = rows_;
    const token_count length = length_;
    step(copy, random_.below(20));
    check(copy);
    if (random_.one_in(2)) {
      std::swap(copy, stream_);
    } else {
      rows_ = rows;
      length_ = length;
    }
    copy.clear();
  }
  void check(const token_stream& stream) {
    const position query = length_ == 0 ? 0 : length_ - 1;
    EXPECT_TRUE(stream.is_sound(query, length_));
    EXPECT_EQ(stream.rows(), rows_.size());
    EXPECT_EQ(seen(stream, query), rows_);
    EXPECT_EQ(stream.oldest(), rows_.empty() ? std::nullopt : std::optional(rows_.front()));
    for (std::size_t i = 0; i < rows_.size(); i += 1 + rows_.size() / 5) {
      EXPECT_TRUE(stream.holds(rows_[i]));
      EXPECT_EQ(stream.index_of(rows_[i]), i);
      EXPECT_EQ(stream.find(rows_[i]).value().index, i);
    }
    EXPECT_FALSE(stream.holds(length_));
  }

  random_source random_;
  counting_resource memory_;
  page_pool pool_;
  token_stream stream_;
  std::deque<position> rows_;
  token_count length_ = 0;
};

TEST(stream_pages, of_two_sizes_hold_what_a_deque_holds) {
  for (const token_count lifetime : {1U, 20U, 256U, 300U, headwise::forever})
    for (const std::uint32_t page_tokens : {1U, 9U, 32U, 70U})
      for (std::uint32_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(lifetime);
        SCOPED_TRACE(page_tokens);
        stream_and_deque(lifetime, page_tokens, seed).run(300);
      }
}

}  // namespace
}  // namespace headwise_tests
