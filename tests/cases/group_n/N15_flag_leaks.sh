#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# As a subproject headwise changes no variable of its parent and hands out no flags.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

configure "$HEADWISE_ROOT/tests/consumer/quiet_parent" build
configure "$HEADWISE_ROOT/tests/consumer/quiet_parent" debug -DCMAKE_BUILD_TYPE=Debug -DBUILD_SHARED_LIBS=ON
