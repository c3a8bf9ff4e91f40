// SPDX-License-Identifier: Apache-2.0
//
// Made texts: where their fact stands, how long they are, and that the answer is, token for token,
// what the fact says.

#include "exam.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tool_run.hpp"

#include "headwise/core/error.hpp"

namespace headwise_tests {
namespace {

using headwise_tool::exam;
using headwise_tool::make_exams;
using headwise_tool::task_kind;
using headwise_tool::task_options;
using headwise_tool::token_ids;

// Tokens are bytes, but as `how` says.
struct spelling {
  bool begins = false;       // texts begin with a token of their own
  bool blank_first = false;  // SentencePiece: a blank before whatever is encoded
  std::string knows = {};    // characters; others are no tokens; empty: all
  std::string merged = {};   // a sequence of bytes that is one token
};

class speller final : public headwise_tool::engine {
 public:
  explicit speller(spelling how = {})
      : engine({{1, 1, 1, 8}, {}, 0, how.begins ? token_ids{begin} : token_ids{}}),
        how_(std::move(how)) {}

  [[nodiscard]] token_ids encode(std::string_view text, special_tokens) const override {
    const std::string all = (how_.blank_first ? " " : "") + std::string(text);
    token_ids ids;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!how_.merged.empty() && all.compare(i, how_.merged.size(), how_.merged) == 0) {
        ids.push_back(merged);
        i += how_.merged.size() - 1;
      } else if (how_.knows.empty() || how_.knows.find(all[i]) != std::string::npos) {
        ids.push_back(static_cast<unsigned char>(all[i]));
      }
    }
    return ids;
  }
  [[nodiscard]] std::string piece(std::int32_t id) const override {
    if (id == begin) return "";
    return id == merged ? how_.merged : std::string(1, static_cast<char>(id));
  }
  [[nodiscard]] std::string text(const token_ids& ids, std::size_t first = 0) const {
    std::string all;
    for (std::size_t i = first; i < ids.size(); ++i) all += piece(ids[i]);
    return all;
  }

  [[nodiscard]] bool is_end(std::int32_t) const override { return false; }
  std::unique_ptr<headwise_tool::model_text> open(const headwise::blueprint&,
                                                  const headwise_tool::text_options&) override {
    return nullptr;
  }
  std::unique_ptr<headwise_tool::attention_recorder> make_recorder(
      const headwise_tool::recording_options&) override {
    return nullptr;
  }

 private:
  static constexpr std::int32_t begin = 256, merged = 257;
  spelling how_;
};

constexpr task_kind made_kinds[] = {task_kind::passkey, task_kind::key_values, task_kind::copy,
                                    task_kind::dialogue};

task_options task(task_kind kind, std::size_t samples, std::uint64_t seed = 1) {
  task_options options;
  options.name = "made";
  options.kind = kind;
  options.samples = samples;
  options.seed = seed;
  return options;
}

std::string text_before_answer(const speller& model, const exam& asked) {
  const auto begin = asked.ids.begin();
  return model.text({begin, begin + static_cast<std::ptrdiff_t>(asked.first_answer)});
}
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

// The longest thing that a text may be filled with: a turn of a chat, or a line.
constexpr std::size_t longest_piece = 170;

TEST(make_exams, are_the_same_with_every_compiler) {
  const speller model;
  const auto made = [&](task_kind kind, std::size_t length) {
    return model.text(make_exams(model, task(kind, 1), length).front().ids);
  };
  EXPECT_EQ(made(task_kind::key_values, 160),
            "Each line of this list has a name and its number.\npink bridge: 79930\n"
            "red meadow owl: 35066\nAgain, the number of one of them.\nred meadow owl: 35066");
  EXPECT_EQ(made(task_kind::copy, 340),
            "A list: pink bridge amber bridge pink engine white engine red pencil red harbor black "
            "harbor purple engine green saddle yellow mirror. The morning was quiet and the street "
            "was almost empty.\nThe list again: pink bridge amber bridge pink engine white engine "
            "red pencil red harbor black harbor purple engine green saddle yellow mirror");
  EXPECT_TRUE(contains(made(task_kind::passkey, 210), "The pass key is 81528. Remember it: 81528"));
  EXPECT_TRUE(contains(made(task_kind::dialogue, 400), "My mirror is copper. Keep that in mind."));
}

TEST(make_exams, differ_by_their_seed) {
  const speller model;
  for (const task_kind kind : made_kinds) {
    const auto ids = [&](std::uint64_t seed) {
      return make_exams(model, task(kind, 2, seed), 600).back().ids;
    };
    EXPECT_EQ(ids(1), ids(1));
    EXPECT_NE(ids(1), ids(2));
  }
}

TEST(make_exams, are_as_long_as_their_pieces_allow) {
  for (const spelling& how : {spelling{}, spelling{true, true}})
    for (const task_kind kind : made_kinds)
      for (const std::size_t length : {600U, 601U, 777U, 1024U, 3000U}) {
        const speller model(how);
        const std::vector<exam> exams = make_exams(model, task(kind, 5), length);
        ASSERT_EQ(exams.size(), 5U);
        for (const exam& e : exams) {
          EXPECT_LE(e.ids.size(), length) << to_string(kind);
          EXPECT_GT(e.ids.size() + longest_piece, length) << to_string(kind);
        }
      }
}

// Of one piece, two, three ...: what just fits is taken, and with a token less one piece less.
TEST(make_exams, take_a_piece_that_just_fits) {
  const speller model;
  for (const task_kind kind : made_kinds) {
    const auto made = [&](std::size_t length) {
      return make_exams(model, task(kind, 1), length).front().ids;
    };
    std::size_t length = 2000;
    for (int i = 0; i < 9; ++i) {
      const token_ids ids = made(length);
      EXPECT_EQ(made(ids.size()), ids) << to_string(kind);
      length = ids.size() - 1;
    }
  }
}

TEST(make_exams, ask_for_the_end_of_their_text) {
  for (const spelling& how : {spelling{}, spelling{true, false}, spelling{true, true}})
    for (const task_kind kind : made_kinds) {
      const speller model(how);
      for (const exam& e : make_exams(model, task(kind, 4), 1000)) {
        const std::string answer = model.text(e.ids, e.first_answer);
        const std::string before = model.text(
            {e.ids.begin(), e.ids.begin() + static_cast<std::ptrdiff_t>(e.first_answer)});
        ASSERT_FALSE(answer.empty());
        EXPECT_EQ(how.begins, e.ids.front() == 256);
        // One blank, and what the fact says: the tokens that stand there.
        EXPECT_EQ(answer.find_first_not_of(' '), 1U) << answer;
        const char* const opening = kind == task_kind::passkey      ? "The pass key is"
                                    : kind == task_kind::key_values ? " owl:"
                                    : kind == task_kind::dialogue   ? "I will: your "
                                                                    : "A list:";
        const std::size_t fact = before.find(opening);
        ASSERT_NE(fact, std::string::npos) << before;
        const std::size_t said = before.find(answer, fact);
        ASSERT_NE(said, std::string::npos) << answer;
        EXPECT_LT(said, fact + 200) << to_string(kind);
        EXPECT_FALSE(before.ends_with(' '));
      }
    }
}

TEST(make_exams, have_their_fact_at_its_depth) {
  const speller model;
  constexpr std::size_t length = 6000, samples = 7;
  const std::pair<task_kind, const char*> facts[] = {{task_kind::passkey, " Remember it: "},
                                                     {task_kind::key_values, " owl: "},
                                                     {task_kind::dialogue, "Keep that in mind"}};
  for (const auto& [kind, fact] : facts) {
    const std::vector<exam> exams = make_exams(model, task(kind, samples), length);
    for (std::size_t i = 0; i < samples; ++i) {
      const std::string text = text_before_answer(model, exams[i]);
      ASSERT_EQ(count(text, fact), 1U) << text;
      const double depth = (static_cast<double>(i) + 0.5) / samples;
      // Off by what stands before and behind it, and by a piece.
      EXPECT_NEAR(static_cast<double>(text.find(fact)), depth * length, 350.0)
          << to_string(kind) << " " << i;
    }
  }
}

TEST(make_exams, say_how_much_room_they_need) {
  const speller model;
  for (const task_kind kind : made_kinds) {
    std::size_t needed = 0;
    try {
      (void)make_exams(model, task(kind, 3), 20);
      FAIL() << to_string(kind);
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.code(), headwise::error_code::invalid_argument);
      EXPECT_TRUE(contains(e.place(), "task 'made'"));
      needed = std::stoul(e.expected().substr(std::string("at least ").size()));
    }
    const std::vector<exam> exams = make_exams(model, task(kind, 1), needed);
    EXPECT_EQ(exams.front().ids.size(), needed) << to_string(kind);
    EXPECT_THROW((void)make_exams(model, task(kind, 1), needed - 1), headwise::error);
  }
}

// A tokenizer may join what comes before the answer with its beginning.
TEST(make_exams, step_back_to_a_token_that_the_answer_shares) {
  spelling how;
  how.merged = "is ";
  const speller model(how);
  const exam e = make_exams(model, task(task_kind::passkey, 1), 600).front();
  const std::string answer = model.text(e.ids, e.first_answer);
  EXPECT_EQ(answer.substr(0, 3), "is ");
  EXPECT_EQ(answer.find_first_not_of("0123456789", 3), std::string::npos) << answer;
  EXPECT_EQ(answer.size(), 8U);
}

TEST(make_exams, end_where_a_piece_or_the_answer_is_no_token) {
  spelling digits;
  digits.knows = "0123456789";
  const speller numbers(digits);
  const std::vector<exam> exams = make_exams(numbers, task(task_kind::passkey, 2), 100);
  EXPECT_EQ(exams.back().ids.size(), 15U);  // the number three times
  EXPECT_EQ(exams.back().first_answer, 10U);
  spelling letters;
  letters.knows = "abcdefghijklmnopqrstuvwxyz";
  EXPECT_THROW((void)make_exams(speller(letters), task(task_kind::passkey, 2), 400),
               headwise::error);
}

}  // namespace
}  // namespace headwise_tests
