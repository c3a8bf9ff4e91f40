// SPDX-License-Identifier: Apache-2.0
//
// What a program prints may be lost without a word where it goes to a device that is full.
#pragma once

#include <cstdio>
#include <iostream>

#include "headwise/core/error.hpp"

// At the end of a program: throws headwise::error(unreadable) where something printed, by streams
// or by printf, did not get out.
inline void require_printed() {
  if (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    headwise::raise(headwise::error_code::unreadable, "standard output", "a write that failed",
                    "a stream that takes what is printed");
}
