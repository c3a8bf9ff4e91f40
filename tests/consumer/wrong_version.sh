#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An installed headwise serves the versions that it is compatible with, and refuses the others.
source "$(dirname "${BASH_SOURCE[0]}")/../support/toolchain.sh"
consumer=$HEADWISE_ROOT/tests/consumer

install_headwise "$PWD/prefix"
wants() { configure "$consumer/find_package" "build-$1" -DCMAKE_PREFIX_PATH="$PWD/prefix" -DWANTED="$1"; }

IFS=. read -r major minor _ <<<"$HEADWISE_VERSION"
wants "$major.$minor"
wants "$HEADWISE_VERSION"
for other in "$((major + 1)).0" "$major.$((minor + 1))" "$major.$minor.999"; do
    expect_failure "requested version \"$other\".*version: $HEADWISE_VERSION" wants "$other"
done
