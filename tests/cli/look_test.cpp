// SPDX-License-Identifier: Apache-2.0
//
// What people see: numbers, classes, tables, pictures.

#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "head_class.hpp"
#include "head_map.hpp"
#include "markup.hpp"
#include "numbers.hpp"
#include "png.hpp"
#include "terminal.hpp"
#include "text_table.hpp"

namespace headwise_tests {
namespace {

using namespace headwise_tool;
using headwise::make_spec;
using headwise::token_classes;

TEST(Numbers, AsPeopleReadThem) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(18446744073709551615U), "18,446,744,073,709,551,615");
  EXPECT_EQ(percent(0.5414), "54.1 %");
  EXPECT_EQ(change(10.1, 10.0), "+1.0 %");
  EXPECT_EQ(change(9.0, 10.0), "-10.0 %");
  EXPECT_EQ(short_bytes(1023), "1023 B");
  EXPECT_EQ(short_bytes(524288), "512 KiB");
  EXPECT_EQ(short_bytes(1073741824), "1 GiB");
  EXPECT_EQ(short_bytes(1.5 * 1048576), "1.50 MiB");
}

TEST(Numbers, ProductsAndSumsDoNotWrap) {
  constexpr std::uint64_t most = ~std::uint64_t{0};
  EXPECT_EQ(checked_product(most, 1, "x"), most);
  EXPECT_EQ(checked_product(most, 0, "x"), 0U);
  EXPECT_THROW(static_cast<void>(checked_product(most / 2 + 1, 2, "x")), headwise::error);
  EXPECT_EQ(checked_sum(most, 0, "x"), most);
  EXPECT_THROW(static_cast<void>(checked_sum(most, 1, "x")), headwise::error);
}

TEST(HeadClass, ReadOffThePolicy) {
  const headwise::special_tokens special(token_classes::sink | token_classes::special);
  const headwise::special_tokens punctuation(special.classes() | token_classes::punctuation);
  const headwise::special_tokens learned(special.classes(), {5, 9});
  const auto with_window = [](const headwise::special_tokens& kept) {
    return make_spec(headwise::union_of(kept, headwise::local_window(64)));
  };
  const auto label_of = [](const headwise::policy_spec& spec) { return label(class_of(spec)); };
  EXPECT_EQ(label_of(make_spec(headwise::global{})), "all");
  EXPECT_EQ(label_of(make_spec(special)), "S");
  EXPECT_EQ(label_of(make_spec(punctuation)), "S.");
  EXPECT_EQ(label_of(make_spec(learned)), "S+");
  EXPECT_EQ(label_of(with_window(special)), "64");
  EXPECT_EQ(label_of(with_window(punctuation)), "64.");
  EXPECT_EQ(label_of(with_window(learned)), "64+");
  EXPECT_EQ(label_of(make_spec(headwise::local_window(7))), "7");
  const auto frequent = make_spec(
      headwise::union_of(punctuation, headwise::local_window(64), headwise::heavy_hitters(9)));
  EXPECT_EQ(label_of(frequent), "64.*");
  EXPECT_EQ(in_words(class_of(frequent)),
            "sinks, special tokens, punctuation, the last 64, the most attended");
  EXPECT_EQ(label_of({"of_my_own", {}, {}, {}}), "?");
  EXPECT_EQ(label_of({"union", {}, {}, {make_spec(special), {"of_my_own", {}, {}, {}}}}), "?");
  EXPECT_EQ(in_words(class_of(with_window(punctuation))),
            "sinks, special tokens, punctuation, the last 64");
  EXPECT_EQ(in_words(class_of(make_spec(headwise::local_window(7)))), "the last 7");
}

TEST(HeadClass, ClassesOfABlueprintAreCountedCheapestFirst) {
  headwise::blueprint plan =
      headwise::uniform_blueprint({1, 4, 4, 8}, make_spec(headwise::global{}));
  plan.heads[0].policy = make_spec(headwise::local_window(8));
  plan.heads[0].recovery = 0.96;
  plan.heads[3].policy = make_spec(headwise::local_window(8));
  plan.heads[3].recovery = 0.98;
  const auto classes = classes_of(plan);
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].heads, 2U);
  EXPECT_DOUBLE_EQ(classes[0].mean_recovery, 0.97);
  EXPECT_EQ(classes[1].what.kind, head_kind::global);
}

TEST(HeadMap, HasEveryHeadAndNoForeignMarkup) {
  headwise::blueprint plan =
      headwise::uniform_blueprint({3, 4, 2, 8}, make_spec(headwise::local_window(8)), "window");
  plan.model.name = "<script>&\"";
  const std::string svg = head_map_svg(plan, {100, 1, 32}, nullptr);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  for (const char* head : {"layer 0, KV head 0", "layer 2, KV head 1"})
    EXPECT_NE(svg.find(head), std::string::npos) << head;
  EXPECT_NE(svg.find("8.0 %"), std::string::npos);  // 8 of 100 rows
  EXPECT_EQ(svg, head_map_svg(plan, {100, 1, 32}, nullptr));
}

TEST(HeadMap, HasALegendAsLongAsItMustBe) {
  headwise::blueprint plan =
      headwise::uniform_blueprint({30, 2, 2, 8}, make_spec(headwise::global{}));
  const auto picture = [&] { return head_map_svg(plan, {400, 1, 32}, nullptr); };
  const auto number = [&](const std::string& pattern) {
    const std::string svg = picture();
    std::smatch found;
    return std::regex_search(svg, found, std::regex(pattern)) ? std::stod(found[1]) : -1.0;
  };
  const double height_of_one_line = number("height=\"([^\"]*)\" viewBox");
  // Each number of windows puts the last words at another place of a line.
  for (headwise::token_count windows = 1; windows <= 40; ++windows) {
    plan.heads[windows].policy = make_spec(headwise::local_window(8 * windows));
    const double words = number("x=\"([^\"]*)\"[^>]*>every token [(]");
    ASSERT_GT(words, 0.0);
    ASSERT_LT(words + 6.0 * 16, 980.0) << windows;
  }
  EXPECT_GE(number("height=\"([^\"]*)\" viewBox"), height_of_one_line + 24.0);
}

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCell) {
  text_table table({"", "bytes"});
  table.add({"full", "12"});
  table.rule();
  table.add({"a", "12345678"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(),
            "           bytes\n"
            "  --------------\n"
            "  full        12\n"
            "  --------------\n"
            "  a     12345678\n");
}

TEST(Terminal, TextHasAnInkAndABackground) {
  EXPECT_EQ(coloured("x", "#ffffff", "#000102"), "\x1b[38;2;255;255;255;48;2;0;1;2mx\x1b[0m");
}

TEST(Png, KnownBytes) {
  const std::vector<std::uint8_t> pixels{1, 0, 0, 1};
  const std::vector<rgb> palette{{0, 0, 0}, {255, 128, 0}};
  const std::string png = png_of(pixels, 2, palette);
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  // CRC of "IEND" and Adler-32 of the rows 00 10 00 01, both by hand from their definitions.
  EXPECT_EQ(png.substr(png.size() - 4), "\xae\x42\x60\x82");
  EXPECT_NE(png.find(std::string("\x00\x10\x00\x01\x00\x35\x00\x12", 8)), std::string::npos);
  EXPECT_EQ(base64("Man"), "TWFu");
  EXPECT_EQ(base64("Ma"), "TWE=");
  EXPECT_EQ(base64("M"), "TQ==");
}

}  // namespace
}  // namespace headwise_tests
