#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh MODEL.gguf CALIBRATION.txt TEST.txt [OUT]
#
# Does it keep the text? Records the model's attention, and measures every plan and baseline of the
# suites beside this script on the test text, on source code (two modules of python3's library) and
# on made tasks. Leaves in OUT (build/quality) results.json, and of each suite a page and tables
# (text.html, text.md ...). Takes hours on two cores and 20 GB for maps; what a run that broke off
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
    libcli11-dev=/usr/include/CLI/CLI.hpp python3=/usr/bin/python3
# The products of the model are Eigen's, which takes what the compiler may use.
cmake -S . -B build/quality-tool -G Ninja --log-level=WARNING -C cmake/presets/release.cmake \
    -DCMAKE_CXX_FLAGS=-march=native -DHEADWISE_WARNINGS_AS_ERRORS=OFF -DHEADWISE_BUILD_TESTS=OFF \
    -DHEADWISE_BUILD_BENCHMARKS=OFF
cmake --build build/quality-tool --target headwise_cli --parallel "$(nproc)"
home=$PWD/bench/quality
headwise=$PWD/build/quality-tool/examples/headwise

mkdir -p "$out"
cp bench/quality/*.json "$out"
ln -sfn "$model" "$out/model.gguf"
ln -sfn "$calibration" "$out/calibration.txt"
ln -sfn "$test" "$out/test.txt"
library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
ln -sfn "$library/argparse.py" "$out/code_calibration.txt"
ln -sfn "$library/tarfile.py" "$out/code_test.txt"
cd "$out"

# record NAME TEXT OPTION...: again only where model, text or options are others than the last time.
record() {
    local made_from name=$1 text=$2
    shift 2
    made_from=$(sha256sum model.gguf "$text"; echo "$*")
    [[ -e $name && $made_from == "$(cat "made_from/$name" 2>/dev/null)" ]] && return
    rm -rf "$name" "made_from/$name"
    mkdir -p made_from
    "$headwise" record --model model.gguf --text "$text" --out "$name" "$@"
    printf '%s\n' "$made_from" >"made_from/$name"
}
record maps_1024 calibration.txt --prompts 8 --length 1024
record maps_back calibration.txt --prompts 8 --length 1280 --look-back 128
record maps_2048 calibration.txt --prompts 4 --length 2048
record maps_back_2048 calibration.txt --prompts 4 --length 2304 --look-back 128
record maps_code code_calibration.txt --prompts 8 --length 1024

# How alike are profiles of other prompts?
mkdir -p stability
profile() { # NAME PROMPT...
    local name=stability/$1.json maps=()
    shift
    for prompt in "$@"; do maps+=("maps_1024/prompt_000$prompt.safetensors"); done
    "$headwise" profile "${maps[@]}" --budget 50% --out "$name"
}
for i in 0 1 2 3 4 5 6 7; do profile "1_$i" "$i"; done
profile 2_0 0 1; profile 2_1 2 3; profile 2_2 4 5; profile 2_3 6 7
profile 4_0 0 1 2 3; profile 4_1 4 5 6 7
python3 "$home/stability.py" stability | tee stability.md

for suite in text pools fastgen row_types long_range text_2048 domains; do
    "$headwise" eval --suite $suite.json --json results.json --html $suite.html | tee $suite.md
done
