// SPDX-License-Identifier: Apache-2.0
#include "headwise/io/strict_json.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "headwise/io/json_writer.hpp"
#include "support/files.hpp"

namespace {

using headwise::error_code;
using headwise::detail::json_cursor;
using headwise::detail::json_value;
using headwise::detail::parse_json;
using headwise_tests::expect_error;

template <class Use>
void with_json(const std::string& text, Use&& use) {
  const json_value value = parse_json(text, "text.json");
  use(json_cursor(value, "text.json"));
}

TEST(strict_json, integers_at_their_bounds) {
  with_json("[-9223372036854775808, 18446744073709551615, 127, 128]", [](const json_cursor& json) {
    using limits = std::numeric_limits<std::int64_t>;
    EXPECT_EQ(json[0].integer<std::int64_t>(limits::min(), limits::max()), limits::min());
    EXPECT_EQ(json[1].integer<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()),
              std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(json[2].integer<std::int8_t>(0, 127), 127);
    expect_error(error_code::out_of_range, {"text.json: /3", "got 128", "from 0 to 127"},
                 [&] { static_cast<void>(json[3].integer<std::int8_t>(0, 127)); });
    expect_error(error_code::out_of_range, {"/1", "18446744073709551615"},
                 [&] { static_cast<void>(json[1].integer<std::int64_t>(0, limits::max())); });
  });
}

TEST(strict_json, pointers_are_escaped) {
  with_json(R"({"a/b": {"c~d": 1}})", [](const json_cursor& json) {
    expect_error(error_code::malformed, {"text.json: /a~1b/c~0d", "got 1", "a text"},
                 [&] { static_cast<void>(json.at("a/b").at("c~d").text()); });
    expect_error(error_code::missing, {"text.json: /a~1b/e"},
                 [&] { static_cast<void>(json.at("a/b").at("e")); });
  });
}

TEST(strict_json, wrong_kinds_name_what_is_there) {
  const auto refuses = [](const json_cursor& json, auto&& use) {
    try {
      use(json);
      return false;
    } catch (const headwise::error& e) {
      return e.code() == error_code::malformed && e.place() == "text.json";
    }
  };
  for (const std::string text : {"null", "true", "1", "0.5", "\"x\"", "[]", "{}"})
    with_json(text, [&](const json_cursor& json) {
      EXPECT_EQ(refuses(json, [](auto& j) { static_cast<void>(j.text()); }), text != "\"x\"");
      EXPECT_EQ(refuses(json, [](auto& j) { static_cast<void>(j.size()); }), text != "[]");
      EXPECT_EQ(refuses(json, [](auto& j) { j.require_known({"x"}); }), text != "{}");
      EXPECT_EQ(refuses(json, [](auto& j) { static_cast<void>(j.real(0, 1)); }),
                text != "1" && text != "0.5");
    });
}

TEST(strict_json, grammar) {
  for (const char* const text : {"[1,]", "{\"a\":1,}", "[1] x", "01", "+1", ".5", "1.", "NaN",
                                 "Infinity", "'a'", "// x\n1", "\"\t\"", "\"\\x\"", "\"\xff\"",
                                 "\"\xed\xa0\x80\"", "\"\\ud800\"", "nul", "{1:2}", "1e999"})
    expect_error(error_code::malformed, {"text.json: byte"},
                 [&] { static_cast<void>(parse_json(text, "text.json")); });
}

TEST(strict_json, reasons_are_the_parsers_own_words) {
  expect_error(error_code::malformed,
               {"text.json: byte 5: malformed: got number overflow parsing '1e999'"},
               [] { static_cast<void>(parse_json("1e999", "text.json")); });
  expect_error(error_code::malformed,
               {"text.json: byte 3: malformed: got syntax error while parsing"},
               [] { static_cast<void>(parse_json("[1}", "text.json")); });
}

TEST(strict_json, names_twice_at_any_level) {
  expect_error(error_code::duplicate, {"text.json: /1/a/b", "'b' twice"}, [] {
    static_cast<void>(parse_json(R"([0, {"a": {"b": 1, "c": 2, "b": 1}}])", "text.json"));
  });
  // The same name in two objects is no duplicate, nor is it by another spelling of its escape.
  with_json(R"([{"a": 1}, {"a": 2}])", [](const json_cursor& json) { EXPECT_EQ(json.size(), 2U); });
  expect_error(error_code::duplicate, {"/a"},
               [] { static_cast<void>(parse_json(R"({"a": 1, "\u0061": 2})", "text.json")); });
}

TEST(strict_json, depth_limit_is_exact) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  with_json(nested(64), [](const json_cursor& json) { EXPECT_EQ(json.size(), 1U); });
  expect_error(error_code::malformed, {"nesting too deep", "64"},
               [&] { static_cast<void>(parse_json(nested(65), "text.json")); });
}

TEST(json_writer, texts_read_back) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  for (const std::string& text :
       {all, std::string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), std::string()}) {
    std::string out;
    headwise::detail::append_json_text(out, text, "place");
    with_json(out, [&](const json_cursor& json) { EXPECT_EQ(json.text(), text); });
  }
}

TEST(json_writer, texts_that_are_no_utf8_are_refused) {
  for (const char* const text :
       {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "a\xff", "\xf4\x90\x80\x80",
        "\xf0\x80\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    std::string out;
    expect_error(error_code::invalid_argument, {"place", "UTF-8"},
                 [&] { headwise::detail::append_json_text(out, text, "place"); });
  }
}

TEST(json_writer, reals_read_back_bit_for_bit) {
  for (const double value : {0.0, 1.0, 0.1, 1.0 / 3, 5e-324, 2.2250738585072014e-308, 1e-7,
                             0.9999999999999999, 1e22, 123456789012345680.0}) {
    std::string out;
    headwise::detail::append_json_real(out, value, 0, 1e300, "place");
    with_json(out, [&](const json_cursor& json) { EXPECT_EQ(json.real(0, 1e300), value) << out; });
  }
}

}  // namespace
