"""Frontend for photographers."""

from __future__ import annotations

import base64

from facedetect.images import open_images
from facedetect.pages import respond_page
from facedetect.wishes import chosen_backend, picture_name, uploaded_picture, upstream_of
from mup import EP, MS, Communication

JPEG = {"Content-Type": "image/jpeg"}
BACKENDS = ("backend0", "backend1")


class Frontend(MS):
    """Fetches pictures from the storage, and has faces detected by one of two backends."""

    pool_size = 1

    def setup(self) -> None:
        """Get ready for pictures, once per worker."""
        self.images = open_images("MUP_FRONTEND_MS", 5)

    @EP("/", name="StartPage")
    def start_page(self, comm: Communication) -> None:
        """Say what this is."""
        purpose = "fetches pictures and has the faces in them detected"
        respond_page(
            comm, "start.html", service=self.service_name, purpose=purpose, links=["/fetch/", "/detect/"]
        )

    @EP("/fetch/", name="GetVal")
    def get_value(self, comm: Communication) -> None:
        """Return a picture of the storage without its colours."""
        try:
            name, upstream = picture_name(comm.params), upstream_of(comm.params)
        except ValueError:
            respond_page(comm, "fetch.html")
            return
        if comm.method != "POST":
            respond_page(comm, "fetch.html")
            return
        wish = {"json": {"file": name}, "storage-extraload": upstream.extraload}
        stored = comm.call("storage", "/fetch/", wish, timeout=upstream.timeout).get()
        if isinstance(stored, dict):
            comm.respond(stored)
            return
        comm.respond(self.images.grey(base64.b64decode(stored)), headers=JPEG)

    @EP("/detect/", name="UploadFile")
    def upload_file(self, comm: Communication) -> None:
        """Return a picture without its colours, with its faces marked."""
        try:
            name, picture = uploaded_picture(comm.params, comm.files)
            upstream = upstream_of(comm.params)
        except ValueError:
            respond_page(comm, "detect.html")
            return
        file = {"name": name, "base64": base64.b64encode(picture).decode()}
        wish = {"file": file, "storage-extraload": upstream.extraload}
        backend = BACKENDS[chosen_backend(comm.params)]
        found = comm.call(backend, "/detect/", wish, timeout=upstream.timeout).get()
        labels = [f"{len(found['faces'])} faces", f"found by {found['backend_name']}"]
        comm.respond(self.images.marked(picture, found["faces"], labels), headers=JPEG)
