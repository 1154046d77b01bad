"""Photographers: fetch a picture, look at it, have its faces detected, look again."""

from __future__ import annotations

import base64

from mup import Client, Communication

PICTURE = "img_3454.jpg"
SHARE_OF_BACKEND_0 = 0.5
THINK_ABOUT_PICTURE = 3.75
THINK_ABOUT_FACES = 0.525
PATIENCE = 30.0
"""Seconds to wait for an answer: a model knows no timeouts."""


class Photographer(Client):
    """One photographer."""

    async def scenario(self, comm: Communication) -> None:
        """Do it once."""
        patience = {"upstream-timeout": PATIENCE, "storage-extraload": 0}
        picture = await comm.call("frontend", "/fetch/", {"imgfile": PICTURE, **patience})
        await self.think(THINK_ABOUT_PICTURE, "exponential")
        upload = {
            "imgfile": {"name": PICTURE, "base64": base64.b64encode(picture).decode()},
            "lb-weights": f"{SHARE_OF_BACKEND_0}, {1 - SHARE_OF_BACKEND_0}",
            **patience,
        }
        await comm.call("frontend", "/detect/", upload)
        await self.think(THINK_ABOUT_FACES, "exponential")
