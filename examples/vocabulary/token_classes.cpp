// SPDX-License-Identifier: Apache-2.0

#include "token_classes.hpp"

#include <algorithm>
#include <array>

#include "unicode.hpp"

namespace headwise_vocabulary {

using headwise::token_classes;

token_classes classes_of(std::string_view piece, token_kind kind) {
  if (kind == token_kind::control || kind == token_kind::user_defined) {
    return token_classes::special;
  }
  std::vector<code_point> points = decode_utf8(piece);
  const auto has_line_feed = [](const code_point& p) { return p.value == U'\n'; };
  auto classes = std::any_of(points.begin(), points.end(), has_line_feed) ? newline_class
                                                                          : token_classes::none;
  const auto blank = [](const code_point& p) { return p.kind == code_point_kind::blank; };
  const auto begin = std::find_if_not(points.begin(), points.end(), blank);
  const auto end = std::find_if_not(points.rbegin(), std::reverse_iterator(begin), blank).base();
  if (begin == end) return classes;
  if (std::all_of(begin, end, [](const code_point& p) { return is_punctuation(p.value); })) {
    classes |= token_classes::punctuation;
  }
  if (std::all_of(begin, end,
                  [](const code_point& p) { return p.kind == code_point_kind::number; })) {
    classes |= digits_class;
  }
  return classes;
}

headwise::token_rules make_token_rules(std::size_t size, headwise::token_count sink_count,
                                       const std::function<token_classes(std::int32_t)>& classes) {
  headwise::token_rules rules{sink_count,
                              {{"special", token_classes::special, {}},
                               {"punctuation", token_classes::punctuation, {}},
                               {"newline", newline_class, {}},
                               {"digits", digits_class, {}}}};
  for (std::size_t i = 0; i < size; ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const token_classes its = classes(id);
    for (headwise::token_class_rule& rule : rules.classes) {
      if (any(its & rule.bit)) rule.ids.push_back(id);
    }
  }
  return rules;
}

}  // namespace headwise_vocabulary
