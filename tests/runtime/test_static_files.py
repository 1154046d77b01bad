"""Are the files of declared folders served, and never another one?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from deployments import ask, make_project, running, wait_for

from mup.errors import DeploymentError
from mup.runtime.static_files import StaticFiles

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
