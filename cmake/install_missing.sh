#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install_missing.sh PACKAGE=PROBE...
#
# Installs with apt each package whose probe (a command, or a file when it holds a slash) is absent.
# Does nothing when all are there. Says what it does, and asks for root only when it must.
set -euo pipefail

missing=()
for entry in "$@"; do
    probe=${entry#*=}
    if [[ $probe == */* ]]; then
        [[ -e $probe ]] || missing+=("${entry%%=*}")
    else
        command -v "$probe" >/dev/null || missing+=("${entry%%=*}")
    fi
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    as_root=(sudo)
fi
if ! command -v apt-get >/dev/null; then
    echo "headwise: not found: ${missing[*]}. This is no apt system: install what they hold and run again." >&2
    exit 1
fi
if [[ ${#as_root[@]} -gt 0 ]] && ! command -v sudo >/dev/null; then
    echo "headwise: please run as root: apt-get install ${missing[*]}" >&2
    exit 1
fi
echo "headwise: installing with apt: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
