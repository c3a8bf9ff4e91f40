#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [--quick] [CMAKE_ARGUMENT...]
#
# Builds the benchmarks, runs what the goals are about, prints a table of them, and leaves in
# build/bench: summary.json, length.png and codecs.png, and runs/ with what Google Benchmark wrote.
# --quick: few repetitions, to try it. -DHEADWISE_GGML_DIR=PREFIX says where ggml is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

repetitions=15 min_time=0.1 rounds=4
if [[ ${1:-} == --quick ]]; then
    shift
    repetitions=3 min_time=0.02 rounds=1
fi

bash cmake/install_missing.sh cmake=cmake ninja-build=ninja g++=g++ \
    libbenchmark-dev=/usr/include/benchmark/benchmark.h libeigen3-dev=/usr/include/eigen3/Eigen/Core \
    nlohmann-json3-dev=/usr/include/nlohmann/json.hpp \
    python3-matplotlib=/usr/lib/python3/dist-packages/matplotlib
# The python3 that this package is for comes first.
export PATH=/usr/bin:$PATH

out=build/bench
launcher=()
if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi

# build NAME TARGET CMAKE_ARGUMENT...
build() {
    local name=$1 target=$2
    shift 2
    echo "headwise: building $out/$name"
    cmake -S . -B "$out/$name" -G Ninja --log-level=WARNING -C cmake/presets/release.cmake "${launcher[@]}" \
        -DHEADWISE_WARNINGS_AS_ERRORS=OFF -DHEADWISE_BUILD_TESTS=OFF -DHEADWISE_BUILD_EXAMPLES=OFF "$@"
    cmake --build "$out/$name" --target "$target" --parallel "$(nproc)"
}
build generic all "$@"
build native headwise_attend_bench -DCMAKE_CXX_FLAGS=-march=native "$@"

rm -rf "$out/runs"
mkdir -p "$out/runs"

# measure RUN BUILD PROGRAM FILTER REPETITIONS [ARGUMENT...]: one run of a program, to runs/RUN.json.
measure() {
    local run=$1 build=$2 program=$3 filter=$4 count=$5
    shift 5
    echo "headwise: measuring $run"
    "$out/$build/bench/headwise_$program" --benchmark_filter="$filter" --benchmark_repetitions="$count" \
        --benchmark_min_time="$min_time" --benchmark_out="$out/runs/$run.json" "$@" >"$out/runs/$run.txt" 2>&1 ||
        { cat "$out/runs/$run.txt"; exit 1; }
}
# What is compared runs by turns, in one program, with its rows in memory all the time.
by_turns() {
    measure "$1" generic "$2" "$3" "$repetitions" --benchmark_enable_random_interleaving=true
}

layer='attend/head_dim 128'
for group in 1 2 4 8; do
    by_turns "attend_g$group" attend_bench "$layer, group $group, 8192 tokens/(dense_f32|global|half|stream|in_order)"
done
for length in 512 2048 32768; do
    by_turns "length_$length" attend_bench "$layer, group 4, $length tokens/(dense_f32|(global|half|stream)_f16$)"
done
for length in 2048 8192; do
    by_turns "decode_$length" decode_bench "/$length tokens/"
    if [[ -x $out/generic/bench/headwise_ggml_bench ]]; then
        by_turns "ggml_$length" ggml_bench ", $length tokens/"
    fi
done
by_turns profile profile_bench "/4096 tokens/(16 candidates|stream)"
measure memory generic memory_bench . 1
# Two programs cannot run in one: they take turns.
for ((round = 1; round <= rounds; ++round)); do
    for kind in generic native; do
        measure "${kind}_$round" "$kind" attend_bench "$layer, group (1|4), 8192 tokens/global_(f16|int8)$" 3
    done
done

exec python3 bench/summary.py "$out"
