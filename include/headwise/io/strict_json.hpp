// SPDX-License-Identifier: Apache-2.0
//
// JSON as this library reads it: RFC 8259, and beyond that no name twice in an object, at most 64
// levels, every integer in range or refused. The grammar is nlohmann/json's, whose types stay
// inside parse_json(); memory is proportional to the text, never to a number in it. A UTF-8
// byte-order mark is skipped. Every error names a JSON pointer or a byte offset. Values are
// immutable: any number of threads may read one.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "headwise/core/error.hpp"
#include "headwise/core/printable.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

struct json_member;

// A number that is no 64-bit integer, with its text for messages.
struct json_real {
  double value = 0.0;
  std::string text;
};

struct json_value {
  using array = std::vector<json_value>;
  using object = std::vector<json_member>;  // in the order of the text
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, json_real, std::string, array,
               object>
      data;
};

struct json_member {
  std::string name;
  json_value value;
};

[[nodiscard]] inline std::string json_text(const json_value& value) {
  struct {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(std::uint64_t i) const { return std::to_string(i); }
    std::string operator()(const json_real& real) const { return real.text; }
    std::string operator()(const std::string& text) const { return "text " + in_quotes(text); }
    std::string operator()(const json_value::array& items) const {
      return "an array of " + std::to_string(items.size());
    }
    std::string operator()(const json_value::object& members) const {
      return "an object of " + std::to_string(members.size());
    }
  } text;
  return std::visit(text, value.data);
}

// "a/b~c" as a part of a JSON pointer (RFC 6901).
[[nodiscard]] inline std::string pointer_token(std::string_view name) {
  std::string token;
  for (const char c : name) c == '~' ? token += "~0" : c == '/' ? token += "~1" : token += c;
  return token;
}

// Receives the events of the parser and builds the tree.
class json_builder {
 public:
  static constexpr std::size_t max_depth = 64;

  explicit json_builder(std::string place) : place_(std::move(place)) {}
  [[nodiscard]] json_value take() { return std::move(root_); }

  bool null() { return add({nullptr}); }
  bool boolean(bool value) { return add({value}); }
  bool number_integer(std::int64_t value) { return add({value}); }
  bool number_unsigned(std::uint64_t value) { return add({value}); }
  bool number_float(double value, const std::string& text) {
    json_real real{value, text};
    // The parser puts the decimal point of the current C locale into its text.
    for (char& c : real.text)
      if (std::string_view("0123456789+-eE").find(c) == std::string_view::npos) c = '.';
    return add({std::move(real)});
  }
  bool string(std::string& value) { return add({std::move(value)}); }
  template <class Binary>
  bool binary(Binary&) {  // JSON text has none
    return false;
  }
  bool start_object(std::size_t) { return open({json_value::object{}}); }
  bool start_array(std::size_t) { return open({json_value::array{}}); }
  bool key(std::string& name) {
    std::get<json_value::object>(open_.back()->data).push_back({std::move(name), {}});
    return true;
  }
  bool end_object() {
    require_distinct(std::get<json_value::object>(open_.back()->data));
    open_.pop_back();
    return true;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t offset, const std::string&, const Exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: reason", or without a
    // line.
    std::string_view reason = e.what();
    for (const std::string_view end : {"] ", ": "})
      if (const auto at = reason.find(end); at != std::string_view::npos)
        reason.remove_prefix(at + end.size());
    raise(error_code::malformed, place_ + ": byte " + std::to_string(offset),
          printable(reason, 160), "JSON");
  }

 private:
  // A pointer into the tree stays valid while its node is open: only the innermost open array or
  // object grows, and what is open lies at its end.
  json_value* place_for(json_value value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (auto* const members = std::get_if<json_value::object>(&open_.back()->data)) {
      members->back().value = std::move(value);
      return &members->back().value;
    }
    auto& items = std::get<json_value::array>(open_.back()->data);
    items.push_back(std::move(value));
    return &items.back();
  }
  bool add(json_value value) {
    place_for(std::move(value));
    return true;
  }
  bool open(json_value value) {
    if (open_.size() == max_depth)
      raise(error_code::malformed, place_ + ": " + pointer(), "nesting too deep",
            "at most " + std::to_string(max_depth) + " levels");
    open_.push_back(place_for(std::move(value)));
    return true;
  }
  void require_distinct(const json_value::object& members) const {
    std::vector<std::string_view> names;
    names.reserve(members.size());
    for (const json_member& member : members) names.push_back(member.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      raise(error_code::duplicate, place_ + ": " + pointer() + "/" + pointer_token(*twice),
            "the name " + in_quotes(*twice) + " twice", "each name once in an object");
  }
  // Of the innermost open value.
  [[nodiscard]] std::string pointer() const {
    std::string result;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      result += '/';
      if (const auto* const members = std::get_if<json_value::object>(&open_[i]->data))
        result += pointer_token(members->back().name);
      else
        result += std::to_string(std::get<json_value::array>(open_[i]->data).size() - 1);
    }
    return result;
  }

  std::string place_;
  json_value root_;
  std::vector<json_value*> open_;  // outermost first
};

// place: of the text, for messages. Throws error(malformed) or error(duplicate).
[[nodiscard]] inline json_value parse_json(std::string_view text, const std::string& place) {
  json_builder builder(place);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

// A value together with where it stands. Copies are cheap but for the pointer's text.
class json_cursor {
 public:
  json_cursor(const json_value& value, std::string place)
      : json_cursor(value, std::move(place), "") {}

  [[nodiscard]] std::string place() const {
    return pointer_.empty() ? place_ : place_ + ": " + pointer_;
  }

  [[noreturn]] void fail(error_code code, std::string expected) const {
    raise(code, place(), json_text(*value_), std::move(expected));
  }

  // Members, in the order of the text.
  template <class Fn>
  void for_each_member(Fn&& fn) const {
    for (const json_member& member : get<json_value::object>("an object"))
      fn(member.name, child(member.value, member.name));
  }
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  [[nodiscard]] json_cursor at(std::string_view name) const {
    const json_value* const found = find(name);
    if (found == nullptr)
      raise(error_code::missing, place_ + ": " + pointer_ + "/" + pointer_token(name), "nothing",
            "a value");
    return child(*found, name);
  }
  // Throws error(malformed) naming the first member that is not one of `known`.
  void require_known(std::initializer_list<std::string_view> known) const {
    for_each_member([&](const std::string& name, const json_cursor& member) {
      if (std::find(known.begin(), known.end(), name) != known.end()) return;
      std::string names;
      for (const std::string_view one : known)
        names += (names.empty() ? "" : ", ") + std::string(one);
      raise(error_code::malformed, member.place(), "an unknown key", "one of " + names);
    });
  }

  [[nodiscard]] std::size_t size() const { return items().size(); }
  [[nodiscard]] json_cursor operator[](std::size_t i) const {
    return child(items()[i], std::to_string(i));
  }

  [[nodiscard]] const std::string& text() const { return get<std::string>("a text"); }
  // A finite number from low to high.
  [[nodiscard]] double real(double low, double high) const {
    double result = 0.0;
    if (const auto* const i = std::get_if<std::int64_t>(&value_->data))
      result = static_cast<double>(*i);
    else if (const auto* const u = std::get_if<std::uint64_t>(&value_->data))
      result = static_cast<double>(*u);
    else
      result = get<json_real>("a number").value;
    if (!(result >= low && result <= high))
      fail(error_code::out_of_range,
           "a number from " + short_text(low) + " to " + short_text(high));
    return result;
  }
  // An integer of type Int from low to high, written without fraction or exponent.
  template <std::integral Int>
  [[nodiscard]] Int integer(Int low, Int high) const {
    const auto in_range = [&](auto i) {
      return !std::cmp_less(i, low) && !std::cmp_greater(i, high);
    };
    if (const auto* const i = std::get_if<std::int64_t>(&value_->data); i && in_range(*i))
      return static_cast<Int>(*i);
    if (const auto* const u = std::get_if<std::uint64_t>(&value_->data); u && in_range(*u))
      return static_cast<Int>(*u);
    const bool number = value_->data.index() >= 2 && value_->data.index() <= 4;
    fail(number ? error_code::out_of_range : error_code::malformed,
         "an integer from " + std::to_string(low) + " to " + std::to_string(high));
  }

 private:
  json_cursor(const json_value& value, std::string place, std::string pointer)
      : value_(&value), place_(std::move(place)), pointer_(std::move(pointer)) {}

  [[nodiscard]] json_cursor child(const json_value& value, std::string_view name) const {
    return {value, place_, pointer_ + "/" + pointer_token(name)};
  }
  template <class T>
  [[nodiscard]] const T& get(const char* expected) const {
    const T* const found = std::get_if<T>(&value_->data);
    if (found == nullptr) fail(error_code::malformed, expected);
    return *found;
  }
  [[nodiscard]] const json_value::array& items() const {
    return get<json_value::array>("an array");
  }
  [[nodiscard]] const json_value* find(std::string_view name) const {
    const auto& members = get<json_value::object>("an object");
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const json_member& member) { return member.name == name; });
    return found == members.end() ? nullptr : &found->value;
  }
  [[nodiscard]] static std::string short_text(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
  }

  const json_value* value_;
  std::string place_, pointer_;
};

}  // namespace detail

HEADWISE_NAMESPACE_END
