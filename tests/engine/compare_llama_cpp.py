#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the small engine with llama.cpp (llama-cpp-python) on one GGUF file and one text.

usage: python3 compare_llama_cpp.py --probe BUILD/engine_probe --model MODEL.gguf --text TEXT

1. Token ids of the whole text, without a beginning-of-sequence token: must be equal.
2. Perplexity over the first --tokens ids in windows of --window. Both sides: each window starts
   with an empty cache and nothing in front of it, and every token of it but the first is scored;
   perplexity = exp(mean of -log p over all scored tokens). Must agree within --tolerance.
3. Greedy continuations of ten prompts by llama.cpp, --continue tokens each. The engine is fed
   llama.cpp's own continuation, so that one different choice does not hide the positions behind it.
   Where the two choose differently, the gap between the two candidates must be a near-tie
   (--near-tie logits) on both sides.

llama.cpp multiplies with activations rounded to 8 bits where weights are quantised, so that its own
logits of one position differ by some tenths between a prompt and a decode; the engine computes in
float. That is what the tolerances are for: on an F32 copy of SmolLM2 the two chose the same token
at all 640 positions, on the Q4_1 file at 622. Exit status: 0 agreed, 1 not, 77 skipped.
"""
import argparse
import json
import math
import os
import subprocess
import sys

PROMPTS = [
    "Once upon a time",
    "The capital of France is",
    "In 1969, the first men",
    "Water boils at a temperature of",
    "def fibonacci(n):",
    "The three most important rules of writing are",
    "She opened the door and saw",
    "A triangle has three sides and",
    "My favourite season is autumn, because",
    "The history of the Roman Empire begins",
]
SKIPPED = 77


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probe", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--codec", default="f16", choices=["f32", "f16", "bf16"])
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--window", type=int, default=1024)
    parser.add_argument("--continue", dest="continuation", type=int, default=64)
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--near-tie", type=float, default=0.4)
    return parser.parse_args()


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def probe(options, *command, sequences=None):
    given = None if sequences is None else json.dumps({"sequences": sequences})
    run = subprocess.run([options.probe, *command], input=given, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"engine_probe failed: {run.stderr.strip()}")
    return json.loads(run.stdout)


class Peer:
    """llama.cpp, one sequence at a time, with the logits of every position."""

    def __init__(self, path, window):
        self.numpy = __import__("numpy")
        llama_cpp = __import__("llama_cpp")
        # More threads wait for each other by spinning, which a busy machine punishes.
        self.model = llama_cpp.Llama(path, n_ctx=window, n_threads=1, n_threads_batch=1,
                                     logits_all=True, verbose=False)

    def tokenize(self, text):
        return self.model.tokenize(text, add_bos=False, special=False)

    def logits(self, ids):
        self.model.reset()
        self.model.eval(ids)
        return self.model.scores[: len(ids)].astype("float64")

    def greedy(self, ids, count):
        self.model.reset()
        self.model.eval(ids)
        produced = []
        for _ in range(count):
            produced.append(int(self.model.scores[self.model.n_tokens - 1].argmax()))
            self.model.eval(produced[-1:])
        return produced

    def nll(self, ids):
        numpy = self.numpy
        logits = self.logits(ids)[:-1]
        top = logits.max(axis=1)
        log_sum = top + numpy.log(numpy.exp(logits - top[:, None]).sum(axis=1))
        return list(log_sum - logits[numpy.arange(len(ids) - 1), ids[1:]])


def perplexity(nll):
    return math.exp(sum(nll) / len(nll))


def compare_tokens(options, peer):
    with open(options.text, "rb") as file:
        expected = peer.tokenize(file.read())
    got = probe(options, "tokens", options.model, options.text)["ids"]
    differing = next((i for i, pair in enumerate(zip(got, expected)) if pair[0] != pair[1]), None)
    agreed = got == expected
    where = "" if agreed else f", first difference at index {differing}"
    print(f"token ids: {len(got)} here, {len(expected)} in llama.cpp: "
          f"{'equal' if agreed else 'DIFFERENT' + where}")
    return agreed, expected


def compare_perplexity(options, peer, ids):
    windows = [ids[i:i + options.window] for i in range(0, options.tokens, options.window)]
    scored = probe(options, "score", options.model, options.codec, sequences=windows)["sequences"]
    here = perplexity([x for window in scored for x in window["nll"]])
    there = perplexity([x for window in windows for x in peer.nll(window)])
    difference = here / there - 1
    print(f"perplexity over {sum(map(len, windows))} tokens in windows of {options.window}: "
          f"{here:.4f} here ({options.codec} cache), {there:.4f} in llama.cpp, "
          f"{100 * difference:+.3f} %")
    return abs(difference) <= options.tolerance


def compare_greedy(options, peer):
    prompts = [peer.tokenize(prompt.encode()) for prompt in PROMPTS]
    whole = [prompt + peer.greedy(prompt, options.continuation) for prompt in prompts]
    scored = probe(options, "score", options.model, options.codec, sequences=whole)["sequences"]
    positions = differing = 0
    agreed = True
    for text, prompt, ids, result in zip(PROMPTS, prompts, whole, scored):
        logits = peer.logits(ids)
        for i in range(len(prompt) - 1, len(ids) - 1):
            positions += 1
            if result["best"][i] == ids[i + 1]:
                continue
            differing += 1
            here = result["behind"][i]
            there = logits[i][ids[i + 1]] - logits[i][result["best"][i]]
            near_tie = max(here, there) <= options.near_tie
            agreed = agreed and near_tie
            print(f"  {text!r}, token {i + 1 - len(prompt)}: {result['best'][i]} here, {ids[i + 1]} "
                  f"in llama.cpp; gap {here:.3f} here, {there:.3f} there"
                  f"{'' if near_tie else ': NO NEAR-TIE'}")
    print(f"greedy: the same choice at {positions - differing} of {positions} positions of "
          f"{len(PROMPTS)} prompts")
    return agreed


def main():
    options = arguments()
    for path in (options.model, options.text):
        if not os.path.exists(path):
            skip(f"{path} is absent")
    try:
        peer = Peer(options.model, options.window)
    except ImportError:
        skip("the Python package llama-cpp-python is absent")
    same_tokens, ids = compare_tokens(options, peer)
    same_perplexity = compare_perplexity(options, peer, ids)
    same_choices = compare_greedy(options, peer)
    sys.exit(0 if same_tokens and same_perplexity and same_choices else 1)


main()
