// SPDX-License-Identifier: Apache-2.0

#include "exam.hpp"

#include <array>
#include <random>
#include <string_view>

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

// A text that is asked about something in its middle.
struct question {
  std::string before;             // stands at the beginning
  std::vector<std::string> fill;  // sentences, over and over
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
      exams.push_back(task_.kind == task_kind::copy ? copy() : laid_out(asked(), depth));
    }
    return exams;
  }

 private:
  template <std::size_t N>
  [[nodiscard]] std::string one_of(const std::array<std::string_view, N>& words) {
    return std::string(words[random_() % N]);
  }
  [[nodiscard]] std::string number() { return std::to_string(10000 + random_() % 90000); }

  [[nodiscard]] question asked() {
    switch (task_.kind) {
      case task_kind::key_values:
        return key_values();
      case task_kind::dialogue:
        return dialogue();
      default:
        return passkey();
    }
  }
  [[nodiscard]] question passkey() {
    const std::string key = number();
    return {"There is a pass key hidden in this text. Find it and remember it.\n",
            {filler_sentences.begin(), filler_sentences.end()},
            "The pass key is " + key + ". Remember it: " + key + " is the pass key.",
            "\nWhat is the pass key? The pass key is",
            " " + key};
  }
  [[nodiscard]] question key_values() {
    question q;
    q.before = "Each line of this list has a name and its number.\n";
    for (int i = 0; i < 64; ++i) q.fill.push_back(pair_name() + ": " + number() + "\n");
    const std::string name = pair_name() + " owl", value = number();
    q.fact = name + ": " + value + "\n";
    q.after = "Again, the number of one of them.\n" + name + ":";
    q.answer = " " + value;
    return q;
  }
  [[nodiscard]] std::string pair_name() { return one_of(colour_words) + " " + one_of(noun_words); }

  // Turns of a chat about other things, and one with a fact that is asked for at the end.
  [[nodiscard]] question dialogue() {
    const auto turn = [](std::string_view user, std::string_view assistant) {
      return "<|im_start|>user\n" + std::string(user) + "<|im_end|>\n<|im_start|>assistant\n" +
             std::string(assistant) + "<|im_end|>\n";
    };
    const std::string pet = one_of(noun_words), colour = one_of(colour_words);
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

  [[nodiscard]] token_ids encode(const std::string& text) const {
    return model_.encode(text, engine::special_tokens::as_tokens);
  }
  // The beginning of a text.
  [[nodiscard]] exam begin(const std::string& text) const {
    exam made{model_.facts().start};
    append(made.ids, encode(text));
    return made;
  }
  static void append(token_ids& ids, const token_ids& more) {
    ids.insert(ids.end(), more.begin(), more.end());
  }

  [[nodiscard]] exam laid_out(const question& q, double depth) const {
    const bool spaced = task_.kind == task_kind::passkey;  // sentences, not lines
    const auto piece = [&](const std::string& text) { return encode(spaced ? " " + text : text); };
    const token_ids fact = piece(q.fact), after = encode(q.after), answer = encode(q.answer);
    exam made = begin(q.before);
    const std::size_t fixed = fact.size() + after.size() + answer.size();
    const auto limit = [&](double share) {
      return static_cast<std::size_t>(share * static_cast<double>(length_ - fixed));
    };
    require_room(made.ids.size() + fixed);
    std::size_t next = 0;
    const auto fill = [&](std::size_t up_to) {
      for (;; ++next) {
        const token_ids ids = piece(q.fill[next % q.fill.size()]);
        if (made.ids.size() + ids.size() > up_to) return;
        append(made.ids, ids);
      }
    };
    fill(limit(depth));
    append(made.ids, fact);
    fill(limit(1.0) + fact.size());
    append(made.ids, after);
    made.first_answer = made.ids.size();
    append(made.ids, answer);
    return made;
  }

  // A list of words, other text, and the list again: its second half is to be predicted.
  [[nodiscard]] exam copy() {
    std::string list;
    for (int i = 0; i < 10; ++i) list += " " + pair_name();
    const token_ids words = encode(list);
    exam made = begin("A list:");
    require_room(made.ids.size() + 3 * words.size());
    append(made.ids, words);
    append(made.ids, encode(".\n"));
    const std::size_t end = length_ - words.size() - 8;
    for (std::size_t next = 0;; ++next) {
      const token_ids ids =
          encode(" " + std::string(filler_sentences[next % filler_sentences.size()]));
      if (made.ids.size() + ids.size() > end) break;
      append(made.ids, ids);
    }
    append(made.ids, encode("\nThe list again:"));
    append(made.ids, words);
    made.first_answer = made.ids.size() - words.size() / 2;
    return made;
  }

  void require_room(std::size_t tokens) const {
    if (tokens > length_)
      headwise::raise(error_code::invalid_argument, "task '" + task_.name + "'",
                      std::to_string(length_) + " tokens",
                      "at least " + std::to_string(tokens) + ", which its text needs");
  }

  const engine& model_;
  const task_options& task_;
  std::size_t length_;
  std::mt19937_64 random_;
};

}  // namespace

std::vector<exam> make_exams(const engine& model, const task_options& task, std::size_t length) {
  if (task.kind != task_kind::text) {
    require_context(model.facts(), length, "task '" + task.name + "'");
    return exam_maker(model, task, length).make();
  }
  std::vector<exam> exams;
  for (token_ids& ids : cut_up_to(model, task.text, {task.samples, length}))
    exams.push_back({std::move(ids), 1});
  return exams;
}

}  // namespace headwise_tool
