#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds the tests three times (Release, address + undefined behaviour
# sanitizers, thread sanitizer) and runs all of them in one ctest, whose summary ends the output.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash cmake/install_missing.sh cmake=cmake ninja-build=ninja g++=g++ libgtest-dev=/usr/include/gtest/gtest.h \
    libbenchmark-dev=/usr/include/benchmark/benchmark.h libcli11-dev=/usr/include/CLI/CLI.hpp \
    libeigen3-dev=/usr/include/eigen3/Eigen/Core nlohmann-json3-dev=/usr/include/nlohmann/json.hpp \
    locales=/usr/share/i18n/locales/de_DE python3-numpy=/usr/lib/python3/dist-packages/numpy \
    python3-jsonschema=/usr/lib/python3/dist-packages/jsonschema
# The python3 that these packages are for comes first.
export PATH=/usr/bin:$PATH

# A locale with a decimal comma, for the case that is about one.
export LOCPATH=$PWD/build/locale
mkdir -p "$LOCPATH"
localedef --no-archive -i de_DE -f UTF-8 "$LOCPATH/de_DE.UTF-8" || echo "headwise: no locale with a decimal comma"

jobs=$(nproc)
launcher=()
if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
# The sanitizers of older compilers do not start under the wide address randomization of newer kernels.
fixed_addresses=()
if setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed_addresses=(setarch "$(uname -m)" -R)
fi

# build NAME CMAKE_ARGUMENT...: configures and builds everything in build/NAME, a dozen files at a time,
# since most of what the tests cost is to compile the same templates again.
build() {
    local name=$1
    shift
    echo "headwise: building build/$name"
    cmake -S . -B "build/$name" -G Ninja --log-level=WARNING -DCMAKE_UNITY_BUILD=ON \
        -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 "${launcher[@]}" "$@"
    "${fixed_addresses[@]}" cmake --build "build/$name" --parallel "$jobs"
}

# -O2, as most of the time goes into compiling; hostile files are replayed under the sanitizers. The adapter
# for llama.cpp is tested where HEADWISE_LLAMA_CPP in the environment says where that is installed.
build tests -C cmake/presets/release.cmake "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" \
    "-DHEADWISE_LLAMA_CPP=${HEADWISE_LLAMA_CPP:-}" \
    "-DHEADWISE_TEST_GROUPS=unit;property;golden;cases;threads;engine;llama_cpp;cli;scripts"
build tests-asan -C cmake/presets/asan.cmake -DHEADWISE_BUILD_EXAMPLES=OFF -DHEADWISE_BUILD_BENCHMARKS=OFF \
    "-DHEADWISE_TEST_GROUPS=unit;property;cases;fuzz;threads"
build tests-tsan -C cmake/presets/tsan.cmake -DHEADWISE_BUILD_EXAMPLES=OFF -DHEADWISE_BUILD_BENCHMARKS=OFF \
    -DHEADWISE_TEST_GROUPS=threads

# One summary for the three.
echo 'subdirs(tests tests-asan tests-tsan)' >build/CTestTestfile.cmake
exec "${fixed_addresses[@]}" ctest --test-dir build --output-on-failure --parallel "$jobs"
