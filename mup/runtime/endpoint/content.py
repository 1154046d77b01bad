"""Path and query parameters of a request, and its body as JSON, form or upload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from mup.communication import UploadedFile

__all__ = ["FORMS", "BadRequestError", "Content"]

FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
"""Media types of forms."""

_decode = msgspec.json.Decoder().decode

MAX_PARTS = 1000
"""Fields a form may have: a body full of separators must not become a million objects."""


class BadRequestError(Exception):
    """What the client sent cannot be used.

    Attributes:
        field: Which part of it, e.g. ``items[2].price``; "" if it is about the whole.
        status: Of the response: 400, or 415 if the body is of a kind that is not read here.
    """

    def __init__(self, message: str, field: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.field = field
        self.status = status


class Content:
    """The parts of one request, decoded when they are asked for.

    Args:
        path_values: Values of the path's parameters.
        query: Query string, undecoded.
        content_type: Of the body.
        body: As received.
        header: Returns another header of the body by its name, "" if there is none.

    Raises:
        BadRequestError: The query string has too many parameters.
    """

    __slots__ = ("_decoded", "_files", "_form", "_header", "body", "content_type", "path_values", "query")

    def __init__(
        self,
        path_values: Mapping[str, str],
        query: str,
        content_type: str,
        body: bytes,
        header: Callable[[bytes], str] = lambda _name: "",
    ) -> None:
        self._header = header
        self.path_values = path_values
        self.query = _pairs(query, "query string") if query else []
        self.content_type = content_type
        self.body = body
        self._decoded = False
        self._form: list[tuple[str, str]] = []
        self._files: dict[str, list[UploadedFile]] = {}

    @property
    def kind(self) -> str:
        """Media type of the body, e.g. ``text/html``."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def is_json(self) -> bool:
        """Whether the body claims to be JSON."""
        if self.content_type == "application/json":
            return True
        kind = self.kind
        return kind == "application/json" or kind.endswith("+json")

    def check_encoding(self) -> None:
        """Be sure that the body can be decoded.

        Raises:
            BadRequestError: It is compressed.
        """
        encoding = self._header(b"content-encoding")
        if encoding and encoding.strip().lower() != "identity":
            raise BadRequestError(f"the body must be sent as it is, not encoded as {encoding!r}", status=415)

    def json(self) -> Any:
        """Return the JSON value of the body.

        Raises:
            BadRequestError: It is none.
        """
        self.check_encoding()
        try:
            return _decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequestError(f"the body is not JSON: {error}") from error

    def form(self) -> list[tuple[str, str]]:
        """Return the fields of a form in order; none if the body is no form.

        Raises:
            BadRequestError: The body is not the form it claims to be.
        """
        self._decode_form()
        return self._form

    def files(self) -> Mapping[str, Sequence[UploadedFile]]:
        """Return the uploaded files by field.

        Raises:
            BadRequestError: The body is not the form it claims to be.
        """
        self._decode_form()
        return self._files

    def params(self) -> dict[str, Any]:
        """Return query string, JSON object or form, and path, merged; the later of these win.

        Raises:
            BadRequestError: The body is not what its content type says.
        """
        params: dict[str, Any] = dict(self.query) if self.query else {}
        if self.body:
            if self.is_json:
                decoded = self.json()
                if isinstance(decoded, dict):
                    params.update(decoded)
            else:
                params.update(self.form())
        if self.path_values:
            params.update(self.path_values)
        return params

    def _decode_form(self) -> None:
        if self._decoded:
            return
        self._decoded = True
        kind = self.kind
        if kind in FORMS:
            self.check_encoding()
        if kind == "application/x-www-form-urlencoded":
            try:
                text = self.body.decode()
            except UnicodeDecodeError as error:
                raise BadRequestError(f"the body is no form: {error}") from error
            self._form = _pairs(text, "body")
        elif kind == "multipart/form-data":
            # Imported here: few services take uploads.
            from mup.runtime.endpoint.multipart import parse  # noqa: PLC0415

            try:
                self._form, self._files = parse(self.content_type, self.body, MAX_PARTS)
            except ValueError as error:
                raise BadRequestError(f"the body is no form: {error}") from error


def _pairs(text: str, where: str) -> list[tuple[str, str]]:
    if "%" not in text and "+" not in text and text.count("&") < MAX_PARTS:
        # Nothing is encoded. What `parse_qsl` does, then, in a quarter of its time.
        split = [part.partition("=") for part in text.split("&") if part]
        return [(name, value) for name, _, value in split]
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_PARTS)
    except ValueError as error:
        raise BadRequestError(f"the {where} is no form: {error}") from error
