// SPDX-License-Identifier: Apache-2.0
// Compiled as a global object that uses a cache before main and again at exit, and as the main that
// does the same in between.
#include <cstdio>

#include "exercise.hpp"

#ifdef GLOBAL
struct early {
  double before_main = exercise_core();
  ~early() {
    if (exercise_core() != before_main) std::puts("another answer at exit");
  }
};
const early first_of_all;  // NOLINT(cert-err58-cpp): that is the point

double answer_before_main() {
  return first_of_all.before_main;
}
#else
double answer_before_main();

int main() {
  if (exercise_core() == answer_before_main()) return 0;
  std::puts("another answer before main");
  return 1;
}
#endif
