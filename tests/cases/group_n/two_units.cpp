// SPDX-License-Identifier: Apache-2.0
// Compiled twice, with UNIT a and b, after including every public header. Each unit tells where it
// sees the inline variables and functions; the main of unit a compares.
#include <cstdio>

#include "exercise.hpp"
#include "exercise_files.hpp"

struct sighting {
  const void* variables[4];
  void (*function)(const headwise::model_shape&, const std::string&);
  double core;
  std::string files;

  friend bool operator==(const sighting&, const sighting&) = default;
};

sighting UNIT() {
  return {{&headwise::forever, &headwise::global::kind, &headwise::f16::name,
           &headwise::blueprint_format},
          &headwise::validate,
          exercise_core(),
          as_text(exercise_profile())};
}

#ifdef WITH_MAIN
sighting b();

int main() {
  if (UNIT() == b()) return 0;
  std::puts("the units disagree");
  return 1;
}
#endif
