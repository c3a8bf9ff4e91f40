#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All but io need nothing: they configure, build and run where neither Eigen nor nlohmann_json can be
# found. Asking for io then names the package and the component.
source "$(dirname "${BASH_SOURCE[0]}")/../support/toolchain.sh"
consumer=$HEADWISE_ROOT/tests/consumer

bare=(-DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)
install_headwise "$PWD/prefix"
wants() {
    local name=$1
    shift
    configure "$consumer/find_package" "$name" -DCMAKE_PREFIX_PATH="$PWD/prefix" "$@"
}

wants core "${bare[@]}" -DWANTED="COMPONENTS;headwise;attend;profile"
build_and_run core program
wants optional "${bare[@]}" "-DWANTED=OPTIONAL_COMPONENTS;io"
expect_failure "headwise::io needs the package nlohmann_json" wants io "${bare[@]}" "-DWANTED=COMPONENTS;io"
expect_failure "headwise has no component kernels" wants unknown "-DWANTED=COMPONENTS;kernels"

# With it there, each component brings its own target and no other.
has() { wants "$@" | sed -n 's/^-- has //p' | tr '\n' ' '; }
[[ $(has only-io "-DWANTED=COMPONENTS;io") == "headwise::io " ]] || fail "io brings more than io"
[[ $(has only-profile "-DWANTED=COMPONENTS;profile") == "headwise::profile " ]] || fail "profile brings more"

# In a parent's tree likewise.
configure "$consumer/add_subdirectory" subproject "${bare[@]}"
build_and_run subproject program
