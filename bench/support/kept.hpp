// SPDX-License-Identifier: Apache-2.0
//
// kept: the library calls a benchmark several times, to find its number of iterations and for each
// repetition. A set-up that takes longer than the measurement is made once and kept until the next
// one of its type is asked for.
#pragma once

#include <memory>
#include <string>

namespace headwise_bench {

template <class Fixture, class... Args>
[[nodiscard]] Fixture& kept(const std::string& name, const Args&... args) {
  static std::string kept_name;
  static std::unique_ptr<Fixture> fixture;
  if (kept_name != name) {
    fixture.reset();  // the memory of the old one first
    fixture = std::make_unique<Fixture>(args...);
    kept_name = name;
  }
  return *fixture;
}

}  // namespace headwise_bench
