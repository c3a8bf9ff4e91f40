# SPDX-License-Identifier: Apache-2.0
"""Writes the tiny model's parameters as a GGUF that llama.cpp loads too.

    python3 export_gguf.py BUILD_DIR/tiny.npz tiny.gguf
"""

import pathlib
import struct
import sys

import gguf
import numpy as np

import model


def byte_characters() -> list[str]:
    """The printable stand-in of every byte in GPT-2's byte-level vocabulary."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


class Writer(gguf.GGUFWriter):
    """Writes an empty array too, which gguf refuses and GGUF's readers take."""

    def _pack_val(self, val, vtype, add_vtype, sub_type=None):
        if vtype == gguf.GGUFValueType.ARRAY and not val:
            return struct.pack("<IIQ", vtype, sub_type, 0)
        return super()._pack_val(val, vtype, add_vtype, sub_type)


def add_tokenizer(writer: Writer) -> None:
    """Byte-level BPE without merges: the tokens are the bytes themselves."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(byte_characters() + ["<s>", "</s>"])
    writer.add_token_types([gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * 2)
    writer.add_key_value(gguf.Keys.Tokenizer.MERGES, [], gguf.GGUFValueType.ARRAY,
                         sub_type=gguf.GGUFValueType.STRING)
    writer.add_bos_token_id(model.BOS)
    writer.add_eos_token_id(model.EOS)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)


def write_gguf(path: pathlib.Path, parameters: dict) -> None:
    """Matrices as F16, norms as F32; GGUF keeps a matrix as [output, input]."""
    writer = Writer(path, "llama")
    writer.add_name("headwise tiny model")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_vocab_size(model.VOCABULARY)
    writer.add_context_length(model.CONTEXT)
    writer.add_embedding_length(model.WIDTH)
    writer.add_block_count(model.LAYERS)
    writer.add_feed_forward_length(model.FEED_FORWARD)
    writer.add_head_count(model.QUERY_HEADS)
    writer.add_head_count_kv(model.KV_HEADS)
    writer.add_key_length(model.HEAD_DIM)
    writer.add_value_length(model.HEAD_DIM)
    writer.add_rope_dimension_count(model.HEAD_DIM)
    writer.add_rope_freq_base(model.ROPE_BASE)
    writer.add_layer_norm_rms_eps(model.NORM_EPSILON)
    add_tokenizer(writer)
    for name, value in parameters.items():
        value = np.asarray(value)
        if value.ndim == 2:
            value = (value if name == "token_embd" else value.T).astype(np.float16)
        writer.add_tensor(f"{name}.weight", np.ascontiguousarray(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write_gguf(pathlib.Path(sys.argv[2]), np.load(sys.argv[1]))
