#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh Debian or Ubuntu to a measured blueprint: installs what is missing, builds the tool,
# records a model's attention on one text, profiles it, and measures the blueprint on another text.
#
#   bash examples/quickstart.sh                      the small model that comes along
#   bash examples/quickstart.sh --model FILE.gguf    a Llama-architecture model of your own
#
# Leaves build/quickstart/{maps/, blueprint.json, summary.json, report.html}.
set -euo pipefail
start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
usage: bash examples/quickstart.sh [options]
  --model FILE.gguf     model (default: the one in examples/tiny_model)
  --text FILE           text to profile on (default: examples/tiny_model/profile.txt)
  --eval-text FILE      text to measure on (default: examples/tiny_model/heldout.txt)
  --target SHARE        attention that each head must keep (default: 0.95)
  --prompts N           prompts to record (default: 8)
  --length N            tokens of each prompt (default: 512)
  --tokens N            tokens to measure on, in windows of 1024 (default: 8192)
  --curve               measure further targets too, for the curve in the report
END
}

model=examples/tiny_model/tiny.gguf
text=examples/tiny_model/profile.txt
eval_text=examples/tiny_model/heldout.txt
target=0.95
prompts=8
length=512
window=1024
tokens=8192
curve=()

# Files are named as seen from where the script was started.
from_start() {
    [[ $1 == /* ]] && printf '%s' "$1" || printf '%s/%s' "$start" "$1"
}

while [[ $# -gt 0 ]]; do
    case $1 in
        --curve)
            curve=(0.80 0.90 0.98 0.99)
            shift
            continue
            ;;
        -h | --help)
            usage
            exit 0
            ;;
    esac
    if [[ $# -lt 2 ]]; then
        echo "quickstart: $1 needs a value" >&2
        usage >&2
        exit 2
    fi
    case $1 in
        --model) model=$(from_start "$2") ;;
        --text) text=$(from_start "$2") ;;
        --eval-text) eval_text=$(from_start "$2") ;;
        --target) target=$2 ;;
        --prompts) prompts=$2 ;;
        --length) length=$2 ;;
        --tokens) tokens=$2 ;;
        *)
            echo "quickstart: there is no option $1" >&2
            usage >&2
            exit 2
            ;;
    esac
    shift 2
done
for file in "$model" "$text" "$eval_text"; do
    if [[ ! -f $file ]]; then
        echo "quickstart: there is no file $file" >&2
        exit 1
    fi
done

step() {
    printf '\n== %s\n' "$1"
}

step "1/5 build"
bash cmake/install_missing.sh cmake=cmake ninja-build=ninja g++=g++ libcli11-dev=/usr/include/CLI/CLI.hpp \
    libeigen3-dev=/usr/include/eigen3/Eigen/Core nlohmann-json3-dev=/usr/include/nlohmann/json.hpp
build=build/quickstart-build
launcher=()
if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEADWISE_BUILD_TESTS=OFF \
    -DHEADWISE_BUILD_BENCHMARKS=OFF -DHEADWISE_WARNINGS_AS_ERRORS=OFF --log-level=WARNING "${launcher[@]}"
cmake --build "$build" --target headwise_cli --parallel "$(nproc)"
headwise=$build/examples/headwise

out=build/quickstart
rm -rf "$out"
mkdir -p "$out"

step "2/5 record what every head looks at: $model on $text"
"$headwise" record --model "$model" --text "$text" --prompts "$prompts" --length "$length" --out "$out/maps"

step "3/5 profile: the cheapest class for each head that keeps $target of its attention"
further=()
others=()
for other in "${curve[@]}"; do
    further+=(--also "$other")
done
"$headwise" profile "$out/maps" --target "$target" "${further[@]}" --out "$out/blueprint.json"
for other in "$out"/blueprint_*.json; do
    if [[ -f $other ]]; then
        others+=("$other")
    fi
done

step "4/5 measure on a text that the profile did not see: $eval_text"
"$headwise" eval --model "$model" --text "$eval_text" --windows-of "$window" --tokens "$tokens" \
    --blueprint "$out/blueprint.json" "${others[@]}" --json "$out/summary.json"

step "5/5 report"
"$headwise" inspect "$out/blueprint.json" --maps "$out/maps" --eval "$out/summary.json" --html "$out/report.html"

echo
echo "Open $PWD/$out/report.html in a browser; the figures are in $out/summary.json."
