// SPDX-License-Identifier: Apache-2.0
//
// Progress of long work on standard error: a bar that redraws itself on a terminal, a line for
// each quarter of what takes longer elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace headwise_tool {

class progress {
 public:
  // unit: what is counted, in the plural.
  progress(std::string label, std::uint64_t total, std::string unit);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();  // ends the bar's line, also where the work broke off

  void reach(std::uint64_t done);

 private:
  using clock = std::chrono::steady_clock;
  void draw() const;

  std::string label_;
  std::uint64_t total_;
  std::string unit_;
  std::uint64_t done_ = 0;
  bool terminal_;
  clock::time_point start_ = clock::now();
  clock::time_point drawn_{};
};

}  // namespace headwise_tool
