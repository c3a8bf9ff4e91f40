// SPDX-License-Identifier: Apache-2.0
//
// A form of the takeover that does not give stock's logits is found at start, and not used.
#include "llama_cpp/self_check.hpp"

#include <limits>

#include "llama_cpp/cached_rows.hpp"
#include "llama_cpp/takeover.hpp"
#include "models.hpp"

#include "headwise/codec/f32.hpp"

namespace headwise_tests {
namespace {

using hlc::graph_form;

class self_check_test : public testing::Test {
 protected:
  // prepare(context, rows): before the check.
  template <class Rows = hlc::cached_rows<headwise::f32, headwise::f32>, class Prepare>
  std::string difference(graph_form form, const headwise::policy_spec& policy,
                         const Prepare& prepare) {
    llama_context_params params = llama_context_default_params();
    params.n_threads = params.n_threads_batch = 1;
    hlc::hooked_context context(*model_, params, 64, 1);
    Rows rows(headwise::uniform_blueprint(hlc::shape_of(*model_), policy), {},
              hlc::self_check_sizes(1));
    prepare(context, rows);
    return hlc::find_difference(*model_, context, form, rows);
  }
  template <class Rows = hlc::cached_rows<headwise::f32, headwise::f32>>
  std::string difference(graph_form form, const headwise::policy_spec& policy =
                                              headwise::make_spec(headwise::global{})) {
    return difference<Rows>(form, policy, [](const hlc::hooked_context&, const Rows&) {});
  }

  hlc::model_handle model_ = load_quietly(tiny_model);
};

TEST_F(self_check_test, finds_rows_that_are_missing) {
  for (const auto form : {graph_form::op_swap, graph_form::overwrite}) {
    EXPECT_EQ(difference(form), "");
    const std::string found = difference(form, headwise::make_spec(headwise::local_window(3)));
    EXPECT_NE(found.find("its attention in layer 0"), std::string::npos) << found;
  }
}

// Rows whose attention is a little wrong.
template <class Skew>
struct skewed_rows final : hlc::cached_rows<headwise::f32, headwise::f32> {
  using cached_rows::cached_rows;
  void attend(hlc::worker self, std::uint32_t layer, headwise::rows<const float> queries,
              float scale, headwise::rows<float> out) noexcept override {
    Skew::attend(*this, self, layer, queries, scale, out);
  }
  void attend_well(hlc::worker self, std::uint32_t layer, headwise::rows<const float> queries,
                   float scale, headwise::rows<float> out) noexcept {
    cached_rows::attend(self, layer, queries, scale, out);
  }
};
struct scale_of_two_percent_more {
  static void attend(skewed_rows<scale_of_two_percent_more>& rows, hlc::worker self,
                     std::uint32_t layer, headwise::rows<const float> queries, float scale,
                     headwise::rows<float> out) noexcept {
    rows.attend_well(self, layer, queries, layer == 1 ? 1.02F * scale : scale, out);
  }
};
struct nan_in_one_output {
  static void attend(skewed_rows<nan_in_one_output>& rows, hlc::worker self, std::uint32_t layer,
                     headwise::rows<const float> queries, float scale,
                     headwise::rows<float> out) noexcept {
    rows.attend_well(self, layer, queries, scale, out);
    if (layer == 1) out[0][0] = std::numeric_limits<float>::quiet_NaN();
  }
};

TEST_F(self_check_test, finds_a_layer_that_is_a_little_wrong) {
  for (const auto form : {graph_form::op_swap, graph_form::overwrite}) {
    for (const std::string& found : {difference<skewed_rows<scale_of_two_percent_more>>(form),
                                     difference<skewed_rows<nan_in_one_output>>(form)})
      EXPECT_NE(found.find("its attention in layer 1"), std::string::npos) << found;
  }
}

// Attention that is not what the adapter takes it for, found by llama.cpp's own outputs.
TEST_F(self_check_test, finds_attention_that_sees_what_comes_later) {
  for (const auto form : {graph_form::op_swap, graph_form::overwrite}) {
    const std::string found =
        difference(form, headwise::make_spec(headwise::global{}),
                   [](const hlc::hooked_context& context, const hlc::row_store&) {
                     llama_set_causal_attn(context.get(), false);
                   });
    EXPECT_EQ(found.find("llama.cpp's attention in layer 0"), 0U) << found;
  }
}

// Rows whose attention is right in every layer, in a model that another hand steers meanwhile.
struct steered_rows final : hlc::cached_rows<headwise::f32, headwise::f32> {
  using cached_rows::cached_rows;
  llama_context* context = nullptr;
  std::vector<float> direction;  // of every layer but the first, [layers - 1, width]

  [[nodiscard]] bool try_begin(std::span<const hlc::step_part> parts) noexcept override {
    const auto layers = static_cast<std::int32_t>(shape().layers);
    llama_set_adapter_cvec(context, direction.data(), direction.size(),
                           static_cast<std::int32_t>(direction.size()) / (layers - 1), 1,
                           layers - 1);
    return cached_rows::try_begin(parts);
  }
};

TEST_F(self_check_test, finds_logits_that_are_others) {
  for (const auto form : {graph_form::op_swap, graph_form::overwrite}) {
    const std::string found = difference<steered_rows>(
        form, headwise::make_spec(headwise::global{}),
        [&](const hlc::hooked_context& context, steered_rows& rows) {
          rows.context = context.get();
          rows.direction.assign(static_cast<std::size_t>(llama_model_n_embd(model_.get())) *
                                    (rows.shape().layers - 1),
                                1.0F);
        });
    EXPECT_EQ(found.find("its logits are"), 0U) << found;
  }
}

// As steered rows, but once, behind the last layer, and away from numbers: later runs are right.
struct rows_with_one_bad_run final : hlc::cached_rows<headwise::f32, headwise::f32> {
  using cached_rows::cached_rows;
  llama_context* context = nullptr;
  std::vector<float> direction;

  [[nodiscard]] bool try_begin(std::span<const hlc::step_part> parts) noexcept override {
    const auto layers = static_cast<std::int32_t>(shape().layers);
    llama_set_adapter_cvec(context, length(0) == 0 ? direction.data() : nullptr, direction.size(),
                           static_cast<std::int32_t>(direction.size()) / (layers - 1), layers - 1,
                           layers - 1);
    return cached_rows::try_begin(parts);
  }
};

TEST_F(self_check_test, finds_logits_that_were_no_numbers_once) {
  const std::string found = difference<rows_with_one_bad_run>(
      graph_form::op_swap, headwise::make_spec(headwise::global{}),
      [&](const hlc::hooked_context& context, rows_with_one_bad_run& rows) {
        rows.context = context.get();
        rows.direction.assign(
            static_cast<std::size_t>(llama_model_n_embd(model_.get())) * (rows.shape().layers - 1),
            std::numeric_limits<float>::quiet_NaN());
      });
  EXPECT_EQ(found.find("its logits are nan"), 0U) << found;
}

// Asked by llama.cpp from within graphs; true once, at the call that is to fail.
struct one_interruption {
  std::size_t left = 0;
  static bool wanted(void* data) { return static_cast<one_interruption*>(data)->left-- == 0; }
};

TEST_F(self_check_test, falls_back_and_says_so) {
  std::size_t refused = 0, fallen_back = 0, swapped = 0;
  for (std::size_t calls = 1; swapped == 0 && calls < 1'000'000; calls += calls / 2 + 1) {
    one_interruption stop{calls};
    auto options = by_one_thread<hlc::takeover_options>(64, 256);
    options.context.abort_callback = &one_interruption::wanted;
    options.context.abort_callback_data = &stop;
    try {
      hlc::takeover engine(*model_, all_global(*model_), options);
      const bool fell = engine.form() == graph_form::overwrite;
      EXPECT_EQ(engine.form_note().empty(), !fell);
      (fell ? fallen_back : swapped) += 1;
      const llama_token id = 3;
      EXPECT_FALSE(engine.feed(0, {&id, 1}).empty());
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.code(), headwise::error_code::unsupported);
      ++refused;  // already the stock graph did not run
    }
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(fallen_back, 0U);
  EXPECT_EQ(swapped, 1U);
}

}  // namespace
}  // namespace headwise_tests
