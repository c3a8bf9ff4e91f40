# SPDX-License-Identifier: Apache-2.0
"""Fetches the training text: Jane Austen's six novels, from a Debian package.

    python3 fetch_text.py BUILD_DIR

Writes BUILD_DIR/train.txt and BUILD_DIR/valid.txt (the last 6 % of every
novel, never trained on), and renews profile.txt and heldout.txt beside this
script: equal excerpts of every novel's training part and of its held-out end.
"""

import pathlib
import struct
import subprocess
import sys
import zlib

PACKAGE = "r-cran-janeaustenr"
DATA = "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"
HELD_OUT = 0.06
PROFILE_BYTES = 64 * 1024
HELDOUT_BYTES = 48 * 1024


def unpack_package(build: pathlib.Path) -> pathlib.Path:
    """Downloads the package unless a copy lies in `build`, and unpacks it."""
    if not list(build.glob(f"{PACKAGE}_*.deb")):
        subprocess.run(["apt-get", "download", PACKAGE], cwd=build, check=True)
    package = next(build.glob(f"{PACKAGE}_*.deb"))
    subprocess.run(["dpkg", "-x", package.name, "package"], cwd=build, check=True)
    return build / "package" / DATA


def r_objects(database: bytes):
    """The serialised objects of an R lazy-load database, each a zlib block
    behind its inflated length (4 bytes, big-endian)."""
    at = 0
    while at < len(database):
        block = zlib.decompressobj()
        yield block.decompress(database[at + 4:])
        at = len(database) - len(block.unused_data)


def r_strings(data: bytes) -> list[str]:
    """The elements of a serialised R character vector (XDR, version 3)."""
    encoding_length, = struct.unpack_from(">i", data, 14)
    at = 18 + encoding_length
    kind, count = struct.unpack_from(">ii", data, at)
    if data[:2] != b"X\n" or kind & 0xFF != 16:
        raise ValueError("not an R character vector")
    at += 8
    strings = []
    for _ in range(count):
        length, = struct.unpack_from(">i", data, at + 4)
        strings.append(data[at + 8:at + 8 + length].decode("utf-8"))
        at += 8 + length
    return strings


def novel_text(lines: list[str]) -> bytes:
    return ("\n".join(line.rstrip() for line in lines).strip() + "\n").encode()


def whole_lines(text: bytes, begin: int, size: int) -> bytes:
    """About `size` bytes of `text` from `begin` on, from line start to line end."""
    first = text.index(b"\n", begin) + 1
    return text[first:text.rindex(b"\n", first, first + size) + 1]


def main() -> None:
    build = pathlib.Path(sys.argv[1])
    build.mkdir(parents=True, exist_ok=True)
    here = pathlib.Path(__file__).parent
    database = unpack_package(build).read_bytes()
    novels = [novel_text(r_strings(data)) for data in r_objects(database)]

    train, valid, profile, heldout = [], [], [], []
    for novel in novels:
        cut = novel.index(b"\n", int(len(novel) * (1 - HELD_OUT))) + 1
        train.append(novel[:cut])
        valid.append(novel[cut:])
        profile.append(whole_lines(novel, cut // 2, PROFILE_BYTES // len(novels)))
        heldout.append(whole_lines(novel, cut, HELDOUT_BYTES // len(novels)))

    for path, parts in ((build / "train.txt", train), (build / "valid.txt", valid),
                        (here / "profile.txt", profile), (here / "heldout.txt", heldout)):
        path.write_bytes(b"".join(parts))
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
