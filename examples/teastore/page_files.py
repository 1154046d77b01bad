"""The files that pages consist of. Each is an endpoint, served by a worker, so that it is in the model.

Files that need not be there are better given to mup's own server of static files.
"""

from __future__ import annotations

from pictures import FILES

from mup import EP, Communication


class PageFiles:
    """Endpoints for a service with pages."""

    @EP("/images/front.png", method="GET")
    def front_picture(self, comm: Communication) -> None:
        """Send the picture of the front page."""
        send_file(comm, "images/front.png", "image/png")

    @EP("/bootstrap/css/bootstrap.min.css", method="GET")
    def bootstrap_style(self, comm: Communication) -> None:
        """Send what stands for a library's style sheet."""
        send_file(comm, "bootstrap/css/bootstrap.min.css", "text/css; charset=utf-8")

    @EP("/teastore.css", method="GET")
    def style(self, comm: Communication) -> None:
        """Send the store's style sheet."""
        send_file(comm, "teastore.css", "text/css; charset=utf-8")

    @EP("/images/icon.ico", method="GET")
    def icon(self, comm: Communication) -> None:
        """Send the icon of the pages."""
        send_file(comm, "images/icon.ico", "image/x-icon")

    @EP("/bootstrap/js/jquery.min.js", method="GET")
    def jquery(self, comm: Communication) -> None:
        """Send what stands for a library."""
        send_file(comm, "bootstrap/js/jquery.min.js", "text/javascript; charset=utf-8")

    @EP("/bootstrap/js/bootstrap.min.js", method="GET")
    def bootstrap(self, comm: Communication) -> None:
        """Send what stands for a library."""
        send_file(comm, "bootstrap/js/bootstrap.min.js", "text/javascript; charset=utf-8")

    @EP("/resizingscript.js", method="GET")
    def script(self, comm: Communication) -> None:
        """Send the store's script."""
        send_file(comm, "resizingscript.js", "text/javascript; charset=utf-8")


def send_file(comm: Communication, name: str, kind: str) -> None:
    """Answer with a file, read from the disk."""
    try:
        content, status = (FILES / name).read_bytes(), 200
    except FileNotFoundError:
        content, status = b"", 404
    comm.respond(content, status=status, headers={"Content-Type": kind})
