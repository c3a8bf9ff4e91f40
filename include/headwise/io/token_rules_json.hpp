// SPDX-License-Identifier: Apache-2.0
//
// Token classes as JSON, the same in a blueprint and in the metadata of recorded maps: an object of
// names, each with its sorted ids. "special" and "punctuation" have the bits of token_classes,
// further names the user bits in the order in which they stand. A class in memory: ids [n].
//
// Reading and writing: O(ids + classes^2), classes being few. Pure: any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/blueprint/blueprint.hpp"
#include "headwise/io/json_writer.hpp"
#include "headwise/io/strict_json.hpp"

HEADWISE_NAMESPACE_BEGIN

// The largest vocabulary that a file may claim: tables of classes are allocated by this number.
inline constexpr std::uint32_t max_vocab_size = std::uint32_t{1} << 24;

namespace detail {

inline constexpr std::size_t max_user_classes = 16;

// none: a user class.
[[nodiscard]] constexpr token_classes builtin_class(std::string_view name) noexcept {
  return name == "sink"          ? token_classes::sink
         : name == "special"     ? token_classes::special
         : name == "punctuation" ? token_classes::punctuation
                                 : token_classes::none;
}

// The bit of the next class, `earlier` being those in front of it.
[[nodiscard]] inline token_classes next_class_bit(std::string_view name,
                                                  std::span<const token_class_rule> earlier,
                                                  const std::string& place) {
  if (const token_classes bit = builtin_class(name); any(bit)) return bit;
  const auto user = static_cast<std::size_t>(
      std::count_if(earlier.begin(), earlier.end(), [](const token_class_rule& rule) {
        return static_cast<std::uint32_t>(rule.bit) >= first_user_class;
      }));
  if (user == max_user_classes)
    raise(error_code::out_of_range, place, "one user class more",
          "at most " + std::to_string(max_user_classes));
  return static_cast<token_classes>(first_user_class << user);
}

// What holds of ids in a file. limit: the size of the vocabulary; 0: not known.
inline void check_token_id(std::int32_t id, std::uint32_t limit, const std::string& place) {
  if (id < 0 || (limit != 0 && static_cast<std::uint32_t>(id) >= limit))
    raise(
        error_code::out_of_range, place, std::to_string(id),
        limit == 0 ? "an id from 0" : "an id below the vocabulary's size " + std::to_string(limit));
}

// vocab_size: 0 where it is not known, and then no class may have ids. place: of the classes.
inline void check_classes(std::span<const token_class_rule> classes, std::uint32_t vocab_size,
                          const std::string& place) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const token_class_rule& rule = classes[i];
    const std::string here = place + "/" + pointer_token(rule.name);
    const auto same_name = [&](const auto& other) { return other.name == rule.name; };
    if (std::any_of(classes.begin(), classes.begin() + static_cast<std::ptrdiff_t>(i), same_name))
      raise(error_code::duplicate, here, "the class twice", "each class once");
    const token_classes bit = next_class_bit(rule.name, classes.first(i), here);
    if (rule.bit != bit)
      raise(error_code::invalid_argument, here,
            "bit " + std::to_string(static_cast<std::uint32_t>(rule.bit)),
            "bit " + std::to_string(static_cast<std::uint32_t>(bit)));
    if (rule.bit == token_classes::sink && !rule.ids.empty())
      raise(error_code::invalid_argument, here, std::to_string(rule.ids.size()) + " ids",
            "none: sinks are the first positions");
    // make_classifier() looks classes up by id, in a table as large as the vocabulary.
    if (vocab_size == 0 && !rule.ids.empty())
      raise(error_code::missing, here, std::to_string(rule.ids.size()) + " ids and no vocab_size",
            "a vocab_size over 0, as classes are looked up by id");
    for (std::size_t k = 0; k < rule.ids.size(); ++k) {
      check_token_id(rule.ids[k], vocab_size, here + "/" + std::to_string(k));
      if (k > 0 && rule.ids[k] <= rule.ids[k - 1])
        raise(error_code::malformed, here + "/" + std::to_string(k), std::to_string(rule.ids[k]),
              "ids in ascending order");
    }
  }
}

[[nodiscard]] inline std::vector<std::int32_t> read_ids(const json_cursor& json) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < json.size(); ++i)
    ids.push_back(json[i].integer<std::int32_t>(0, std::numeric_limits<std::int32_t>::max()));
  return ids;
}

[[nodiscard]] inline std::vector<token_class_rule> read_classes(const json_cursor& json,
                                                                std::uint32_t vocab_size) {
  std::vector<token_class_rule> classes;
  json.for_each_member([&](const std::string& name, const json_cursor& ids) {
    const token_classes bit = next_class_bit(name, classes, ids.place());
    classes.push_back({name, bit, read_ids(ids)});
  });
  check_classes(classes, vocab_size, json.place());
  return classes;
}

inline void append_ids(std::string& out, std::span<const std::int32_t> ids) {
  out += '[';
  for (const std::int32_t id : ids) {
    if (out.back() != '[') out += ", ";
    out += std::to_string(id);
  }
  out += ']';
}

// classes: checked. before_each, at_end: the space that makes the text one line or several.
inline void append_classes(std::string& out, std::span<const token_class_rule> classes,
                           std::string_view before_each, std::string_view at_end,
                           const std::string& place) {
  out += '{';
  for (const token_class_rule& rule : classes) {
    if (&rule != classes.data()) out += ',';
    out += before_each;
    append_json_text(out, rule.name, place);
    out += ": ";
    append_ids(out, rule.ids);
  }
  if (!classes.empty()) out += at_end;
  out += '}';
}

}  // namespace detail

HEADWISE_NAMESPACE_END
