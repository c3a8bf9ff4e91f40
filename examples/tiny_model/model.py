# SPDX-License-Identifier: Apache-2.0
"""The tiny model in JAX: a Llama-style decoder over bytes.

RMSNorm, rotary embedding over neighbouring pairs, grouped queries, SwiGLU,
tied embedding. A token is a byte; BOS and EOS follow the 256 bytes.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attention import attend

LAYERS = 6
WIDTH = 160
QUERY_HEADS = 8
KV_HEADS = 4
HEAD_DIM = 32
FEED_FORWARD = 320
CONTEXT = 1024
ROPE_BASE = 10000.0
NORM_EPSILON = 1e-5
BOS, EOS, VOCABULARY = 256, 257, 258

# A layer's matrices as [input, output].
MATRICES = {
    "attn_q": (WIDTH, QUERY_HEADS * HEAD_DIM),
    "attn_k": (WIDTH, KV_HEADS * HEAD_DIM),
    "attn_v": (WIDTH, KV_HEADS * HEAD_DIM),
    "attn_output": (QUERY_HEADS * HEAD_DIM, WIDTH),
    "ffn_gate": (WIDTH, FEED_FORWARD),
    "ffn_up": (WIDTH, FEED_FORWARD),
    "ffn_down": (FEED_FORWARD, WIDTH),
}


def initial_parameters(seed: int) -> dict:
    """Parameters by their GGUF names, without the suffix `.weight`."""
    random = np.random.default_rng(seed)
    into_residual = 1 / np.sqrt(2 * LAYERS)
    parameters = {
        "token_embd": random.normal(0, 0.02, (VOCABULARY, WIDTH)),
        "output_norm": np.ones(WIDTH),
    }
    for layer in range(LAYERS):
        for name, (rows, columns) in MATRICES.items():
            scale = into_residual if name in ("attn_output", "ffn_down") else 1
            parameters[f"blk.{layer}.{name}"] = random.normal(
                0, scale / np.sqrt(rows), (rows, columns))
        parameters[f"blk.{layer}.attn_norm"] = np.ones(WIDTH)
        parameters[f"blk.{layer}.ffn_norm"] = np.ones(WIDTH)
    return {name: jnp.asarray(value, jnp.float32) for name, value in parameters.items()}


def rms_norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + NORM_EPSILON) * weight


def rotate(x):
    """Rotary embedding of x [batch, position, head * channel]: channels 2i and
    2i + 1 of a head are a pair."""
    frequencies = ROPE_BASE ** (-np.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    angles = np.outer(np.arange(x.shape[1]), frequencies)[:, None, :]
    cosine, sine = np.float32(np.cos(angles)), np.float32(np.sin(angles))
    heads = x.reshape(*x.shape[:2], -1, HEAD_DIM)
    even, odd = heads[..., 0::2], heads[..., 1::2]
    pairs = jnp.stack([even * cosine - odd * sine, even * sine + odd * cosine], -1)
    return pairs.reshape(x.shape)


def projected(parameters, block, x, batch):
    """Queries, scaled, and keys, both rotated, and values
    [batch, position, head * channel]."""
    queries, keys, values = (
        (x @ parameters[f"{block}attn_{part}"]).reshape(batch, len(x) // batch, -1)
        for part in "qkv")
    return rotate(queries) * np.float32(HEAD_DIM ** -0.5), rotate(keys), values


def attention(parameters, block, x, batch):
    mixed = attend(*projected(parameters, block, x, batch), KV_HEADS)
    return mixed.reshape(len(x), -1) @ parameters[block + "attn_output"]


def feed_forward(parameters, block, x):
    gate = jax.nn.silu(x @ parameters[block + "ffn_gate"])
    return (gate * (x @ parameters[block + "ffn_up"])) @ parameters[block + "ffn_down"]


def logits(parameters, tokens):
    """Scores of the token after each of tokens [batch, position], as rows
    [batch * position, vocabulary]."""
    x = parameters["token_embd"][tokens.reshape(-1)]
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        normal = rms_norm(x, parameters[block + "attn_norm"])
        x += attention(parameters, block, normal, len(tokens))
        x += feed_forward(parameters, block, rms_norm(x, parameters[block + "ffn_norm"]))
    return rms_norm(x, parameters["output_norm"]) @ parameters["token_embd"].T


def loss(parameters, tokens):
    """Mean nats a byte over sequences that begin with BOS [batch, 1 + bytes]."""
    scores = jax.nn.log_softmax(logits(parameters, tokens[:, :-1]))
    return -jnp.take_along_axis(scores, tokens[:, 1:].reshape(-1, 1), -1).mean()
