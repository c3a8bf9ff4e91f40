# SPDX-License-Identifier: Apache-2.0
"""Trains the tiny model on a CPU and exports it as GGUF.

    python3 fetch_text.py BUILD_DIR
    python3 train.py BUILD_DIR --minutes 90

The schedule follows the clock: the rate warms up over 100 steps and falls to
zero along a cosine when the minutes are over. The last 45 % train at the full
context. The checkpoint, tiny.npz, and tiny.gguf are renewed in BUILD_DIR.
"""

import argparse
import functools
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import model
from export_gguf import write_gguf

STEP_TOKENS = 2048
SHORT, SHORT_SHARE = 256, 0.55
MATRIX_RATE, VECTOR_RATE, WARMUP_STEPS = 0.02, 3e-3, 100
MOMENTUM, BETAS = 0.95, (0.9, 0.99)
REPORT_STEPS, CHECKPOINT_SECONDS = 100, 600


def orthogonal(matrix):
    """About the nearest matrix whose singular values are 1: five steps of
    Newton and Schulz's iteration with Muon's coefficients."""
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x /= jnp.linalg.norm(x) + 1e-7
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x if wide else x.T


@functools.partial(jax.jit, donate_argnums=(0, 1, 2))
def train_step(parameters, first, second, tokens, rate, step):
    """One step: Muon for the layers' matrices, Adam for the embedding and norms."""
    value, gradient = jax.value_and_grad(model.loss)(parameters, tokens)
    for name, g in gradient.items():
        if name.startswith("blk") and g.ndim == 2:
            first[name] = MOMENTUM * first[name] + g
            update = orthogonal(g + MOMENTUM * first[name])
            update *= MATRIX_RATE * max(1, g.shape[1] / g.shape[0]) ** 0.5
        else:
            first[name] = BETAS[0] * first[name] + (1 - BETAS[0]) * g
            second[name] = BETAS[1] * second[name] + (1 - BETAS[1]) * g * g
            scale = jnp.sqrt(second[name] / (1 - BETAS[1] ** step)) + 1e-9
            update = VECTOR_RATE * first[name] / (1 - BETAS[0] ** step) / scale
        parameters[name] -= rate * update
    return parameters, first, second, value


def sample_batch(random, text, length):
    """STEP_TOKENS of text from random places, each sequence behind a BOS."""
    starts = random.integers(0, len(text) - length, STEP_TOKENS // length)
    sequences = text[starts[:, None] + np.arange(length)].astype(np.int32)
    return np.pad(sequences, ((0, 0), (1, 0)), constant_values=model.BOS)


def held_out_loss(parameters, text):
    """Nats a byte over 32 equally spaced windows of the full context."""
    starts = np.linspace(0, len(text) - model.CONTEXT, 32).astype(int)
    windows = text[starts[:, None] + np.arange(model.CONTEXT)].astype(np.int32)
    windows = np.pad(windows, ((0, 0), (1, 0)), constant_values=model.BOS)
    return float(np.mean([batch_loss(parameters, part) for part in np.split(windows, 8)]))


batch_loss = jax.jit(model.loss)


def save(build, parameters):
    np.savez(build / "tiny.npz", **parameters)
    write_gguf(build / "tiny.gguf", parameters)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--minutes", type=float, default=90)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()

    text, held_out = (np.frombuffer((options.build / name).read_bytes(), np.uint8)
                      for name in ("train.txt", "valid.txt"))
    random = np.random.default_rng(options.seed)
    parameters = model.initial_parameters(options.seed)
    first, second = (jax.tree.map(jnp.zeros_like, parameters) for _ in range(2))
    print(f"{sum(p.size for p in parameters.values())} parameters", flush=True)

    begin = saved = time.monotonic()
    step, losses = 0, []
    while (share := (time.monotonic() - begin) / (60 * options.minutes)) < 1:
        step += 1
        rate = min(1, step / WARMUP_STEPS) * (1 + np.cos(np.pi * share)) / 2
        length = SHORT if share < SHORT_SHARE else model.CONTEXT
        parameters, first, second, value = train_step(
            parameters, first, second, sample_batch(random, text, length), rate, step)
        losses.append(float(value))
        if step % REPORT_STEPS == 0:
            print(f"step {step} tokens {step * STEP_TOKENS} context {length} rate {rate:.3f} "
                  f"loss {np.mean(losses):.4f} share {share:.3f}", flush=True)
            losses.clear()
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            saved = time.monotonic()
            save(options.build, parameters)
            print(f"step {step} held-out loss {held_out_loss(parameters, held_out):.4f}",
                  flush=True)

    save(options.build, parameters)
    print(f"step {step} tokens {step * STEP_TOKENS} "
          f"held-out loss {held_out_loss(parameters, held_out):.4f}")


if __name__ == "__main__":
    main()
