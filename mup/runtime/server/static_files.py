"""Find the file of a path in declared folders, and in no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mup.errors import DeploymentError
from mup.runtime.server.file_response import FileSender
from mup.runtime.server.http_request import HttpRequest
from mup.service import RESERVED

__all__ = ["StaticFiles"]

_INDEX = "index.html"


class StaticFiles:
    """The declared folders of one service.

    Args:
        folders: Folder of each path prefix, relative to ``source``.
        source: Source folder of the project.
        where: Who declares them, for messages.

    Raises:
        DeploymentError: A prefix or a folder cannot be used.
    """

    def __init__(self, folders: Mapping[str, str], source: Path, where: str) -> None:
        self._sender = FileSender()
        self._roots: list[tuple[str, Path]] = []
        for prefix, folder in folders.items():
            if not isinstance(prefix, str) or not prefix.startswith("/") or not prefix.endswith("/"):
                raise DeploymentError(
                    f"static: a path must start and end with '/', got {prefix!r}", where=where
                )
            if any(prefix.startswith(reserved) for reserved in RESERVED):
                raise DeploymentError(f"static: path {prefix!r} is reserved", where=where)
            root = (source / folder).resolve()
            if not root.is_dir():
                raise DeploymentError(f"static: no folder {folder!r} in {source}", where=where)
            self._roots.append((prefix, root))
        # The longest prefix is the most specific one.
        self._roots.sort(key=lambda item: -len(item[0]))

    def send(self, request: HttpRequest, path: str) -> bool:
        """Answer a request with a file; False = there is none, and nothing is answered.

        Args:
            request: ``GET`` or ``HEAD``.
            path: As received, decoded.
        """
        file = self.find(path)
        return file is not None and self._sender.send(request, file)

    def covers(self, path: str) -> bool:
        """Whether a path is below one of the prefixes."""
        return any(path.startswith(prefix) for prefix, _ in self._roots)

    def find(self, path: str) -> Path | None:
        """Return the file a decoded path means; a folder's is its ``index.html``."""
        for prefix, root in self._roots:
            if path.startswith(prefix):
                names = path[len(prefix) :].split("/")
                if not names[-1]:
                    names[-1] = _INDEX
                # Nothing hidden, nothing above, and no name that means something else to the file system.
                if any(not name or name[0] == "." or "\\" in name or "\0" in name for name in names):
                    return None
                try:
                    file = root.joinpath(*names).resolve(strict=True)
                except (OSError, RuntimeError, ValueError):
                    return None  # no such file, links in a circle, a name that is none
                # A link may lead out of the folder: what it leads to counts.
                return file if file.is_relative_to(root) and file.is_file() else None
        return None
