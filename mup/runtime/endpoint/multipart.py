"""Split a ``multipart/form-data`` body by its boundary; heads of parts by the standard library.

The body is in memory as a whole, limited by the front, so no streaming parser is needed.
"""

from __future__ import annotations

from email.message import Message
from email.parser import HeaderParser

from mup.communication import UploadedFile

__all__ = ["parse"]

_LONGEST_HEAD = 16384
"""Bytes before the contents of a part: its name, file name and type."""


def parse(
    content_type: str, body: bytes, most: int
) -> tuple[list[tuple[str, str]], dict[str, list[UploadedFile]]]:
    """Return the fields of a form, and its files by field.

    Args:
        content_type: Of the request; names the boundary.
        body: The whole of it.
        most: Parts it may have.

    Raises:
        ValueError: It is not what the content type says.
    """
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_param("boundary")
    if not isinstance(boundary, str) or not 1 <= len(boundary) <= 200 or not boundary.isascii():
        raise ValueError("Content-Type names no boundary")
    # Every boundary but the first stands at the start of a line, and that line break belongs to it.
    separator = b"\r\n--" + boundary.encode()
    pieces = (b"\r\n" + body).split(separator, most + 2)
    if len(pieces) > most + 2:
        raise ValueError(f"it has more than {most} parts")
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise ValueError("it does not end with its boundary")
    fields: list[tuple[str, str]] = []
    files: dict[str, list[UploadedFile]] = {}
    for piece in pieces[1:-1]:
        # The white space a boundary line may end with, and its line break.
        line, found, rest = piece.partition(b"\r\n")
        head, gap, content = (b"\r\n" + rest).partition(b"\r\n\r\n")
        if not found or line.strip(b" \t") or not gap or len(head) > _LONGEST_HEAD:
            raise ValueError("a part has no head")
        # Browsers send names as UTF-8, which the parser for bytes takes for damage.
        part = HeaderParser().parsestr(head.strip().decode("utf-8", "replace"))
        name = part.get_param("name", header="content-disposition")
        if part.get_content_disposition() != "form-data" or not isinstance(name, str):
            raise ValueError("a part has no name")
        filename = part.get_filename()
        if filename is None:
            fields.append((name, content.decode()))
        else:
            kind = str(part.get("content-type", "application/octet-stream"))
            # Browsers may send a whole path, and what is used as a file name must not lead elsewhere.
            base = filename.replace("\\", "/").rpartition("/")[2].replace("\0", "")
            files.setdefault(name, []).append(UploadedFile(base, kind, content))
    return fields, files
