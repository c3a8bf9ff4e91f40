#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints golden_blocks.hpp: what the Python package gguf decodes made-up blocks to.

usage: python3 golden_blocks.py > golden_blocks.hpp

The bytes of block data come from x <- 1664525 x + 1013904223 (mod 2^32), the upper byte of each x;
the 16-bit scales among them are then set to ordinary numbers. What is kept of the decoded values v
is sum(v[i] * ((i * 7919) % 251 + 1)) in double, which no permutation of the values leaves alone.
"""
import gguf
import numpy

BLOCKS = 4
SCALES = [0x2E66, 0xB4CD, 0x3555, 0x2A3D]  # 0.1, -0.3, 0.333, 0.0487
# type name: byte offsets of the 16-bit scales of a block
TYPES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2],
         "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def block_bytes(size, offsets):
    state, data = 12345, bytearray()
    for _ in range(size * BLOCKS):
        state = (1664525 * state + 1013904223) % 2**32
        data.append(state >> 24)
    for block in range(BLOCKS):
        for i, offset in enumerate(offsets):
            at = block * size + offset
            data[at:at + 2] = SCALES[(block + i) % 4].to_bytes(2, "little")
    return data


print("// SPDX-License-Identifier: Apache-2.0")
print("//")
print("// Printed by golden_blocks.py, not edited by hand. offsets: of the 16-bit scales in a block;")
print("// weighted_sum: of the decoded values, as the script says.")
print("#pragma once\n\n#include <array>\n#include <vector>\n\n#include \"llama/dequantize.hpp\"\n")
print("namespace headwise_tests {\n")
print("struct golden_block {\n  llama_example::tensor_type type;\n  std::vector<std::size_t> offsets;")
print("  double weighted_sum;\n};\n")
print("inline const std::array<golden_block, %d> golden_blocks{{" % len(TYPES))
for name, offsets in TYPES.items():
    kind = gguf.GGMLQuantizationType[name]
    size = gguf.GGML_QUANT_SIZES[kind][1]
    data = numpy.frombuffer(bytes(block_bytes(size, offsets)), dtype=numpy.uint8)
    values = gguf.quants.dequantize(data, kind).astype(numpy.float64)
    weights = (numpy.arange(values.size) * 7919) % 251 + 1
    total = float((values.reshape(-1) * weights).sum())
    listed = ", ".join(map(str, offsets))
    print(f"    {{llama_example::tensor_type::{name.lower()}, {{{listed}}}, {total!r}}},")
print("}};\n\n}  // namespace headwise_tests")
