# SPDX-License-Identifier: Apache-2.0
include_guard(GLOBAL)

add_library(headwise_warnings INTERFACE)
target_compile_options(
    headwise_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                                -Wold-style-cast -Werror)
