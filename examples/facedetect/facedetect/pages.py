"""Pages for users: small ones, from templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from mup import Communication

TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True
)
HTML = {"Content-Type": "text/html; charset=utf-8"}


def respond_page(comm: Communication, template: str, **values: Any) -> None:
    """Answer with a page."""
    comm.respond(TEMPLATES.get_template(template).render(values), headers=HTML)
