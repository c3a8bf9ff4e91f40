#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A prefix without llama.cpp in it is told, not passed over.
source "$(dirname "${BASH_SOURCE[0]}")/../support/toolchain.sh"

mkdir prefix
expect_failure "HEADWISE_LLAMA_CPP is $PWD/prefix, and no llama-config.cmake" \
    configure "$HEADWISE_ROOT" build -DHEADWISE_LLAMA_CPP="$PWD/prefix" -DHEADWISE_BUILD_TESTS=OFF \
    -DHEADWISE_BUILD_BENCHMARKS=OFF
