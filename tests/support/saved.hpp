// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <utility>

#include "headwise/manager/saved_sequence.hpp"

namespace headwise_tests {

// The file of a sequence: all that it goes on from, so two of equal files are equal to the last
// bit.
template <class Sequence>
[[nodiscard]] std::string saved(const Sequence& text) {
  std::ostringstream out;
  headwise::save(text, out);
  return std::move(out).str();
}

}  // namespace headwise_tests
