// SPDX-License-Identifier: Apache-2.0
//
// Heads that rank, in a model of one layer, whose attention does not depend on what was given up:
// recorded maps and the naive oracle say which tokens each query sees, and llama.cpp's own
// attention over just those gives the logits.
#include <limits>

#include "llama_cpp/program/stock_engine.hpp"
#include "llama_cpp/recorder.hpp"
#include "llama_cpp/takeover.hpp"
#include "logits.hpp"
#include "random_models.hpp"

#include "headwise/io/map_archive.hpp"
#include "headwise/policy/heavy_hitters.hpp"
#include "support/files.hpp"
#include "support/naive_hitters.hpp"

namespace headwise_tests {
namespace {

constexpr std::size_t ranked_tokens = 140;
constexpr token_count recent = 12, hitters = 9;

// weights[query head][query][key] of the model's layer.
std::vector<std::vector<std::vector<double>>> recorded_weights(llama_model& model,
                                                               const token_ids& text) {
  const temporary_folder folder;
  auto options = by_one_thread<hlc::recorder_options>(ranked_tokens, 64);
  options.type = headwise::element_type::f32;
  options.context.type_k = options.context.type_v = GGML_TYPE_F32;
  hlc::recorder recorder(model, options);
  const std::vector<token_ids> prompts{text};
  recorder.record(folder.path() / "maps.safetensors", prompts);
  const std::filesystem::path paths[] = {folder.path() / "maps.safetensors"};
  headwise::map_archive archive(paths);
  std::vector<std::vector<std::vector<double>>> weights;
  std::vector<float> row(text.size());
  while (const auto map = archive.next()) {
    weights.emplace_back();
    for (std::size_t q = 0; q < text.size(); ++q) {
      map->weights.copy_row(q, row);
      weights.back().emplace_back(row.begin(), row.end());
    }
  }
  return weights;
}

class ranked_heads : public testing::Test {
 protected:
  ranked_heads() {
    const auto weights = recorded_weights(*model_, text_);
    const std::vector<token_count> lifetimes(text_.size(), recent);
    for (std::size_t head = 0; head < shape_.kv_heads; ++head) {
      const auto first = weights.begin() + static_cast<std::ptrdiff_t>(head * shape_.group_size());
      oracle_.push_back(follow_hitters({first, first + shape_.group_size()}, lifetimes, hitters));
      EXPECT_GT(oracle_.back().margin, 1e-5);  // no rank is a matter of rounding
    }
  }
  [[nodiscard]] bool is_seen(std::size_t head, position query, position pos) const {
    return pos == query || (query > 0 && oracle_[head].kept[query - 1].contains(pos));
  }
  // Logits of all tokens, [tokens][vocabulary], where each query sees what `sees` says.
  template <class Sees>
  std::vector<std::vector<float>> logits_by(const Sees& sees) {
    llama_context_params params = llama_context_default_params();
    params.n_threads = params.n_threads_batch = 1;
    params.type_k = params.type_v = GGML_TYPE_F32;
    hlc::watched_context context(
        *model_, params, ranked_tokens, 1, hlc::attention_stage::logits,
        [&](const hlc::watched_context::layer_view& logits) {
          for (std::uint32_t h = 0; h < shape_.query_heads; ++h) {
            const std::span<float> row = logits.head(h)[0];
            const auto cells = context.cell_positions();
            for (std::size_t c = 0; c < row.size(); ++c)
              if (cells[c] <= context.length() &&
                  !sees(h / shape_.group_size(), context.length(), cells[c]))
                row[c] = -std::numeric_limits<float>::infinity();
          }
        });
    std::vector<std::vector<float>> logits;
    for (const llama_token id : text_) {
      const auto row = context.run({&id, 1}, false)[0];
      logits.emplace_back(row.begin(), row.end());
    }
    return logits;
  }
  [[nodiscard]] headwise::blueprint ranked_plan(token_count pool) const {
    return headwise::uniform_blueprint(
        shape_, headwise::make_spec(headwise::union_of(headwise::heavy_hitters(pool),
                                                       headwise::local_window(recent))));
  }
  static float most_apart_of_all(const std::vector<std::vector<float>>& a,
                                 const std::vector<std::vector<float>>& b) {
    float most = 0.0F;
    for (std::size_t t = 0; t < a.size() && !std::isnan(most); ++t)
      if (const float apart = most_apart(a[t], b[t]); !(apart <= most)) most = apart;
    return most;
  }

  // Logits that are large enough for tokens to differ: else the oldest are the hitters.
  hlc::model_handle model_ = make_small_model("granite", {{"block_count", 1U},
                                                          {"attention.scale", 2.0F},
                                                          {"logit_scale", 1.0F},
                                                          {"residual_scale", 1.0F},
                                                          {"embedding_scale", 3.0F}});
  headwise::model_shape shape_ = hlc::shape_of(*model_);
  token_ids text_ = some_ids(ranked_tokens, 7);
  std::vector<naive_hitters> oracle_;  // [kv_heads]
};

TEST_F(ranked_heads, keep_what_the_oracle_keeps) {
  const auto expected = logits_by(
      [&](std::size_t head, position query, position pos) { return is_seen(head, query, pos); });
  // The oracle's choice shows in the logits: one that takes the oldest for the hitters gives
  // others.
  const auto oldest = logits_by([](std::size_t, position query, position pos) {
    return query - pos < recent || pos < hitters;
  });
  EXPECT_GT(most_apart_of_all(expected, oldest), 0.05F);
  for (const auto form : {hlc::takeover_form::op_swap, hlc::takeover_form::overwrite})
    for (const std::size_t piece : {std::size_t{1}, std::size_t{50}}) {
      hlc::takeover engine(*model_, ranked_plan(hitters),
                           by_one_thread<hlc::takeover_options>(ranked_tokens, 64, form));
      std::vector<std::vector<float>> got;
      for (std::size_t first = 0; first < text_.size(); first += piece)
        engine.feed(0, {text_.data() + first, std::min(piece, text_.size() - first)},
                    [&](headwise::position, headwise::rows<const float> logits) {
                      for (std::size_t i = 0; i < logits.count; ++i)
                        got.emplace_back(logits[i].begin(), logits[i].end());
                    });
      ASSERT_EQ(got.size(), expected.size());
      EXPECT_LE(most_apart_of_all(got, expected), 1e-3F) << piece;
      // What the last query saw; what leaves behind it does so when another comes.
      std::size_t kept = 0;
      for (const naive_hitters& head : oracle_) kept += head.kept[text_.size() - 2].size() + 1;
      EXPECT_EQ(engine.stats(0).resident_rows, kept);
    }
}

TEST_F(ranked_heads, with_room_for_all_are_stock) {
  hlc::stock_engine stock(*model_);
  hlc::takeover engine(
      *model_, ranked_plan(ranked_tokens),
      by_one_thread<hlc::takeover_options>(ranked_tokens, 64, hlc::takeover_form::op_swap));
  for (std::size_t first = 0; first < text_.size();) {
    const std::size_t count = first == 0 ? 70 : 1;
    const std::span<const llama_token> some(text_.data() + first, count);
    EXPECT_LE(most_apart(engine.feed(0, some), stock.feed(0, some)), 1e-3F) << first;
    first += count;
  }
}

}  // namespace
}  // namespace headwise_tests
