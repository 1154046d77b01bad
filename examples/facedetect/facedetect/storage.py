"""Storage of pictures: as base64 text, by the name of their file."""

from __future__ import annotations

import os
import time
from pathlib import PurePath

import msgspec

from facedetect.files import Upload
from facedetect.pages import respond_page
from mup import EP, MS, Communication

RANDOM_PICTURE = {"$command": "aggregate", "pipeline": [{"$sample": {"size": 1}}]}


class Wish(msgspec.Struct):
    """What a client wants."""

    file: str


class Storage(MS):
    """A slow store."""

    pool_size = 1

    def setup(self) -> None:
        """Read how slow it is, once per worker."""
        self.seconds = float(os.environ.get("MUP_STORAGE_MS", "30")) / 1000

    @EP("/", name="StartPage", method="GET")
    def start_page(self, comm: Communication) -> None:
        """Say what this is."""
        respond_page(comm, "start.html", service=self.service_name, purpose="stores pictures")

    @EP("/fetch/", name="StorageGet", method="POST")
    def storage_get(self, comm: Communication) -> None:
        """Return a picture; any, if there is none of this name."""
        wish = msgspec.convert(comm.params["json"], Wish)
        time.sleep(self.seconds)
        for _ in range(int(comm.params.get("storage-extraload", 0))):
            comm.query("pictures", "randomPicture", "pictures", RANDOM_PICTURE).get()
        found = comm.query("pictures", "pictureByName", "pictures", {"_id": PurePath(wish.file).stem}).get()
        if not found:
            found = comm.query("pictures", "randomPicture", "pictures", RANDOM_PICTURE).get()
        if found:
            comm.respond(found[0]["base64"])
        else:
            comm.respond({"exists": False})

    @EP("/store/", name="StorageSet", method="POST")
    def storage_set(self, comm: Communication, upload: Upload) -> None:
        """Take a picture, and forget it."""
        time.sleep(self.seconds)
        comm.respond({"stored": upload.file.name})
