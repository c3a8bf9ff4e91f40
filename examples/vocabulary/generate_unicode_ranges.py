#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints unicode_ranges.hpp: the code points of the general categories L, N and P as ranges.

usage: python3 generate_unicode_ranges.py > unicode_ranges.hpp
"""
import sys
import unicodedata

TABLES = {"letter_ranges": "L", "number_ranges": "N", "punctuation_ranges": "P"}


def ranges_of(category):
    ranges = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] != category:
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ranges


def lines_of(ranges, width=100):
    line = "   "
    for first, last in ranges:
        entry = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(entry) > width:
            yield line
            line = "   "
        line += entry
    yield line


print("// SPDX-License-Identifier: Apache-2.0")
print("//")
print("// Code points by general category, Unicode " + unicodedata.unidata_version + ".")
print("// Printed by generate_unicode_ranges.py, not edited by hand.")
print("\n#pragma once\n\n#include <array>\n")
print("namespace headwise_vocabulary::detail {\n")
print("struct code_point_range {\n  char32_t first, last;  // both within\n};\n")
print("// clang-format off")
for name, category in TABLES.items():
    print(f"inline constexpr auto {name} = std::to_array<code_point_range>({{")
    print("\n".join(lines_of(ranges_of(category))))
    print("});\n")
print("// clang-format on\n")
print("}  // namespace headwise_vocabulary::detail")
