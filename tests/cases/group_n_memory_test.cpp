// SPDX-License-Identifier: Apache-2.0
//
// Fault cases N19 and N21: what the cache asks of a memory resource, what a refusal leaves behind,
// and rows that must survive what happens around them.
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/counting_resource.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

// Like the aligned_alloc of C11, refuses a size that is no multiple of the alignment; and like a
// leak checker remembers how each block was asked for.
class pedantic_resource final : public std::pmr::memory_resource {
 public:
  [[nodiscard]] counting_resource& counting() noexcept { return counting_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    EXPECT_EQ(bytes % alignment, 0U) << bytes << " bytes aligned to " << alignment;
    void* const block = counting_.allocate(bytes, alignment);
    asked_[block] = {bytes, alignment};
    return block;
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    EXPECT_EQ(asked_[block], std::pair(bytes, alignment));
    counting_.deallocate(block, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  counting_resource counting_;
  std::map<void*, std::pair<std::size_t, std::size_t>> asked_;
};

using cache = headwise::cache_manager<test_policies, headwise::f16>;
constexpr headwise::model_shape odd_shape{1, 1, 1, 33};

std::vector<float> odd_row() {
  std::vector<float> row(odd_shape.head_dim);
  std::iota(row.begin(), row.end(), 1.0F);
  return row;
}

// Positions and bytes of all that the newest query sees.
std::vector<std::byte> digest(const cache::sequence_type& text) {
  std::vector<std::byte> bytes;
  if (text.length() == 0) return bytes;
  text.head({0, 0}).for_each_slab(text.length() - 1, [&](const headwise::slab& s) {
    const auto add = [&](const void* data, std::size_t size) {
      const auto* const first = static_cast<const std::byte*>(data);
      bytes.insert(bytes.end(), first, first + size);
    };
    add(s.positions, s.count * sizeof(position));
    add(s.keys, s.count * headwise::f16::row_bytes(odd_shape.head_dim));
    add(s.values, s.count * headwise::f16::row_bytes(odd_shape.head_dim));
  });
  return bytes;
}

// False where memory refuses; then the sequence must be what it was.
bool append_one(cache::sequence_type& text) {
  const std::vector<std::byte> before = digest(text);
  const token next{text.length()};
  auto step = text.try_append({&next, 1});
  if (!step) {
    EXPECT_EQ(next.pos, text.length());
    EXPECT_EQ(before, digest(text));
    return false;
  }
  const std::vector<float> row = odd_row();
  step->write({0, 0}, {row.data(), 1, row.size()}, {row.data(), 1, row.size()});
  std::move(*step).commit();
  return true;
}

// Three rows in pages of three, a fork, and a row more on either side. True when nothing was
// refused.
bool run_script(std::pmr::memory_resource* memory) {
  try {
    cache manager(odd_shape, {headwise::global{}}, {.page_tokens = 3, .memory = memory});
    cache::sequence_type text = manager.open();
    for (int i = 0; i < 3; ++i)
      if (!append_one(text)) return false;
    const std::vector<std::byte> before = digest(text);
    try {
      cache::sequence_type twin = text.fork();
      return append_one(twin) && append_one(text);
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(before, digest(text));
      return false;
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
}

TEST(fault_cases, N19_memory_that_refuses_at_any_call_leaves_no_trace) {
  pedantic_resource memory;
  std::size_t refusals = 0;
  for (std::size_t n = 0;; ++n) {
    memory.counting().refuse_after(n);
    const bool done = run_script(&memory);
    EXPECT_EQ(memory.counting().bytes(), 0U) << "after a refusal at call " << n;
    if (done) break;
    ++refusals;
  }
  EXPECT_GE(refusals, 5U);  // at least the state, a page and a link, and the fork's
}

struct kept_row {
  position pos;
  std::vector<std::byte> key, value;
  friend bool operator==(const kept_row&, const kept_row&) = default;
};

template <class View>
std::vector<kept_row> rows_of(const View& view, position query) {
  const std::size_t bytes = headwise::f32::row_bytes(view.head_dim());
  std::vector<kept_row> result;
  view.for_each_slab(query, [&](const headwise::slab& s) {
    for (std::size_t i = 0; i < s.count; ++i)
      result.push_back({s.positions[i],
                        {s.keys + i * bytes, s.keys + (i + 1) * bytes},
                        {s.values + i * bytes, s.values + (i + 1) * bytes}});
  });
  return result;
}

// What the fixture gives for these positions, encoded out of place.
std::vector<kept_row> rows_made(const fixture& rows, std::size_t d, const positions& kept) {
  std::vector<kept_row> result;
  for (const position pos : kept) {
    std::vector<float> key(d), value(d);
    rows.key({0, 0}, pos, key);
    rows.value({0, 0}, pos, value);
    kept_row row{pos, std::vector<std::byte>(4 * d), std::vector<std::byte>(4 * d)};
    headwise::f32::encode(key, row.key.data());
    headwise::f32::encode(value, row.value.data());
    result.push_back(std::move(row));
  }
  return result;
}

// Rows never move inside a page, and a page that a fork shares is copied, never compacted.
TEST(fault_cases, N21_kept_rows_are_whole_through_eviction_and_copy_on_write) {
  const positions kept{1, 3, 4, 7};
  for (const std::uint32_t d : {1U, 7U, 64U}) {
    for (const std::uint32_t page_tokens : {1U, 2U, 3U, 8U}) {
      SCOPED_TRACE(testing::Message() << "head_dim " << d << ", pages of " << page_tokens);
      position picked = 0;
      const fixture rows = picking_fixture([&] { return picked; });
      engine text({1, 1, 1, d}, {special_ids({5})}, rows, {.page_tokens = page_tokens});
      text.feed({0, 5, 0, 5, 5, 0, 0, 5});
      EXPECT_EQ(rows_of(text.text().head({0, 0}), 7), rows_made(rows, d, kept));

      engine twin = text.fork();
      const positions seen_next{1, 3, 4, 7, 8};
      for (const position pos : kept) {
        picked = pos;
        const float got = twin.feed(1).last();
        EXPECT_NEAR(got, twin.dense(0, 0, 8, seen_next).values[0], 1e-5) << "picking " << pos;
        ASSERT_TRUE(twin.text().try_rollback(1));
      }
      twin.feed(std::vector<std::int32_t>{5});
      EXPECT_EQ(rows_of(twin.text().head({0, 0}), 8), rows_made(rows, d, seen_next));
      EXPECT_EQ(rows_of(text.text().head({0, 0}), 7), rows_made(rows, d, kept));
    }
  }
}

}  // namespace
}  // namespace headwise_tests
