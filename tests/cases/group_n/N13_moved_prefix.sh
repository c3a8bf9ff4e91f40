#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An installed headwise is whole, works after its prefix has moved, holds no path of the machine that built it,
# finds its dependencies through CMAKE_PREFIX_PATH alone, and names the one that is absent.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"
consumer=$HEADWISE_ROOT/tests/consumer

install_headwise "$PWD/built"
files() { (cd "$1/include/headwise" && find . -type f | sort); }
diff <(files "$HEADWISE_ROOT") <(files built) || fail "not all of include/headwise is installed"

mkdir elsewhere
mv built elsewhere/moved
if grep -rlE "$HEADWISE_ROOT|$PWD/packager|$PWD/built" elsewhere/moved; then
    fail "the files above hold a path of the build"
fi
if grep -rnE "(^|[;\" ])-l[a-z]" elsewhere/moved/share/cmake; then
    fail "the lines above hold a raw library name"
fi

configure "$consumer/find_package" plain -DCMAKE_PREFIX_PATH="$PWD/elsewhere/moved"
build_and_run plain program

# What the machine itself has installed is out of sight once the compiler is found.
echo 'set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)
set(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH OFF)' >hide_system.cmake
wants_io() {
    configure "$consumer/find_package" "$1" -DCMAKE_PROJECT_INCLUDE="$PWD/hide_system.cmake" \
        -DCMAKE_PREFIX_PATH="$2" "-DWANTED=COMPONENTS;io"
}
fake_package dependency nlohmann_json 3.11.2 nlohmann_json::nlohmann_json
wants_io through-prefix-path "$PWD/elsewhere/moved;$PWD/dependency"
expect_failure "nlohmann_json.*was not found" wants_io absent "$PWD/elsewhere/moved"
