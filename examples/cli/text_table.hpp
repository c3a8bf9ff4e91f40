// SPDX-License-Identifier: Apache-2.0
//
// A table for the terminal: columns as wide as their widest cell, numbers flush right.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace headwise_tool {

class text_table {
 public:
  // words: the columns that are flush left; the others are flush right.
  explicit text_table(std::vector<std::string> header, std::vector<std::size_t> words = {0})
      : lines_{std::move(header)}, words_(std::move(words)) {}

  void add(std::vector<std::string> cells) { lines_.push_back(std::move(cells)); }  // [columns]
  void rule() { lines_.emplace_back(); }
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> lines_;  // header first; an empty one is a rule
  std::vector<std::size_t> words_;
};

}  // namespace headwise_tool
