#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long the small consumer takes to compile against the core alone. Told, not judged: machines differ.
source "$(dirname "${BASH_SOURCE[0]}")/../support/toolchain.sh"

for compiler in "${compilers[@]}"; do
    for level in -O0 -O2; do
        start=$(date +%s%N)
        "$compiler" -std=c++20 $level -I"$HEADWISE_ROOT/include" -c "$HEADWISE_ROOT/tests/consumer/program.cpp" -o program.o
        echo "$(basename "$compiler") $level: $((($(date +%s%N) - start) / 1000000)) ms"
    done
done
