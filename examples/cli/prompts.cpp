// SPDX-License-Identifier: Apache-2.0

#include "prompts.hpp"

#include <algorithm>

#include "numbers.hpp"

#include "headwise/io/mapped_file.hpp"

namespace headwise_tool {
namespace {

using headwise::error_code;

class text_pieces {
 public:
  text_pieces(const engine& model, const std::filesystem::path& text, const piece_options& options)
      : place_(text.string()),
        length_(options.length),
        again_(options.again),
        asked_by_(options.asked_by),
        start_(model.facts().start) {
    if (length_ < start_.size() + 2)
      headwise::raise(error_code::invalid_argument, asked_by_, counted(length_, "token"),
                      "at least " + std::to_string(start_.size() + 2));
    if (const std::size_t half = (length_ - start_.size()) / 2; again_ > half)
      headwise::raise(error_code::invalid_argument, "--look-back", counted(again_, "token"),
                      "at most " + std::to_string(half) + ", half of " + asked_by_);
    require_context(model.facts(), length_, asked_by_);
    ids_ = encode_from(place_, model, read_text(text), engine::special_tokens::as_text);
  }

  [[nodiscard]] std::size_t available() const noexcept { return ids_.size() / fresh(); }

  [[nodiscard]] std::vector<token_ids> first(std::size_t count) const {
    if (count > available())
      headwise::raise(error_code::out_of_range, place_,
                      "a text of " + counted(ids_.size(), "token"),
                      with_commas(count * fresh()) + " for " + with_commas(count) + " x " +
                          with_commas(length_) + " tokens: take a longer text, or ask for less");
    std::vector<token_ids> pieces(count, start_);
    for (std::size_t i = 0; i < count; ++i) {
      const auto begin = ids_.begin() + static_cast<std::ptrdiff_t>(i * fresh());
      pieces[i].insert(pieces[i].end(), begin, begin + static_cast<std::ptrdiff_t>(fresh()));
      pieces[i].insert(pieces[i].end(), begin, begin + static_cast<std::ptrdiff_t>(again_));
    }
    return pieces;
  }

 private:
  // Tokens of the text in a piece.
  [[nodiscard]] std::size_t fresh() const noexcept { return length_ - start_.size() - again_; }

  std::string place_;
  std::size_t length_, again_;
  std::string asked_by_;
  token_ids start_;  // what each piece begins with
  token_ids ids_;
};

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  const headwise::mapped_file file(path);
  const auto bytes = file.bytes();
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool blank = std::all_of(text.begin(), text.end(), [](char c) {
    return std::string_view(" \t\r\n\f\v").find(c) != std::string_view::npos;
  });
  if (blank)
    headwise::raise(error_code::missing, path.string(),
                    with_commas(text.size()) + " bytes without any text", "a text file");
  return text;
}

token_ids encode_from(const std::string& place, const engine& model, std::string_view text,
                      engine::special_tokens special) {
  try {
    return model.encode(text, special);
  } catch (const headwise::error& e) {
    headwise::raise(e.code(), place, e.got(), e.expected());
  }
}

void require_context(const model_facts& model, std::size_t tokens, const std::string& place) {
  const std::size_t context = model.context_length;
  if (context != 0 && tokens > context)
    headwise::raise(error_code::invalid_argument, place, counted(tokens, "token"),
                    "at most " + with_commas(context) + ", the context of this model");
}

std::vector<token_ids> cut_pieces(const engine& model, const std::filesystem::path& text,
                                  const piece_options& options) {
  return text_pieces(model, text, options).first(options.count);
}

std::vector<token_ids> cut_up_to(const engine& model, const std::filesystem::path& text,
                                 const piece_options& options) {
  const text_pieces pieces(model, text, options);
  return pieces.first(std::clamp<std::size_t>(pieces.available(), 1, options.count));
}

}  // namespace headwise_tool
