"""Pictures of the store, drawn and written once, with the sizes of the real store's.

The pictures are small drawings, filled up with random bytes (which a PNG file may hold) to the size they
should have: what counts is how much is read and sent. The style sheets and scripts of libraries are replaced
by comments.
"""

from __future__ import annotations

import base64
import fcntl
import os
import random
import struct
import zlib
from pathlib import Path

ASSETS = Path(__file__).parent / "assets"
FILES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mup-teastore"
"""Not beside the source: 30 MB need not be copied with it, and it may be where files cannot be written."""

FIRST_FILE = 513
"""Product p has file p + 513."""
PRODUCT_FILES = 512
MEDIAN, SMALLEST, LARGEST = 42_700, 4_500, 387_000
"""Bytes of base64 text of a product's file."""
ICON_BYTES = 46_800
SHAPE = (128, 128)

PAGE_FILES = {
    "images/front.png": 57_676,
    "bootstrap/css/bootstrap.min.css": 121_200,
    "teastore.css": 4_882,
    "images/icon.ico": 34_494,
    "bootstrap/js/jquery.min.js": 86_659,
    "bootstrap/js/bootstrap.min.js": 37_045,
    "resizingscript.js": 2_484,
}
"""What every page of the store needs, and how many bytes it has; in the order browsers ask for it."""


def write_files() -> None:
    """Write all files, if they are not there yet."""
    done = FILES / "complete"
    FILES.mkdir(parents=True, exist_ok=True)
    # Workers of several services begin at the same time.
    with (FILES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            return
        _write_products()
        _write_page_files()
        done.touch()


def product_file(product: int) -> Path:
    """Return the file with a product's picture, as base64 text."""
    return FILES / "products" / f"{product + FIRST_FILE}.txt"


def _write_products() -> None:
    draw = random.Random("pictures")
    (FILES / "products").mkdir(exist_ok=True)
    for product in range(PRODUCT_FILES):
        size = min(max(int(draw.lognormvariate(0, 0.75) * MEDIAN), SMALLEST), LARGEST)
        cup = (draw.randrange(60, 220), draw.randrange(60, 220), draw.randrange(60, 220))
        text = base64.b64encode(_picture(cup, size * 3 // 4, draw))
        product_file(product).write_bytes(text)


def _write_page_files() -> None:
    draw = random.Random("pages")
    (FILES / "icon.png").write_bytes(_picture((46, 110, 74), ICON_BYTES, draw))
    for name, size in PAGE_FILES.items():
        file = FILES / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".png"):
            file.write_bytes(_picture((160, 60, 40), size, draw))
        elif name.endswith(".ico"):
            file.write_bytes(_icon(_picture((46, 110, 74), size - 22, draw)))
        else:
            file.write_bytes(_script(name, size))


def _script(name: str, size: int) -> bytes:
    """Return a style sheet or script of this size: ours if there is one, else nothing but a comment."""
    ours = ASSETS / name
    text = ours.read_bytes() if ours.exists() else f"/* stands for {Path(name).name} */\n".encode()
    filling = size - len(text) - len(b"/**/")
    return text + b"/*" + b"." * filling + b"*/"


def _icon(png: bytes) -> bytes:
    """Return an ICO file that holds this PNG."""
    width, height = SHAPE
    entry = struct.pack("<BBBBHHII", width, height, 0, 0, 1, 32, len(png), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + png


def _picture(cup: tuple[int, int, int], size: int, draw: random.Random) -> bytes:
    """Return a PNG of this size that shows a cup of this colour."""
    head = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", *SHAPE, 8, 3, 0, 0, 0))
    colours = _chunk(b"PLTE", bytes((*(246, 240, 226), *cup, *(120, 78, 40), *(205, 198, 184))))
    pixels = _chunk(b"IDAT", _CUP)
    end = _chunk(b"IEND", b"")
    filling = size - len(head) - len(colours) - len(pixels) - len(end) - len(_chunk(b"fiLl", b""))
    return head + colours + _chunk(b"fiLl", draw.randbytes(filling)) + pixels + end


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _cup() -> bytes:
    """Return the pixels of a cup of tea on a saucer: 0 ground, 1 cup, 2 tea, 3 saucer."""
    width, height = SHAPE
    rows = []
    for y in range(height):
        row = bytearray(width)
        for x in range(width):
            handle = ((x - 92) / 16) ** 2 + ((y - 62) / 16) ** 2
            if 40 <= y < 96 and abs(x - 58) <= 36 - (max(y - 70, 0) / 6) ** 2:
                row[x] = 2 if y < 48 else 1
            elif 0.5 < handle < 1.0:
                row[x] = 1
            elif ((x - 62) / 56) ** 2 + ((y - 100) / 8) ** 2 < 1:
                row[x] = 3
        rows.append(b"\0" + bytes(row))
    return zlib.compress(b"".join(rows), 9)


_CUP = _cup()
