# SPDX-License-Identifier: Apache-2.0
include_guard(GLOBAL)

# Off where someone only wants to run our programs: a newer compiler may know newer warnings.
option(HEADWISE_WARNINGS_AS_ERRORS "Warnings of our own programs are errors" ON)

add_library(headwise_warnings INTERFACE)
target_compile_options(
    headwise_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                                -Wold-style-cast)
if(HEADWISE_WARNINGS_AS_ERRORS)
    target_compile_options(headwise_warnings INTERFACE -Werror)
endif()
# GCC 12 and 13 see overlaps in std::string's operator+ that are not there (GCC bug 105651).
target_compile_options(headwise_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
