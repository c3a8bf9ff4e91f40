#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh MODEL.gguf CALIBRATION.txt TEST.txt [OUT]
#
# Does it keep the text? Records the model's attention on the calibration text, and measures every
# plan and baseline of text.json on the test text and on made tasks. Leaves in OUT (build/quality):
# maps/, results.json, report.html and tables.md. Takes hours on two cores; what a run that broke off
# has found is not run again. examples/llama/fetch_smollm2.sh fetches the model of README.md.
set -euo pipefail
start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ $# -lt 3 || $# -gt 4 ]]; then
    echo "usage: bash bench/quality/run.sh MODEL.gguf CALIBRATION.txt TEST.txt [OUT]" >&2
    exit 2
fi
# Files are named as seen from where the script was started.
from_start() {
    [[ $1 == /* ]] && printf '%s' "$1" || printf '%s/%s' "$start" "$1"
}
model=$(from_start "$1") calibration=$(from_start "$2") test=$(from_start "$3")
out=$(from_start "${4:-$PWD/build/quality}")

bash cmake/install_missing.sh cmake=cmake ninja-build=ninja g++=g++ \
    libeigen3-dev=/usr/include/eigen3/Eigen/Core nlohmann-json3-dev=/usr/include/nlohmann/json.hpp \
    libcli11-dev=/usr/include/CLI/CLI.hpp
# The products of the model are Eigen's, which takes what the compiler may use.
cmake -S . -B build/quality-tool -G Ninja --log-level=WARNING -C cmake/presets/release.cmake \
    -DCMAKE_CXX_FLAGS=-march=native -DHEADWISE_WARNINGS_AS_ERRORS=OFF -DHEADWISE_BUILD_TESTS=OFF \
    -DHEADWISE_BUILD_BENCHMARKS=OFF
cmake --build build/quality-tool --target headwise_cli --parallel "$(nproc)"
headwise=build/quality-tool/examples/headwise

mkdir -p "$out"
[[ -d $out/maps ]] ||
    "$headwise" record --model "$model" --text "$calibration" --prompts 8 --length 1024 --out "$out/maps"
ln -sfn "$model" "$out/model.gguf"
ln -sfn "$test" "$out/test.txt"
cp bench/quality/text.json "$out/suite.json"
"$headwise" eval --suite "$out/text.json" --json "$out/results.json" --html "$out/report.html" |
    tee "$out/tables.md"
