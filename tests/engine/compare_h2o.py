#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the library's heavy hitters with H2O's rule (arXiv:2306.14048), stated anew in numpy.

usage: python3 compare_h2o.py --tool headwise --probe hitters_probe --model MODEL.gguf --text TEXT

Records the attention maps of one prompt, then decodes it on every KV head with --recent recent
tokens and k heavy hitters behind them, for each k of --rows: the profiler's simulation, a cache
that the attention is shown to, and the rule below must keep the same tokens after every step.

H2O: a query attends to what is kept and to its own token; its probabilities, summed over the query
heads that read the KV head, are added to the tokens' scores; then of the tokens that are not among
the `recent` last ones (the query's own counts) those with the k highest scores stay. What goes
never comes back. Of equals the earlier token stays. So `recent` recent tokens and the next query's
own are a window of recent + 1. Scores are double in the simulation and float in the cache, and so
they are here, each in turn: where two differ in the last bits, the type decides which is higher.

Exit status: 0 the same, 1 not, 77 skipped.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77

try:
    import numpy as np
except ImportError:
    print("skipped: the Python package numpy is absent")
    sys.exit(SKIPPED)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--length", type=int, default=640)
    parser.add_argument("--recent", type=int, default=31)
    parser.add_argument("--rows", type=int, nargs="+", default=[16, 64, 256])
    return parser.parse_args()


def read_maps(path):
    """The recorded maps of one prompt, by KV head: [layers * kv_heads, group, queries, keys]."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    about = header["__metadata__"]
    layers, kv_heads = int(about["layers"]), int(about["kv_heads"])
    maps = []
    for layer in range(layers):
        tensor = header[f"0.{layer}.attention"]
        heads, queries, keys = tensor["shape"]
        begin, end = tensor["data_offsets"]
        weights = np.frombuffer(data[begin:end], dtype="<f4")
        maps.append(weights.reshape(kv_heads, heads // kv_heads, queries, keys))
    return np.concatenate(maps)


def h2o(maps, recent, rows, score_type):
    """maps: [group, queries, keys]. Which keys are kept after each query: [queries, keys]."""
    length = maps.shape[1]
    kept_after = np.zeros((length, length), dtype=np.uint8)
    scores = np.zeros(length, dtype=score_type)
    kept = np.zeros(0, dtype=int)
    for query in range(length):
        kept = np.append(kept, query)
        attention = maps[:, query, kept].astype(np.float64)
        sums = attention.sum(axis=1, keepdims=True)
        # A recorded query may have given nothing to what is left.
        shares = np.divide(attention, sums, out=np.zeros_like(attention), where=sums > 0)
        scores[kept] += shares.astype(score_type).sum(axis=0)
        old, near = kept[kept <= query - recent], kept[kept > query - recent]
        best = old[np.lexsort((old, -scores[old]))][:rows]
        kept = np.append(np.sort(best), near)
        kept_after[query, kept] = 1
    return kept_after


def compare(maps, args, path, rows):
    """The number of steps that were compared, of those where somebody differs, and of full pools."""
    heads, _, length, _ = maps.shape
    probe = subprocess.run([args.probe, path, str(args.recent + 1), str(rows)], check=True,
                           stdout=subprocess.PIPE)
    found = np.frombuffer(probe.stdout, dtype=np.uint8).reshape(heads, 2, length, length)
    expected = np.stack([[h2o(of_head, args.recent, rows, score_type)
                          for score_type in (np.float64, np.float32)] for of_head in maps])
    differ = (found != expected).any(axis=3)  # [heads, 2, length]
    for name, at in (("simulation", 0), ("cache", 1)):
        for head in np.flatnonzero(differ[:, at].any(axis=1)):
            print(f"k = {rows}: head {head}: the {name} keeps other tokens from step "
                  f"{np.flatnonzero(differ[head, at])[0]} on")
    contested = heads * max(0, length - args.recent - rows)
    return heads * length, int(differ.any(axis=1).sum()), contested


def main():
    args = arguments()
    if not os.path.exists(args.model) or not os.path.exists(args.text):
        print(f"skipped: no {args.model} or no {args.text}")
        sys.exit(SKIPPED)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "maps.safetensors")
        subprocess.run([args.tool, "record", "--model", args.model, "--text", args.text, "--out", path,
                        "--prompts", "1", "--length", str(args.length), "--dtype", "f32"], check=True)
        maps = read_maps(path)
        for rows in args.rows:
            steps, differing, contested = compare(maps, args, path, rows)
            print(f"k = {rows}: {steps} steps of {maps.shape[0]} KV heads, {contested} with a full "
                  f"pool; {differing} differ")
            failed = failed or differing > 0 or contested == 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
