// SPDX-License-Identifier: Apache-2.0
#include "headwise/core/printable.hpp"

#include <string>

#include <gtest/gtest.h>

namespace {

using headwise::in_quotes;
using headwise::printable;

TEST(printable, leaves_text_as_it_is) {
  for (const std::string text : {"", "a b~", "caf\xc3\xa9", "\xe2\x82\xac \xf0\x9f\x98\x80"})
    EXPECT_EQ(printable(text), text);
}

TEST(printable, masks_what_a_terminal_acts_upon) {
  EXPECT_EQ(printable("a\x1b[2Jb\x7f\n"), "a?[2Jb??");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J \xc2\xa0"),
            "?2J \xc2\xa0");  // a C1 control sequence introducer; a space that is none
}

TEST(printable, masks_bytes_that_are_no_utf8) {
  EXPECT_EQ(printable("\xff"
                      "a\xc3"),
            "?a?");
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");  // half of a surrogate pair
}

// Post-conditions for every cut: 1. whole characters only 2. as many as fit 3. the cut shows.
TEST(printable, never_cuts_a_character) {
  const std::string euro = "\xe2\x82\xac", text = "ab" + euro + euro;
  for (std::size_t longest = 0; longest < text.size(); ++longest) {
    const std::size_t euros = longest < 5 ? 0 : 1;
    const std::string kept =
        text.substr(0, std::min<std::size_t>(longest, 2)) + (euros == 1 ? euro : std::string());
    EXPECT_EQ(printable(text, longest), kept + "...") << longest;
  }
  EXPECT_EQ(printable(text, text.size()), text);
}

TEST(printable, quotes_are_short) {
  const std::string euro = "\xe2\x82\xac";
  std::string text;
  for (int i = 0; i < 100; ++i) text += euro;
  EXPECT_EQ(in_quotes("a\tb"), "'a?b'");
  EXPECT_EQ(in_quotes(text), "'" + text.substr(0, 159) + "...'");  // 160 lies within a character
}

}  // namespace
