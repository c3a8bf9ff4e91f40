#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A parent with targets named like anything that we might name, and headwise in it twice.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

configure "$HEADWISE_ROOT/tests/consumer/clashing_parent" build
build_and_run build program
