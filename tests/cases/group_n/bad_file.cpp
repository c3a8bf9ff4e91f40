// SPDX-License-Identifier: Apache-2.0
// Reads a blueprint of another format without exceptions; the handler prints the message and
// leaves.
#include <cstdio>
#include <cstdlib>

#define HEADWISE_ON_ERROR(e) (std::puts((e).what()), std::exit(3))

#include "exercise_files.hpp"

int main() {
  if (!(from_text(as_text(exercise_profile())) == exercise_profile())) return 1;
  return from_text(R"({"format": "another", "version": 1})").heads.empty() ? 2 : 4;
}
