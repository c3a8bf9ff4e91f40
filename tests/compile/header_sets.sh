#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each header stands alone with what its component links, and no more. Nothing is generated: what is asked
# is whether it compiles.
source "$(dirname "${BASH_SOURCE[0]}")/../support/toolchain.sh"

configure "$HEADWISE_ROOT" sets -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS_NONE=-fsyntax-only \
    -DHEADWISE_BUILD_TESTS=OFF -DHEADWISE_BUILD_BENCHMARKS=OFF -DHEADWISE_BUILD_EXAMPLES=OFF
"$HEADWISE_CMAKE" --build sets --target all_verify_interface_header_sets
