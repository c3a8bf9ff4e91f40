// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "exercise_files.hpp"

int main() {
  std::fputs(as_text(exercise_profile()).c_str(), stdout);
}
