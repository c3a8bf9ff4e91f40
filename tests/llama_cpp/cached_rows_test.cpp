// SPDX-License-Identifier: Apache-2.0
//
// The store by itself, against attention in double over every row that a sequence was given: texts
// so long that heads are cut for several threads, prompts and single tokens in one micro-batch, and
// steps that are refused. The workers of a node are called one after the other.
#include "llama_cpp/cached_rows.hpp"

#include <gtest/gtest.h>

#include "headwise/codec/f32.hpp"
#include "headwise/policy/spec.hpp"
#include "support/random.hpp"
#include "support/reference_attention.hpp"

namespace headwise_tests {
namespace {

namespace hlc = headwise_llama_cpp;

constexpr headwise::model_shape stored_shape{1, 4, 2, 8};
constexpr std::size_t row_floats = 16, query_row_floats = 32, most_tokens = 64, worker_count = 3;
constexpr float stored_scale = 0.35F;

// So many tokens of a sequence.
struct fed {
  std::size_t sequence, count;
};

class cached_rows_test : public testing::Test {
 protected:
  using store = hlc::cached_rows<headwise::f32, headwise::f32>;

  static store make(const headwise::cache_config& config = {}) {
    return {headwise::uniform_blueprint(stored_shape, headwise::make_spec(headwise::global{})),
            config,
            {3, 700, most_tokens, worker_count, nullptr}};
  }
  [[nodiscard]] bool try_begin(store& rows, std::span<const fed> parts) {
    tokens_.clear();
    std::vector<hlc::step_part> steps;
    for (const fed& p : parts) {
      std::vector<headwise::token>& tokens = tokens_.emplace_back();
      for (std::size_t i = 0; i < p.count; ++i)
        tokens.push_back({static_cast<headwise::position>(rows.length(p.sequence) + i), 1});
    }
    for (std::size_t i = 0; i < parts.size(); ++i) steps.push_back({parts[i].sequence, tokens_[i]});
    return rows.try_begin(steps);
  }
  // What every token gives must be the attention over its sequence, whoever comes first.
  void feed(store& rows, std::span<const fed> parts) {
    ASSERT_TRUE(try_begin(rows, parts));
    std::size_t count = 0;
    for (const fed& p : parts) count += p.count;
    const auto keys = random_.numbers(count * row_floats), values = random_.numbers(keys.size()),
               queries = random_.numbers(count * query_row_floats);
    std::vector<float> out(queries.size());
    by_all([&](hlc::worker self) { rows.add_keys(self, {keys.data(), count, row_floats}); });
    by_all([&](hlc::worker self) { rows.add_values(self, 0, {values.data(), count, row_floats}); });
    by_all([&](hlc::worker self) {
      rows.attend(self, 0, {queries.data(), count, query_row_floats}, stored_scale,
                  {out.data(), count, query_row_floats});
    });
    rows.commit();
    std::size_t token = 0;
    for (const fed& p : parts)
      for (std::size_t i = 0; i < p.count; ++i, ++token) {
        texts_[p.sequence].add(keys.data() + token * row_floats,
                               values.data() + token * row_floats);
        texts_[p.sequence].expect(queries.data() + token * query_row_floats,
                                  out.data() + token * query_row_floats);
      }
  }
  void feed(store& rows, std::initializer_list<fed> parts) {
    feed(rows, std::span(parts.begin(), parts.size()));
  }
  void fill(store& rows, std::size_t sequence, std::size_t tokens) {
    for (; tokens > 0; tokens -= std::min(tokens, most_tokens))
      feed(rows, {{sequence, std::min(tokens, most_tokens)}});
  }

  // All rows of a sequence, [tokens, row_floats].
  struct kept_text {
    std::vector<float> keys, values;

    void add(const float* key, const float* value) {
      keys.insert(keys.end(), key, key + row_floats);
      values.insert(values.end(), value, value + row_floats);
    }
    void expect(const float* query, const float* out) const {
      constexpr std::size_t d = stored_shape.head_dim;
      for (std::size_t head = 0; head < stored_shape.query_heads; ++head) {
        std::vector<std::span<const float>> seen_keys, seen_values;
        for (std::size_t at = head / stored_shape.group_size() * d; at < keys.size();
             at += row_floats) {
          seen_keys.emplace_back(keys.data() + at, d);
          seen_values.emplace_back(values.data() + at, d);
        }
        const auto expected =
            reference_attention({query + head * d, d}, double{stored_scale}, seen_keys, seen_values)
                .values;
        for (std::size_t i = 0; i < d; ++i)
          ASSERT_NEAR(double{out[head * d + i]}, expected[i], 1e-5) << seen_keys.size() << " rows";
      }
    }
  };

  // Another one is the last of each node: whoever ends it does what is left to do.
  template <class Act>
  void by_all(const Act& act) {
    ++nodes_;
    for (std::size_t i = 0; i < worker_count; ++i) act({(nodes_ + i) % worker_count, worker_count});
  }

  kept_text texts_[3];

 private:
  std::size_t nodes_ = 0;
  random_source random_{11};
  std::vector<std::vector<headwise::token>> tokens_;  // of the open steps
};

TEST_F(cached_rows_test, heads_that_are_cut_are_put_together) {
  store rows = make();
  fill(rows, 0, 600);  // two pieces
  fill(rows, 2, 530);
  feed(rows, {{2, 1}, {0, 1}});
  feed(rows, {{0, 1}, {1, 1}, {2, 1}});
}

TEST_F(cached_rows_test, prompts_and_single_tokens_come_together) {
  store rows = make();
  feed(rows, {{0, 5}, {1, 1}, {2, 40}});
  feed(rows, {{2, 1}, {0, 17}});
  feed(rows, {{1, 1}, {2, 1}});
  EXPECT_EQ(rows.length(0), 22U);
  EXPECT_EQ(rows.length(1), 2U);
  EXPECT_EQ(rows.length(2), 42U);
}

TEST_F(cached_rows_test, a_fork_goes_on_by_itself) {
  store rows = make();
  fill(rows, 0, 70);
  fill(rows, 1, 5);
  rows.fork(0, 1);
  texts_[1] = texts_[0];
  feed(rows, {{1, 3}});
  feed(rows, {{0, 1}, {1, 1}});
  EXPECT_EQ(rows.length(0), 71U);
  EXPECT_EQ(rows.length(1), 74U);
}

TEST_F(cached_rows_test, a_mark_holds_no_page_once_it_is_dropped) {
  headwise::cache_config config;
  config.page_tokens = 16;
  config.pages = 3 * stored_shape.heads();
  store rows = make(config);
  fill(rows, 0, 20);
  rows.mark(0);
  const fed more[] = {{0, 20}};
  EXPECT_FALSE(try_begin(rows, more));  // the last page of each head is the mark's as well
  rows.drop_mark(0);
  fill(rows, 0, 20);
  EXPECT_EQ(rows.length(0), 40U);
}

TEST_F(cached_rows_test, a_refused_step_leaves_none_open) {
  headwise::cache_config config;
  config.page_tokens = 16;
  config.pages = 2 * stored_shape.heads();
  store rows = make(config);
  const fed too_many[] = {{0, 10}, {1, 20}};
  EXPECT_FALSE(try_begin(rows, too_many));
  feed(rows, {{1, 9}, {0, 16}});
  EXPECT_EQ(rows.length(0), 16U);
}

}  // namespace
}  // namespace headwise_tests
