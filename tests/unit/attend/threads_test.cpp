// SPDX-License-Identifier: Apache-2.0
//
// layer_partition: shares of a layer, attended by as many threads as there are workers. Run under
// the thread sanitizer as well.
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/attend/partition.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

constexpr headwise::model_shape layer_shape{2, 10, 5, 24};
constexpr std::size_t tokens_fed = 331, rows_of_a_piece = 64;

// Heads of many rows, some, few, and two that rank.
std::vector<test_policy> unequal_plan() {
  const headwise::union_of recent_hitters(headwise::local_window(90), headwise::heavy_hitters(30));
  const std::vector<test_policy> layer{headwise::global{}, headwise::local_window(65),
                                       headwise::local_window(1), recent_hitters,
                                       headwise::heavy_hitters(3)};
  std::vector<test_policy> plan = layer;
  plan.insert(plan.end(), layer.begin(), layer.end());
  return plan;
}

struct layer_output {
  std::vector<float> values = std::vector<float>(layer_shape.query_heads * layer_shape.head_dim);
  std::vector<float> lse = std::vector<float>(layer_shape.query_heads);
  [[nodiscard]] headwise::rows<float> rows() {
    return {values.data(), layer_shape.query_heads, layer_shape.head_dim};
  }
  friend bool operator==(const layer_output&, const layer_output&) = default;
};

class layer_partition : public ::testing::Test {
 protected:
  layer_partition() { text.feed(tokens_fed); }

  [[nodiscard]] std::vector<float> queries() const {
    layer_output all;
    for (std::uint32_t g = 0; g < layer_shape.query_heads; ++g)
      rows.query(1, g, newest, all.rows()[g]);
    return all.values;
  }
  [[nodiscard]] layer_output attend_by(std::size_t workers) {
    headwise::layer_partition cut(layer_shape, tokens_fed, workers, rows_of_a_piece);
    cut.split(text.text(), 1, newest);
    check_shares(cut);
    const std::vector<float> q = queries();
    layer_output result;
    std::vector<std::thread> threads;
    for (std::size_t worker = 0; worker < workers; ++worker)
      threads.emplace_back([&, worker] {
        headwise::attend_scratch scratch(layer_shape.group_size(), layer_shape.head_dim,
                                         tokens_fed);
        cut.attend(worker, text.text(), {q.data(), layer_shape.query_heads, layer_shape.head_dim},
                   rows.scale, result.rows(), result.lse, scratch);
      });
    for (std::thread& thread : threads) thread.join();
    cut.merge(result.rows(), result.lse);
    return result;
  }
  // 1. every row of every head once, in order  2. no share above the mean by more than a piece
  void check_shares(const headwise::layer_partition& cut) const {
    std::vector<std::size_t> covered(layer_shape.kv_heads), loads;
    std::size_t total = 0, largest = 0;
    for (std::size_t worker = 0; worker < cut.workers(); ++worker) {
      loads.push_back(0);
      for (const headwise::attend_piece& piece : cut.share(worker)) {
        EXPECT_EQ(piece.rows.first, covered[piece.kv_head]);
        covered[piece.kv_head] += piece.rows.count;
        const std::size_t cost = piece.rows.count + 32;
        largest = std::max(largest, cost);
        loads.back() += cost;
        total += cost;
      }
    }
    for (std::uint32_t head = 0; head < layer_shape.kv_heads; ++head)
      EXPECT_EQ(covered[head], text.kept({1, head}).size());                                // 1
    for (const std::size_t load : loads) EXPECT_LE(load, total / cut.workers() + largest);  // 2
  }

  static constexpr position newest = tokens_fed - 1;
  fixture rows = random_fixture(3);
  engine<headwise::f16> text{layer_shape, unequal_plan(), rows, {.page_tokens = 7}};
};

TEST_F(layer_partition, any_number_of_workers_gives_the_same_bits) {
  const layer_output alone = attend_by(1);
  for (const std::size_t workers : {2U, 3U, 4U, 7U, 40U})
    EXPECT_EQ(attend_by(workers), alone) << workers;
}

TEST_F(layer_partition, is_the_attention_over_the_whole_rows) {
  const layer_output got = attend_by(3);
  const std::vector<float> q = queries();
  headwise::attend_scratch scratch(layer_shape.group_size(), layer_shape.head_dim, tokens_fed);
  layer_output whole;
  for (std::uint32_t head = 0; head < layer_shape.kv_heads; ++head) {
    const std::size_t group = layer_shape.group_size(), d = layer_shape.head_dim, g = head * group;
    headwise::attend(text.text().head({1, head}), newest, {q.data() + g * d, group, d}, rows.scale,
                     {whole.values.data() + g * d, group, d}, {whole.lse.data() + g, group},
                     scratch);
    for (std::uint32_t i = 0; i < group; ++i) {
      const auto expected =
          text.dense(1, static_cast<std::uint32_t>(g) + i, newest, text.kept({1, head}));
      for (std::size_t e = 0; e < d; ++e)
        ASSERT_NEAR(double{got.values[(g + i) * d + e]}, expected.values[e], 2e-3);
    }
  }
  for (std::size_t i = 0; i < got.values.size(); ++i)
    ASSERT_NEAR(got.values[i], whole.values[i], 2e-6F);  // the rounding of a few additions
  for (std::size_t g = 0; g < got.lse.size(); ++g) ASSERT_NEAR(got.lse[g], whole.lse[g], 2e-6F);
  // Heads of one piece: the very same.
  const std::size_t small = 4 * layer_shape.head_dim;  // the window of one row
  EXPECT_TRUE(std::equal(got.values.begin() + small, got.values.begin() + small + 48,
                         whole.values.begin() + small));
}

TEST_F(layer_partition, heads_that_rank_are_shown_their_attention_once) {
  engine<headwise::f16> plain = text.fork();
  const auto grow = [&](engine<headwise::f16>& one, std::size_t workers) {
    headwise::layer_partition cut(layer_shape, tokens_fed + 1, workers, rows_of_a_piece);
    headwise::attend_scratch scratch(layer_shape.group_size(), layer_shape.head_dim,
                                     tokens_fed + 1);
    const token next{tokens_fed};
    auto step = one.text().try_append(next);
    std::vector<float> row(layer_shape.head_dim), q(layer_shape.query_heads * row.size());
    layer_output out;
    for (std::uint32_t layer = 0; layer < layer_shape.layers; ++layer) {
      for (std::uint32_t head = 0; head < layer_shape.kv_heads; ++head) {
        rows.key({layer, head}, tokens_fed, row);
        step->write({layer, head}, {row.data(), 1, row.size()}, {row.data(), 1, row.size()});
      }
      for (std::uint32_t g = 0; g < layer_shape.query_heads; ++g)
        rows.query(layer, g, tokens_fed, std::span(q).subspan(g * row.size(), row.size()));
      cut.split(*step, layer, tokens_fed);
      for (std::size_t worker = 0; worker < workers; ++worker)
        cut.attend(worker, *step, {q.data(), layer_shape.query_heads, row.size()}, rows.scale,
                   out.rows(), out.lse, scratch);
      cut.merge(out.rows(), {});
    }
    std::move(*step).commit();  // refuses where a head was not shown its attention
  };
  grow(text, 1);
  grow(plain, 3);
  EXPECT_EQ(saved(text.text()), saved(plain.text()));
}

TEST_F(layer_partition, refuses_rows_that_fill_the_address_space) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  for (const std::size_t max_rows : {all, all / 2})
    for (const std::size_t piece_rows : {1U, 1024U}) {
      try {
        headwise::layer_partition cut({1, 64, 8, 128}, max_rows, 2, piece_rows);
        ADD_FAILURE() << max_rows;
      } catch (const headwise::error& e) {
        EXPECT_EQ(e.code(), headwise::error_code::out_of_range);
        EXPECT_EQ(e.place(), "layer_partition.max_rows");
      }
    }
}

}  // namespace
}  // namespace headwise_tests
