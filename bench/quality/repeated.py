#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""repeated.py TEXT OUT [PASSAGES [CHARACTERS]]: passages of a text, each twice in a row.

Attention on them shows which heads look up what stood far back, which plain prose hardly asks for.
"""

import pathlib
import sys


def main(text, out, passages="4", characters="2600"):
    content = pathlib.Path(text).read_text(encoding="utf-8")
    size = int(characters)
    step = len(content) // (int(passages) + 1)
    parts = [content[i * step + step // 2 :][:size] for i in range(int(passages))]
    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    for i, part in enumerate(parts):
        pathlib.Path(out, f"{i}.txt").write_text(part + "\n" + part, encoding="utf-8")


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
