"""The files of declared folders are served, and never another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployments import ask, make_project, running, wait_for
from http_servers import App, Reply, Running, serving

from mup.errors import DeploymentError
from mup.runtime.server.http_request import HttpRequest
from mup.runtime.server.static_files import StaticFiles

LETTERS = "abcdefgh" * 1_000_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source folder with assets, and what must not be seen."""
    source = tmp_path / "src"
    (source / "assets" / "deep").mkdir(parents=True)
    (source / "assets" / "app.js").write_text("let a")
    (source / "assets" / "index.html").write_text("<h1>home</h1>")
    (source / "assets" / "deep" / "a b.css").write_text("b {}")
    (source / "assets" / ".env").write_text("secret")
    (source / "assets" / "big.txt").write_text(LETTERS)
    (source / "secret.txt").write_text("secret")
    (source / "assets2").mkdir()
    (source / "assets2" / "x.txt").write_text("secret")
    (source / "assets" / "inside.js").symlink_to(source / "assets" / "app.js")
    (source / "assets" / "out.txt").symlink_to(source / "secret.txt")
    (source / "assets" / "up").symlink_to(source)
    (source / "assets" / "circle").symlink_to(source / "assets" / "circle")
    os.mkfifo(source / "assets" / "pipe")
    return source


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("/s/app.js", "assets/app.js"),
        ("/s/", "assets/index.html"),
        ("/s/deep/a b.css", "assets/deep/a b.css"),
        ("/s/inside.js", "assets/app.js"),
        ("/s/x/x.txt", "assets2/x.txt"),
    ],
)
def test_files_are_found(source: Path, path: str, file: str) -> None:
    """In the folder of the longest prefix; a folder's file is its index."""
    assert StaticFiles({"/s/": "assets", "/s/x/": "assets2"}, source, "").find(path) == source / file


@pytest.mark.parametrize(
    "path",
    [
        "/s",
        "/s/nothing",
        "/s/deep",
        "/s/deep/",
        "/s/../secret.txt",
        "/s/deep/../../secret.txt",
        "/s/..\\secret.txt",
        "/s//etc/passwd",
        "/s/.env",
        "/s/./app.js",
        "/s/out.txt",
        "/s/up/secret.txt",
        "/s/up/assets2/x.txt",
        "/s/circle",
        "/s/pipe",
        "/s/app.js\0.png",
        "/s/app.js/",
        "/s/" + "a" * 5000,
    ],
)
def test_everything_else_is_not(source: Path, path: str) -> None:
    """Above the folder, hidden, behind a link that leads out, or no file."""
    assert StaticFiles({"/s/": "assets"}, source, "").find(path) is None


@pytest.mark.parametrize(
    "folders", [{"s/": "assets"}, {"/s": "assets"}, {"/mup/x/": "assets"}, {"/s/": "no"}]
)
def test_declarations_that_cannot_be_used(source: Path, folders: dict[str, str]) -> None:
    """A service with one does not start."""
    with pytest.raises(DeploymentError, match="static"):
        StaticFiles(folders, source, "")


class Site(App):
    """Answers with files only."""

    def __init__(self, files: StaticFiles) -> None:
        super().__init__()
        self.files = files

    def handle(self, request: HttpRequest) -> None:
        if not self.files.send(request, request.path):
            request.respond(404)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A file of ten bytes, last changed at a known time; one with compressed companions; a large one."""
    folder = tmp_path_factory.mktemp("site")
    for name, content in {
        "ten.txt": b"0123456789",
        "empty": b"",
        "page.html": b"plain",
        "page.html.gz": b"gzip",
        "page.html.br": b"brotli",
        "data.tar.gz": b"x",
        "big.bin": bytes(range(256)) * 4096,
    }.items():
        (folder / name).write_bytes(content)
    os.utime(folder / "ten.txt", ns=(0, 1_000_000_000_500_000_000))
    (folder / "ten.txt.gz").symlink_to(folder / "page.html")
    with serving(app=Site(StaticFiles({"/": "."}, folder, ""))) as running:
        yield running


CHANGED, EARLIER, LATER = (f"Sun, 09 Sep 2001 {clock} GMT" for clock in ("01:46:40", "01:46:39", "01:46:41"))
TAG = '"de0b6b3c5316500-a"'


@pytest.mark.parametrize(
    ("headers", "status", "body"),
    [
        ({}, 200, b"0123456789"),
        ({"If-None-Match": TAG}, 304, b""),
        ({"If-None-Match": f'"x", W/{TAG}'}, 304, b""),
        ({"If-None-Match": "*"}, 304, b""),
        ({"If-None-Match": '"x"', "If-Modified-Since": CHANGED}, 200, b"0123456789"),
        ({"If-Modified-Since": CHANGED}, 304, b""),
        ({"If-Modified-Since": EARLIER}, 200, b"0123456789"),
        ({"If-Modified-Since": "yesterday"}, 200, b"0123456789"),
        ({"If-Match": TAG}, 200, b"0123456789"),
        ({"If-Match": f"W/{TAG}"}, 412, b""),
        ({"If-Unmodified-Since": CHANGED}, 200, b"0123456789"),
        ({"If-Unmodified-Since": EARLIER}, 412, b""),
        ({"Range": "bytes=2-4"}, 206, b"234"),
        ({"Range": "bytes=8-"}, 206, b"89"),
        ({"Range": "bytes=8-99"}, 206, b"89"),
        ({"Range": "bytes=-3"}, 206, b"789"),
        ({"Range": "bytes=-99"}, 206, b"0123456789"),
        ({"Range": "bytes=10-"}, 416, b""),
        ({"Range": "bytes=-0"}, 416, b""),
        ({"Range": "bytes=4-2"}, 200, b"0123456789"),
        ({"Range": "bytes=-"}, 200, b"0123456789"),
        ({"Range": "bytes=0-1,3-4"}, 200, b"0123456789"),
        ({"Range": f"bytes=0-{'9' * 5000}"}, 200, b"0123456789"),
        ({"Range": "lines=0-1"}, 200, b"0123456789"),
        ({"Range": "bytes=0-1", "If-Range": TAG}, 206, b"01"),
        ({"Range": "bytes=0-1", "If-Range": '"x"'}, 200, b"0123456789"),
        ({"Range": "bytes=0-1", "If-Range": CHANGED}, 206, b"01"),
        ({"Range": "bytes=0-1", "If-Range": LATER}, 200, b"0123456789"),
        ({"Accept-Encoding": "gzip"}, 200, b"0123456789"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_copies_and_parts(site: Running, headers: dict[str, str], status: int, body: bytes) -> None:
    """What is sent depends on what the client has, and wants; a link beside a file is not its companion."""
    answer = fetch(site, "/ten.txt", **headers)
    assert (answer.status, answer.body) == (status, body)
    assert (answer.headers["etag"], answer.headers["last-modified"]) == (TAG, CHANGED)
    begin = b"0123456789".find(body)
    ranges = {206: f"bytes {begin}-{begin + len(body) - 1}/10", 416: "bytes */10"}
    assert answer.headers.get("content-range") == ranges.get(status)


def fetch(site: Running, path: str, method: str = "GET", **headers: str) -> Reply:
    """Ask for a file."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    (answer,) = site.exchange("\r\n".join(lines).encode())
    return answer


@pytest.mark.parametrize(
    ("accepted", "body", "coding"),
    [
        ("", b"plain", None),
        ("gzip, deflate", b"gzip", "gzip"),
        ("gzip;q=0.5, br;q=1", b"brotli", "br"),
        ("br;q=0, gzip", b"gzip", "gzip"),
        ("identity", b"plain", None),
    ],
)
def test_compressed_files(site: Running, accepted: str, body: bytes, coding: str | None) -> None:
    """They are sent to who accepts them; caches learn that it depends."""
    answer = fetch(site, "/page.html", **{"Accept-Encoding": accepted})
    assert (answer.body, answer.headers.get("content-encoding")) == (body, coding)
    assert (answer.headers["vary"], answer.headers["content-type"]) == ("Accept-Encoding", "text/html")


def test_files_of_other_sizes_and_kinds(site: Running) -> None:
    """Empty ones, large ones and parts of them, and archives, which are no encoding of anything."""
    assert fetch(site, "/empty").body == b""
    assert fetch(site, "/big.bin").body == bytes(range(256)) * 4096
    assert fetch(site, "/big.bin", Range="bytes=1-700000").body == (bytes(range(256)) * 4096)[1:700_001]
    archive = fetch(site, "/data.tar.gz")
    assert (archive.headers["content-type"], "content-encoding" in archive.headers) == (
        "application/gzip",
        False,
    )


SERVICE = """
import os
from mup import EP, MS

class Site(MS):
    static = {"/": "assets"}

    @EP("/api")
    def api(self, comm):
        comm.respond("api")

    @EP("/die")
    def die(self, comm):
        os._exit(3)
"""


@pytest.mark.slow
@pytest.mark.services
def test_the_front_serves_them(source: Path) -> None:
    """Endpoints and mup's own paths win; copies are checked, parts are sent, encoded dots lead nowhere."""
    with running(make_project(source, SERVICE, "Site")) as system:
        url = system.url("Site")
        assert [ask(url, path).raw for path in ("/", "/api")] == [b"<h1>home</h1>", b"api"]
        assert ask(url, "/healthz").body == {"status": "ok"}
        script = ask(url, "/app.js")
        assert script.headers["content-type"].partition(";")[0].endswith("/javascript")
        assert script.headers["x-content-type-options"] == "nosniff"
        assert "last-modified" in script.headers
        again = ask(url, "/app.js", if_none_match=script.headers["etag"])
        assert (again.status, again.raw) == (304, b"")
        assert ask(url, "/big.txt").raw == LETTERS.encode()
        part = ask(url, "/big.txt", range="bytes=8-11")
        assert (part.status, part.raw) == (206, b"abcd")
        head = ask(url, "/big.txt", method="HEAD")
        assert (head.raw, head.headers["content-length"]) == (b"", str(len(LETTERS)))
        refused = ask(url, "/app.js", b"x")
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
        for path in ("/%2e%2e/secret.txt", "/..%2fsecret.txt", "/../secret.txt", "/out.txt", "/.env"):
            answer = ask(url, path)
            assert answer.status == 404
            assert b"secret\n" not in answer.raw
        # Sending files uses threads; a worker forked afterwards must work all the same.
        assert ask(url, "/die").status == 502
        wait_for(lambda: ask(url, "/readyz").status == 200)
        assert ask(url, "/api").raw == b"api"
