// SPDX-License-Identifier: Apache-2.0

#include "exam.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <string_view>

#include "numbers.hpp"

namespace headwise_tool {
namespace {

using headwise::error_code;

constexpr std::array<std::string_view, 24> noun_words{
    "river",  "candle", "market", "window", "garden", "letter", "bridge", "island",
    "mirror", "engine", "forest", "harbor", "ladder", "meadow", "needle", "orange",
    "pencil", "rabbit", "saddle", "ticket", "valley", "walnut", "anchor", "basket"};
constexpr std::array<std::string_view, 16> colour_words{
    "red",  "green", "blue",  "yellow", "white",  "black",  "grey",   "brown",
    "pink", "gold",  "amber", "silver", "purple", "violet", "copper", "ivory"};
constexpr std::array<std::string_view, 6> filler_sentences{
    "The morning was quiet and the street was almost empty.",
    "A light rain fell over the roofs of the small town.",
    "Someone had left a newspaper on the bench by the station.",
    "The baker opened the shop and swept the floor.",
    "Two children ran along the wall and laughed.",
    "Later the clouds went away and the sun came out."};

// A text that is asked about something in it.
struct question {
  std::string before;             // stands at the beginning
  std::vector<std::string> fill;  // pieces, over and over
  std::string fact;               // somewhere among them
  std::string after, answer;      // at the end
};

class exam_maker {
 public:
  exam_maker(const engine& model, const task_options& task, std::size_t length)
      : model_(model), task_(task), length_(length), random_(task.seed) {}

  [[nodiscard]] std::vector<exam> make() {
    std::vector<exam> exams;
    for (std::size_t i = 0; i < task_.samples; ++i) {
      const double depth = (static_cast<double>(i) + 0.5) / static_cast<double>(task_.samples);
      exams.push_back(laid_out(asked(), depth));
    }
    return exams;
  }

 private:
  // Draws are statements of their own: the order of those in one expression is the compiler's.
  template <std::size_t N>
  [[nodiscard]] std::string one_of(const std::array<std::string_view, N>& words) {
    return std::string(words[random_() % N]);
  }
  [[nodiscard]] std::string number() { return std::to_string(10000 + random_() % 90000); }
  [[nodiscard]] std::string pair_name() {
    const std::string colour = one_of(colour_words);
    const std::string noun = one_of(noun_words);
    return colour + " " + noun;
  }

  [[nodiscard]] question asked() {
    switch (task_.kind) {
      case task_kind::key_values:
        return key_values();
      case task_kind::copy:
        return copy();
      case task_kind::dialogue:
        return dialogue();
      default:
        return passkey();
    }
  }
  [[nodiscard]] static std::vector<std::string> sentences() {
    std::vector<std::string> fill;
    for (const std::string_view sentence : filler_sentences)
      fill.push_back(" " + std::string(sentence));
    return fill;
  }
  [[nodiscard]] question passkey() {
    const std::string key = number();
    return {"There is a pass key hidden in this text. Find it and remember it.", sentences(),
            " The pass key is " + key + ". Remember it: " + key + " is the pass key.",
            "\nWhat is the pass key? The pass key is", " " + key};
  }
  [[nodiscard]] question key_values() {
    question q;
    q.before = "Each line of this list has a name and its number.\n";
    for (int i = 0; i < 64; ++i) {
      const std::string name = pair_name();
      q.fill.push_back(name + ": " + number() + "\n");
    }
    const std::string name = pair_name() + " owl";
    const std::string value = number();
    q.fact = name + ": " + value + "\n";
    q.after = "Again, the number of one of them.\n" + name + ":";
    q.answer = " " + value;
    return q;
  }
  // A list of words, other text, and the list again: its second half is to be predicted.
  [[nodiscard]] question copy() {
    std::string half, other_half;
    for (int i = 0; i < 5; ++i) half += " " + pair_name();
    for (int i = 0; i < 5; ++i) other_half += " " + pair_name();
    return {"A list:" + half + other_half + ".", sentences(), "", "\nThe list again:" + half,
            other_half};
  }
  // Turns of a chat about other things, and one with a fact that is asked for at the end.
  [[nodiscard]] question dialogue() {
    const auto turn = [](std::string_view user, std::string_view assistant) {
      return "<|im_start|>user\n" + std::string(user) + "<|im_end|>\n<|im_start|>assistant\n" +
             std::string(assistant) + "<|im_end|>\n";
    };
    const std::string pet = one_of(noun_words);
    const std::string colour = one_of(colour_words);
    question q;
    q.before = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n";
    for (const std::string_view filler : filler_sentences)
      q.fill.push_back(turn("Write one sentence of a story.", filler));
    q.fact = turn("My " + pet + " is " + colour + ". Keep that in mind.",
                  "I will: your " + pet + " is " + colour + ".");
    q.after = "<|im_start|>user\nWhat colour is my " + pet +
              "?<|im_end|>\n<|im_start|>assistant\nYour " + pet + " is";
    q.answer = " " + colour;
    return q;
  }

  // Up to the answer, with so many pieces of the filling, the share `depth` of them before the
  // fact.
  [[nodiscard]] static std::string text_of(const question& q, double depth, std::size_t pieces) {
    const auto before = static_cast<std::size_t>(depth * static_cast<double>(pieces) + 0.5);
    std::string text = q.before;
    for (std::size_t i = 0; i < before; ++i) text += q.fill[i % q.fill.size()];
    text += q.fact;
    for (std::size_t i = before; i < pieces; ++i) text += q.fill[i % q.fill.size()];
    return text + q.after;
  }
  // A text is encoded as a whole: its parts by themselves may be other tokens.
  [[nodiscard]] token_ids tokens_of(const std::string& text) const {
    token_ids ids = model_.facts().start;
    const token_ids more = model_.encode(text, engine::special_tokens::as_tokens);
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  }

  [[nodiscard]] exam laid_out(const question& q, double depth) const {
    const auto whole = [&](std::size_t pieces) {
      return tokens_of(text_of(q, depth, pieces) + q.answer);
    };
    require_room(whole(0).size());
    std::size_t fit = 0, too_many = 1;
    // Pieces that are no tokens to a model would fit in any number.
    for (; too_many <= length_ && whole(too_many).size() <= length_; too_many *= 2) fit = too_many;
    while (too_many - fit > 1) {
      const std::size_t middle = fit + (too_many - fit) / 2;
      (whole(middle).size() <= length_ ? fit : too_many) = middle;
    }
    exam made{whole(fit)};
    const token_ids unanswered = tokens_of(text_of(q, depth, fit));
    // What a token shares with the text before the answer is of the answer too.
    const auto end =
        std::mismatch(made.ids.begin(), made.ids.end(), unanswered.begin(), unanswered.end());
    made.first_answer = static_cast<std::size_t>(end.first - made.ids.begin());
    if (made.first_answer == 0 || made.first_answer == made.ids.size())
      headwise::raise(error_code::unsupported, "task '" + task_.name + "'",
                      "no tokens for '" + q.answer + "' behind its text",
                      "a model whose tokenizer knows English words and digits");
    return made;
  }

  void require_room(std::size_t tokens) const {
    if (tokens > length_)
      headwise::raise(error_code::invalid_argument, "task '" + task_.name + "'",
                      counted(length_, "token"),
                      "at least " + std::to_string(tokens) + ", which its text needs");
  }

  const engine& model_;
  const task_options& task_;
  std::size_t length_;
  std::mt19937_64 random_;
};

}  // namespace

std::vector<exam> make_exams(const engine& model, const task_options& task, std::size_t length) {
  const std::string place = "task '" + task.name + "'";
  if (task.kind != task_kind::text) {
    require_context(model.facts(), length, place);
    return exam_maker(model, task, length).make();
  }
  std::vector<exam> exams;
  for (token_ids& ids : cut_up_to(model, task.text, {task.samples, length, 0, place}))
    exams.push_back({std::move(ids), 1});
  return exams;
}

}  // namespace headwise_tool
