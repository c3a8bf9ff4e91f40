// SPDX-License-Identifier: Apache-2.0
//
// Calls that no memory is left for, be it the adapter or llama.cpp that asks: they change nothing,
// and the next call works.
#include <new>

#include "llama_cpp/emulation.hpp"
#include "llama_cpp/takeover.hpp"
#include "logits.hpp"
#include "models.hpp"

#include "support/allocation_watch.hpp"

namespace headwise_tests {
namespace {

// Calls with more and more requests to operator new met, until all that the call has are.
// after(done): what must be so then. Returns how many calls threw.
template <class Call, class After>
std::size_t count_refused(const Call& call, const After& after) {
  std::size_t refused = 0;
  for (std::size_t met = 0;; met += 1 + met / 12) {
    bool done = false;
    try {
      const allocation_refusal refusal(met);
      call();
      done = true;
    } catch (const std::bad_alloc&) {
    } catch (const headwise::error&) {
    }
    after(done);
    if (done || testing::Test::HasFailure()) return refused;
    ++refused;
  }
}

class no_memory_test : public testing::Test {
 protected:
  // Both forms, as the same text of the same engine leaves them when nothing is refused.
  template <class Call>
  void expect_all_or_nothing(const Call& call, std::size_t tokens) {
    for (const auto form : {hlc::takeover_form::op_swap, hlc::takeover_form::overwrite}) {
      auto options = by_one_thread<hlc::takeover_options>(300, 16);
      options.form = form;
      options.cache.rollback_horizon = 64;
      hlc::takeover engine(*model_, all_global(*model_), options);
      engine.feed(0, text_);
      const auto logits_of_next = [&] {
        const auto got = engine.feed(0, {&next_, 1});
        std::vector<float> logits(got.begin(), got.end());
        EXPECT_TRUE(engine.try_rollback(0, 1));
        return logits;
      };
      const std::vector<float> expected = logits_of_next();
      const auto after = [&](bool done) {
        ASSERT_EQ(engine.length(0), text_.size() + (done ? tokens : 0));
        const auto extra = static_cast<headwise::token_count>(done ? tokens : 0);
        ASSERT_TRUE(engine.try_rollback(0, extra));
        ASSERT_EQ(logits_of_next(), expected);
      };
      EXPECT_GT(count_refused([&] { call(engine); }, after), 20U);
    }
  }

  hlc::model_handle model_ = load_quietly(tiny_model);
  token_ids text_ = some_prompts(*model_, 1, 40)[0], more_ = some_prompts(*model_, 2, 40)[1];
  llama_token next_ = 7;
};

TEST_F(no_memory_test, feed) {
  expect_all_or_nothing([&](hlc::takeover& engine) { engine.feed(0, {more_.data(), 9}); }, 9);
}

TEST_F(no_memory_test, feed_of_several_micro_batches) {
  expect_all_or_nothing([&](hlc::takeover& engine) { engine.feed(0, more_); }, more_.size());
}

TEST_F(no_memory_test, feed_with_all_logits) {
  const auto ignore = [](headwise::position, headwise::rows<const float>) {};
  expect_all_or_nothing(
      [&](hlc::takeover& engine) {
        engine.feed(0, {more_.data(), 9}, ignore);
      },
      9);
}

TEST_F(no_memory_test, step) {
  const hlc::next_token next[] = {{0, more_[0]}};
  expect_all_or_nothing([&](hlc::takeover& engine) { engine.step(next); }, 1);
}

TEST_F(no_memory_test, emulation) {
  const auto options = by_one_thread<hlc::emulation_options>(256, 40);  // as many cells
  hlc::emulation engine(*model_, all_global(*model_), options),
      undisturbed(*model_, all_global(*model_), options);
  engine.feed(text_);
  undisturbed.feed(text_);
  const token_ids some(more_.begin(), more_.begin() + 9);
  const std::vector<float> expected = [&] {
    const auto logits = undisturbed.feed(some);
    return std::vector<float>(logits.begin(), logits.end());
  }();
  std::span<const float> got;
  const auto after = [&](bool done) { ASSERT_EQ(engine.length(), text_.size() + (done ? 9 : 0)); };
  EXPECT_GT(count_refused([&] { got = engine.feed(some); }, after), 20U);
  EXPECT_EQ(most_apart(got, expected), 0.0F);
  // Every cell that was taken was given back: the text may grow to the capacity.
  EXPECT_NO_THROW(engine.feed(token_ids(256 - 49, 3)));
}

}  // namespace
}  // namespace headwise_tests
