"""Pictures in the size a page wants them in."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import msgspec
from pictures import FILES, product_file, write_files
from work import work

from mup import EP, MS, Communication


class Products(msgspec.Struct):
    """Width and height by id of the product."""

    qry: dict[int, tuple[int, int]]


class WebImages(msgspec.Struct):
    """Width and height by name of the picture."""

    qry: dict[str, tuple[int, int]]


class Image(MS):
    """Scales pictures. What is sent is the picture as it was: the scaling is there for its work."""

    pool_size = 1
    port = 9120

    def setup(self) -> None:
        """Have the files written, and read how much work a megapixel is, once per worker."""
        write_files()
        self.milliseconds = float(os.environ.get("MUP_MEGAPIXEL_MS", "12"))

    @EP("/getProductImages/", method="POST")
    def get_product_images(self, comm: Communication, wanted: Products) -> None:
        """Return pictures of products, as base64 text, by the id of the product."""
        answer = {}
        for product, size in wanted.qry.items():
            text = product_file(product).read_text(encoding="ascii")
            self.scale(size)
            answer[product] = text
        comm.respond(answer)

    @EP("/GetWebImages/", method="POST")
    def get_web_images(self, comm: Communication, wanted: WebImages) -> None:
        """Return pictures of the pages themselves, as base64 text, by name."""
        answer = {}
        for name, size in wanted.qry.items():
            content = (FILES / f"{Path(name).name}.png").read_bytes()
            self.scale(size)
            answer[name] = base64.b64encode(content).decode("ascii")
        comm.respond(answer)

    def scale(self, size: tuple[int, int]) -> None:
        """Do as much work as scaling a picture to this size."""
        width, height = size
        work(self.milliseconds * width * height / 1e6)
