#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stability.py FOLDER: how many prompts does a profile need?

Of blueprints FOLDER/<prompts>_<number>.json, made from that many prompts each and no prompt in two
of the same count: how alike two of the same count are, head by head. Markdown on standard output.
"""

import itertools
import json
import pathlib
import statistics
import sys


def ranks(values):
    """Ranks from 1, equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    at = 0
    for _, group in itertools.groupby(order, key=values.__getitem__):
        members = list(group)
        for i in members:
            result[i] = at + (len(members) + 1) / 2
        at += len(members)
    return result


def main():
    kept = {}  # by number of prompts: of each blueprint the share of the rows that each head keeps
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*_*.json")):
        heads = itertools.chain.from_iterable(json.loads(path.read_text())["heads"])
        kept.setdefault(int(path.name.split("_")[0]), []).append([h["resident_fraction"] for h in heads])
    print("| prompts of a profile | pairs of profiles | rank correlation of the rows of the heads | "
          "rows that would be elsewhere |")
    print("|---:|---:|---:|---:|")
    for prompts, plans in sorted(kept.items()):
        pairs = list(itertools.combinations(plans, 2))
        alike = statistics.mean(statistics.correlation(ranks(a), ranks(b)) for a, b in pairs)
        moved = statistics.mean(sum(abs(x - y) for x, y in zip(a, b)) / (sum(a) + sum(b)) for a, b in pairs)
        print(f"| {prompts} | {len(pairs)} | {alike:.3f} | {100 * moved:.1f} % |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
