"""``mup docs --serve``: the documentation as web pages, with pictures and a search, for this machine only.

A page has the path of its file, so that the links between pages and to pictures hold as they are.
"""

from __future__ import annotations

from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from markdown_it import MarkdownIt

from mup.cli.help.documentation import Section, all_pages, documentation_folder, search

__all__ = ["server"]

TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json", ".cff": "text/plain"}
"""Kinds of files beside the pages that are served."""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} - mup</title><style>
body {{ font: 16px/1.5 sans-serif; max-width: 56rem; margin: 0 auto; padding: 1rem }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }}
th, td {{ border: 1px solid gray; padding: .2rem .5rem; text-align: left; vertical-align: top }}
pre {{ overflow-x: auto; border: 1px solid gray; padding: .5rem }}
img {{ max-width: 100%; background: white }}
</style></head><body><form action="/"><a href="/">All pages</a>
<input type="search" name="search" aria-label="Search" value="{words}"> <button>Search</button></form>
{body}
</body></html>
"""


def server(port: int = 0) -> ThreadingHTTPServer:
    """Return a web server of the documentation on loopback; port 0 = any free one.

    Raises:
        UsageError: The installation has no documentation.
    """
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, documentation_folder().resolve()))


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, folder: Path, *arguments: object) -> None:
        self._folder = folder
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer with a page, a picture, the list of pages, or what a search finds."""
        url = urlsplit(self.path)
        words = " ".join(parse_qs(url.query).get("search", [])).strip()
        name = unquote(url.path).lstrip("/")
        file = (self._folder / name).resolve() if "\0" not in name else self._folder
        if not name:
            self._page("Search" if words else "Documentation", _found(words) if words else _list(), words)
        elif not file.is_relative_to(self._folder) or not file.is_file():
            where = f"<p><code>{escape(name)}</code> is not part of the installed documentation.</p>"
            self._page("Not found", where, status=404)
        elif file.suffix == ".md":
            self._page(file.stem, _html(file.read_text(encoding="utf-8")))
        elif file.suffix in TYPES:
            self._send(200, TYPES[file.suffix], file.read_bytes())
        else:
            self._send(404, "text/plain", b"not served")

    def _page(self, title: str, body: str, words: str = "", *, status: int = 200) -> None:
        text = PAGE.format(title=escape(title), words=escape(words), body=body)
        self._send(status, "text/html; charset=utf-8", text.encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server calls it
        """Print nothing: the terminal shows the address."""


def _html(text: str) -> str:
    """Return a page of Markdown as HTML, its headings with the names that links use."""
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    for opening, heading in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", Section(heading.content, 1, 1, "").anchor)
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _list() -> str:
    """Return the list of all pages, by kind."""
    body, kind = "", ""
    for page in all_pages():
        folder = page.file.parent.name
        if folder != kind:
            kind = folder
            body += f"<h2>{escape(kind)}</h2>"
        body += f'<div><a href="/{escape(page.name)}.md">{escape(page.title)}</a></div>'
    return f"<h1>Documentation</h1>{body}"


def _found(words: str) -> str:
    """Return the sections that have all words."""
    body = "".join(
        f'<p><a href="/{escape(each.page.name)}.md#{Section(each.heading, 1, 1, "").anchor}">'
        f"{escape(each.page.title)}: {escape(each.heading)}</a><br>{escape(each.text)}</p>"
        for each in search(words)
    )
    return f"<h1>Search</h1>{body or '<p>No section has all of these words.</p>'}"
