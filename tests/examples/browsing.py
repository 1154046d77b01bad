"""Pages that a browser can show: every tag is closed, and everything a page links to exists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser
from urllib.parse import urljoin

from applications import Browser

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
"""Elements without an end tag."""
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "form": "action"}
ELSEWHERE = ("data:", "mailto:", "#")
HTML = ("<!doctype html>", "<!DOCTYPE html>")
MAX_PAGES = 200


class Page(HTMLParser):
    """One page, taken apart.

    Attributes:
        faults: What is wrong with its tags.
        links: What it links to, as it stands there; of forms only those that are sent with GET.
        forms: Where its other forms are sent.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.links: list[str] = []
        self.forms: list[str] = []
        self._open: list[str] = []
        self._ids: set[str] = set()
        self.feed(text)
        self.close()
        if self._open:
            self.faults.append(f"never closed: {', '.join(self._open)}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what is opened and where it leads."""
        found = dict(attrs)
        name = found.get("id")
        if name is not None and name in self._ids:
            self.faults.append(f"two elements {name!r}")
        self._ids.add(name or "")
        target = found.get(LINKS.get(tag, ""))
        if target is not None and not target.startswith(ELSEWHERE):
            sent = tag == "form" and found.get("method", "get") != "get"
            (self.forms if sent else self.links).append(target)
        if tag == "meta" and found.get("http-equiv") == "refresh":
            self.links.append((found["content"] or "").partition("url=")[2])
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close what was opened last."""
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes nothing")


def visit(browser: Browser, *starts: str, without: str = "never") -> dict[str, Page]:
    """Follow all links from some pages on; return the pages, by path, which must come to an end.

    Args:
        browser: Who follows them, with the cookies it has.
        starts: Where to begin.
        without: Links this is a part of are not followed.

    Raises:
        HTTPError: Something that is linked to is not there.
        AssertionError: A page has a fault.
    """
    found: dict[str, Page] = {}
    todo, seen = list(starts), set(starts)
    while todo:
        path = todo.pop()
        content = browser.get_bytes(path)
        # A picture is no page.
        if not content.startswith(tuple(start.encode() for start in HTML)):
            continue
        page = found[path] = Page(content.decode())
        assert page.faults == [], path
        assert len(found) <= MAX_PAGES
        new = unseen((urljoin(path, link) for link in page.links), seen)
        todo += [link for link in new if without not in link]
        seen.update(new)
    return found


def unseen(links: Iterable[str], seen: set[str]) -> list[str]:
    """Return the links that are new; what differs only in a cookie is not."""
    plain = dict.fromkeys(re.sub(r"[?&]cookie=[^&#]*|#.*", "", link) for link in links)
    return [link for link in plain if link not in seen]
