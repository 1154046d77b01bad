"""Backend that finds the faces. The same class is deployed under several names."""

from __future__ import annotations

import base64

from facedetect.files import Upload
from facedetect.images import open_images
from facedetect.pages import respond_page
from mup import EP, MS, Communication


class Backend(MS):
    """A detector of faces."""

    pool_size = 1

    def setup(self) -> None:
        """Get ready for pictures, once per worker."""
        self.images = open_images("MUP_BACKEND_MS", 65)

    @EP("/", name="StartPage", method="GET")
    def start_page(self, comm: Communication) -> None:
        """Say what this is."""
        respond_page(comm, "start.html", service=self.service_name, purpose="detects faces in pictures")

    @EP("/detect/", name="UploadFile", method="POST")
    def upload_file(self, comm: Communication, upload: Upload) -> None:
        """Return where faces are; store the picture with them marked."""
        picture = base64.b64decode(upload.file.base64)
        faces = self.images.faces(picture)
        marked = self.images.marked(picture, faces, [])
        result = {
            "name": f"{self.service_name}-{upload.file.name}",
            "base64": base64.b64encode(marked).decode(),
        }
        comm.call("storage", "/store/", {"file": result, "storage-extraload": upload.extraload}).get()
        comm.respond({"faces": faces, "backend_name": self.service_name})
