# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests that call compilers or CMake themselves. From the environment, set by CMake:
#   HEADWISE_COMPILERS  the C++ compilers to use, separated by colons
#   HEADWISE_ROOT       the source tree
#   HEADWISE_INCLUDES   include flags for what the profile and io components need
#   HEADWISE_CMAKE, HEADWISE_GENERATOR, HEADWISE_VERSION
#   HEADWISE_WORK       a folder of this test's own, made empty here and entered
set -euo pipefail
export LC_ALL=C

IFS=: read -ra compilers <<<"$HEADWISE_COMPILERS"
read -ra includes <<<"-I$HEADWISE_ROOT/include $HEADWISE_INCLUDES"
read -ra strict <<<"-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Werror"
rm -rf "$HEADWISE_WORK"
mkdir -p "$HEADWISE_WORK"
cd "$HEADWISE_WORK"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

is_gcc() { ! "$1" --version | grep -q clang; }

# each_header [FIND_ARGUMENT...]: public headers as a consumer names them, one a line.
each_header() { (cd "$HEADWISE_ROOT/include" && find headwise -name '*.hpp' "$@" | sort); }

# expect_failure REGEX COMMAND...: the command must fail and say what REGEX describes.
expect_failure() {
    local regex=$1 output
    shift
    if output=$("$@" 2>&1); then
        fail "this should have failed: $*"
    fi
    grep -Eq -- "$regex" <<<"$(tr '\n' ' ' <<<"$output" | tr -s ' ')" ||
        fail "no '$regex' in the output of: $*"$'\n'"$output"
}

# configure SOURCE BUILD [ARGUMENT...]: with the generator of the outer build.
configure() {
    local source=$1 binary=$2
    shift 2
    "$HEADWISE_CMAKE" --no-warn-unused-cli -S "$source" -B "$binary" -G "$HEADWISE_GENERATOR" -DCMAKE_CXX_COMPILER="${compilers[0]}" \
        -DHEADWISE_ROOT="$HEADWISE_ROOT" "$@"
}

# build_and_run BUILD PROGRAM
build_and_run() {
    "$HEADWISE_CMAKE" --build "$1"
    "$1/$2"
}

# install_headwise PREFIX: as a packager would, without tests, benchmarks and examples.
install_headwise() {
    configure "$HEADWISE_ROOT" packager -DHEADWISE_BUILD_TESTS=OFF -DHEADWISE_BUILD_BENCHMARKS=OFF \
        -DHEADWISE_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX="$1"
    "$HEADWISE_CMAKE" --install packager
}

# fake_package PREFIX NAME VERSION TARGET: a package of that version that any request accepts and whose
# target adds no include directory.
fake_package() {
    local folder=$1/share/cmake/$2
    mkdir -p "$folder"
    echo "if(NOT TARGET $4)
    add_library($4 INTERFACE IMPORTED)
endif()" >"$folder/$2Config.cmake"
    echo "set(PACKAGE_VERSION $3)
set(PACKAGE_VERSION_COMPATIBLE TRUE)" >"$folder/$2ConfigVersion.cmake"
}
