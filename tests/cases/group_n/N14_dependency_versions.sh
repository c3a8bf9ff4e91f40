#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The versions of nlohmann_json that are accepted, and the range in the message when one is
# not. The machine's own version runs the whole test suite; the others here are packages of that number.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

install_headwise "$PWD/prefix"

# wants COMPONENT PACKAGE VERSION TARGET
wants() {
    fake_package "$2-$3" "$2" "$3" "$4"
    configure "$HEADWISE_ROOT/tests/consumer/find_package" "build-$2-$3" "-D$2_ROOT=$PWD/$2-$3" \
        -DCMAKE_PREFIX_PATH="$PWD/prefix" "-DWANTED=COMPONENTS;$1"
}
for version in 3.10.5 3.11.3 3.12.0; do
    wants io nlohmann_json $version nlohmann_json::nlohmann_json
done
expect_failure "3.10 or newer and below 4, and version 3.7.3 was found" \
    wants io nlohmann_json 3.7.3 nlohmann_json::nlohmann_json
expect_failure "3.10 or newer and below 4, and version 4.0.0 was found" \
    wants io nlohmann_json 4.0.0 nlohmann_json::nlohmann_json
