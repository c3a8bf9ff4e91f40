// SPDX-License-Identifier: Apache-2.0
// The core with and without exceptions: bad data ends in the same message, refusals are values.
// Built without exceptions, HEADWISE_ON_ERROR prints the message and leaves with status 3.
#include <cstdio>
#include <cstdlib>

#ifndef __cpp_exceptions
#define HEADWISE_ON_ERROR(e) (std::puts((e).what()), std::exit(3))
#endif

#include "exercise.hpp"

int main() {
  if (std::isnan(exercise_core())) return 1;  // among others: a rollback that is refused

  const headwise::blueprint bad = headwise::uniform_blueprint(
      {1, 2, 1, 8}, {"local_window", {{"window", 0}}, {}, {}}, "no window at all");
#ifdef __cpp_exceptions
  try {
    headwise::cache_manager<> cache(bad, {});
  } catch (const headwise::error& e) {
    std::puts(e.what());
    return 3;
  }
#else
  headwise::cache_manager<> cache(bad, {});
#endif
  return 2;  // the blueprint was taken
}
