// SPDX-License-Identifier: Apache-2.0
//
// Runs that end halfway, by whoever looks at the layers or by an abort callback that was there
// before: what they say, and that the next run is as if they had not been.
#include "llama_cpp/watched_context.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "logits.hpp"
#include "models.hpp"

#include "support/allocation_watch.hpp"

namespace headwise_tests {
namespace {

class watched_context_test : public testing::Test {
 protected:
  struct interruption {
    bool armed = false;
    static bool wanted(void* data) { return static_cast<interruption*>(data)->armed; }
  };
  struct refusal {
    std::uint32_t layer = 0;
    bool armed = false;
  };

  hlc::watched_context make() {
    llama_context_params params = llama_context_default_params();
    params.n_threads = params.n_threads_batch = 1;
    params.abort_callback = &interruption::wanted;
    params.abort_callback_data = &interruption_;
    return {*model_,
            params,
            256,
            64,
            hlc::attention_stage::probabilities,
            [this](const hlc::watched_context::layer_view& seen) {
              if (refusal_.armed && seen.layer == refusal_.layer)
                throw std::runtime_error("not this layer");
            }};
  }
  // `disturb` between two runs: the second gives what it gives without.
  template <class Disturb>
  void expect_undisturbed(const Disturb& disturb) {
    hlc::watched_context disturbed = make(), undisturbed = make();
    const std::span<const llama_token> begin(text_.data(), 20), rest(text_.data() + 20, 20);
    for (hlc::watched_context* const each : {&disturbed, &undisturbed}) each->run(begin, false);
    for (int i = 0; i < 3; ++i) {
      disturb(disturbed, rest);
      EXPECT_EQ(disturbed.length(), 20U);
      const auto cells = disturbed.cell_positions();
      EXPECT_EQ(std::ssize(cells) - std::ranges::count(cells, hlc::watched_context::empty_cell),
                20);
    }
    EXPECT_EQ(most_apart(disturbed.run(rest, false)[0], undisturbed.run(rest, false)[0]), 0.0F);
  }

  hlc::model_handle model_ = load_quietly(tiny_model);
  token_ids text_ = some_prompts(*model_, 1, 40)[0];
  interruption interruption_;
  refusal refusal_;
};

TEST_F(watched_context_test, what_the_visitor_throws_is_forgotten) {
  expect_undisturbed([this](hlc::watched_context& context, std::span<const llama_token> ids) {
    refusal_.armed = true;
    EXPECT_THROW(context.run(ids, false), std::runtime_error);
    refusal_ = {refusal_.layer + 1 < hlc::shape_of(*model_).layers ? refusal_.layer + 1 : 0};
  });
}

TEST_F(watched_context_test, abort_callbacks_of_others_are_asked) {
  expect_undisturbed([this](hlc::watched_context& context, std::span<const llama_token> ids) {
    interruption_.armed = true;
    expect_error(headwise::error_code::unsupported, {"text at position 20", "was aborted"},
                 [&] { context.run(ids, false); });
    interruption_.armed = false;
  });
}

TEST_F(watched_context_test, no_memory_keeps_no_cell) {
  hlc::watched_context context = make();
  const std::span<const llama_token> ids(text_);
  context.run(ids.first(20), false);
  std::size_t refused = 0;
  for (bool done = false; !done;) {
    try {
      const allocation_refusal no_more(refused);
      context.run(ids.last(20), false);
      done = true;
    } catch (const std::bad_alloc&) {
      ++refused;
    } catch (const headwise::error&) {
      ++refused;
    }
    ASSERT_EQ(context.length(), done ? 40U : 20U);
  }
  EXPECT_GT(refused, 20U);
  // As many cells as tokens: each that was taken must have been given back.
  while (context.length() < context.capacity())
    ASSERT_NO_THROW(
        context.run(ids.first(std::min(24U, context.capacity() - context.length())), false));
}

}  // namespace
}  // namespace headwise_tests
