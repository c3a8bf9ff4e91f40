#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a consumer configures Eigen to be changes nothing: the same blueprint, to the last digit.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"
cases=$HEADWISE_ROOT/tests/cases/group_n

build=("${compilers[0]}" -std=c++20 -O0 "${includes[@]}" "$cases/print_profile.cpp")
"${build[@]}" -o plain
./plain >plain.json
"${build[@]}" -DEIGEN_DEFAULT_TO_ROW_MAJOR -DEIGEN_MAX_ALIGN_BYTES=0 -DEIGEN_DONT_VECTORIZE \
    -DEIGEN_DEFAULT_DENSE_INDEX_TYPE=int -DEIGEN_NO_AUTOMATIC_RESIZING -o configured
./configured >configured.json
cmp plain.json configured.json
