"""Render pages with templates, whose engine costs a known amount of work per page."""

from __future__ import annotations

import os
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from work import work

HTML = {"Content-Type": "text/html; charset=utf-8"}


class Pages:
    """The shop's templates; one per worker.

    The shop this one is modelled on sets up a new template engine for every page, which is most of its work.
    Here the engine is set up once, and `template` does that much work instead: ``MUP_PAGE_MS``
    milliseconds (see `work`).
    """

    def __init__(self) -> None:
        self._engine = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
        )
        self._milliseconds = float(os.environ.get("MUP_PAGE_MS", "10"))

    def template(self, name: str) -> Template:
        """Return a template, ready to be rendered."""
        work(self._milliseconds)
        return self._engine.get_template(name)

    def redirect(self, where: str) -> str:
        """Return a page that leads to another one at once."""
        return self._engine.get_template("redirect.html").render(where=where)
