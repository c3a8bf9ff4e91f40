// SPDX-License-Identifier: Apache-2.0
//
// What a program prints may be lost without a word where it goes to a device that is full, or end
// up in its own files where it was started without the stream for it.
#pragma once

#include <cstdio>
#include <iostream>

#include <fcntl.h>

#include "headwise/core/error.hpp"

// At the start of a program: a file that is opened takes the lowest number that is free, so each of
// the three streams that is not there is occupied. Standard output then refuses what is printed to
// it, standard error loses it.
inline void occupy_standard_streams() noexcept {
  constexpr int standard_error = 2;
  for (int stream = 0; stream <= standard_error; ++stream)
    if (fcntl(stream, F_GETFD) < 0)
      static_cast<void>(open("/dev/null", stream == standard_error ? O_WRONLY : O_RDONLY));
}

// At the end of a program: throws headwise::error(unreadable) where something printed, by streams
// or by printf, did not get out.
inline void require_printed() {
  if (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    headwise::raise(headwise::error_code::unreadable, "standard output", "a write that failed",
                    "a stream that takes what is printed");
}
