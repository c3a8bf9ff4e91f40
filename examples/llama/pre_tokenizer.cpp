// SPDX-License-Identifier: Apache-2.0

#include "pre_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "vocabulary/unicode.hpp"

namespace llama_example {
namespace {

using headwise_vocabulary::code_point;
using headwise_vocabulary::code_point_kind;
using headwise_vocabulary::decode_utf8;

struct named_rule {
  std::string_view name;
  word_rule rule;
};

constexpr std::array<named_rule, 5> rules{
    {{"gpt-2", {word_style::gpt2, false, 0}},
     {"smollm", {word_style::gpt2, true, 0}},
     {"starcoder", {word_style::gpt2, true, 0}},
     {"llama-bpe", {word_style::llama3, false, 3, true, true}},
     {"qwen2", {word_style::llama3, false, 1}}}};

using points = std::span<const code_point>;

bool is(points text, std::size_t at, code_point_kind kind) noexcept {
  return at < text.size() && text[at].kind == kind;
}

bool is_line_end(points text, std::size_t at) noexcept {
  return at < text.size() && (text[at].value == U'\r' || text[at].value == U'\n');
}

std::size_t skip(points text, std::size_t at, code_point_kind kind) noexcept {
  while (is(text, at, kind)) ++at;
  return at;
}

// Code points of 's 't 're 've 'm 'll 'd at the start of `text`, or 0.
std::size_t contraction(points text, bool any_case) noexcept {
  constexpr std::array<std::u32string_view, 7> endings{U"s", U"t", U"re", U"ve", U"m", U"ll", U"d"};
  if (text[0].value != U'\'') return 0;
  const auto lower = [&](char32_t c) { return any_case && c >= U'A' && c <= U'Z' ? c + 32 : c; };
  for (const std::u32string_view ending : endings) {
    if (text.size() > ending.size() &&
        std::equal(ending.begin(), ending.end(), text.begin() + 1,
                   [&](char32_t e, const code_point& p) { return e == lower(p.value); })) {
      return ending.size() + 1;
    }
  }
  return 0;
}

// Blanks at the start of `text`: all but the last where a word follows, so that the last can join
// it.
std::size_t blanks(points text) noexcept {
  const std::size_t count = skip(text, 0, code_point_kind::blank);
  return count > 1 && count < text.size() ? count - 1 : count;
}

std::size_t gpt2_word(points text) noexcept {
  if (const std::size_t length = contraction(text, false); length != 0) return length;
  const std::size_t begin = text[0].value == U' ' ? 1 : 0;
  for (const auto kind :
       {code_point_kind::letter, code_point_kind::number, code_point_kind::other}) {
    if (is(text, begin, kind)) return skip(text, begin, kind);
  }
  return blanks(text);
}

std::size_t llama3_word(points text, std::size_t most_digits) noexcept {
  if (const std::size_t length = contraction(text, true); length != 0) return length;
  const bool joins = !is_line_end(text, 0) && text[0].kind != code_point_kind::number;
  if (joins && (is(text, 0, code_point_kind::letter) || is(text, 1, code_point_kind::letter))) {
    return skip(text, 1, code_point_kind::letter);
  }
  if (is(text, 0, code_point_kind::number)) {
    return std::min(skip(text, 0, code_point_kind::number), most_digits);
  }
  const std::size_t begin = text[0].value == U' ' ? 1 : 0;
  if (is(text, begin, code_point_kind::other)) {
    std::size_t end = skip(text, begin, code_point_kind::other);
    while (is_line_end(text, end)) ++end;
    return end;
  }
  std::size_t after_lines = 0;
  for (std::size_t i = 0; is(text, i, code_point_kind::blank); ++i) {
    if (is_line_end(text, i)) after_lines = i + 1;
  }
  return after_lines != 0 ? after_lines : blanks(text);
}

class word_list {
 public:
  explicit word_list(std::string_view text) : text_(text), points_(decode_utf8(text)) {}

  [[nodiscard]] points all() const noexcept { return points_; }

  // The next word is the next `count` code points.
  void take(std::size_t count) {
    const std::size_t begin = offset(taken_);
    taken_ += count;
    words_.push_back(text_.substr(begin, offset(taken_) - begin));
  }

  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }
  [[nodiscard]] std::vector<std::string_view> words() && { return std::move(words_); }

 private:
  [[nodiscard]] std::size_t offset(std::size_t point) const noexcept {
    return point < points_.size() ? points_[point].begin : text_.size();
  }

  std::string_view text_;
  std::vector<code_point> points_;
  std::size_t taken_ = 0;
  std::vector<std::string_view> words_;
};

// Where the stretch that is split on its own ends: at the next number or, for most rules, nowhere.
std::size_t stretch_end(points text, std::size_t begin, const word_rule& rule) noexcept {
  if (!rule.split_numbers_first) return text.size();
  if (is(text, begin, code_point_kind::number)) return begin + 1;
  while (begin < text.size() && text[begin].kind != code_point_kind::number) ++begin;
  return begin;
}

}  // namespace

std::optional<word_rule> word_rule_of(std::string_view name) noexcept {
  for (const named_rule& entry : rules) {
    if (entry.name == name) return entry.rule;
  }
  return std::nullopt;
}

std::string known_word_rules() {
  std::string names;
  for (const named_rule& entry : rules) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return names;
}

std::vector<std::string_view> split_words(std::string_view text, const word_rule& rule) {
  word_list list(text);
  const points all = list.all();
  while (list.taken() < all.size()) {
    const std::size_t end = stretch_end(all, list.taken(), rule);
    while (list.taken() < end) {
      const points rest = all.subspan(list.taken(), end - list.taken());
      list.take(rule.style == word_style::gpt2 ? gpt2_word(rest)
                                               : llama3_word(rest, rule.most_digits));
    }
  }
  return std::move(list).words();
}

}  // namespace llama_example
