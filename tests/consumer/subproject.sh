#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that carries headwise in its tree, and one that gets it through FetchContent.
source "$(dirname "${BASH_SOURCE[0]}")/../support/toolchain.sh"
consumer=$HEADWISE_ROOT/tests/consumer

configure "$consumer/$1" build
build_and_run build program
