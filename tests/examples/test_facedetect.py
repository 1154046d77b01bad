"""The FaceDetect example: its pictures, what its services do, its sizes, and photographers on real services."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from applications import Browser
from browsing import visit
from example_systems import (
    EXAMPLES,
    Steps,
    analysed,
    committed_model,
    drive,
    example,
    executed,
    fetch,
    lacking,
)

from analyzer.static import Application
from mup import MS
from mup.lqn.model import Model
from mup.lqn.statistics import Size, statistics
from mup.runtime.deployment.launcher import Deployment
from mup.testing import TestClient

sys.path.insert(0, str(EXAMPLES / "facedetect"))

from facedetect import data
from facedetect.backend import Backend
from facedetect.frontend import Frontend
from facedetect.storage import Storage

LITTLE_WORK = {"MUP_WORK": "wait", "MUP_FRONTEND_MS": "0", "MUP_BACKEND_MS": "0", "MUP_STORAGE_MS": "0"}
NAME = "img_3454.jpg"
PICTURE = (EXAMPLES / "facedetect" / "pictures" / NAME).read_bytes()
UPLOAD = {"name": NAME, "base64": base64.b64encode(PICTURE).decode()}
DONE_BY_PHOTOGRAPHERS: dict[str, set[Steps]] = {
    "frontend/fetch/": {("storage/fetch/",)},
    "frontend/detect/": {("backend0/detect/",), ("backend1/detect/",)},
    "backend0/detect/": {("storage/store/",)},
    "backend1/detect/": {("storage/store/",)},
    "storage/fetch/": {("pictures.pictureByName",)},
    "storage/store/": {()},
}


ClientOf = Callable[[type[MS]], TestClient]


@pytest.fixture
def client_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientOf]:
    """Run the endpoints of a service in this process, with stubs for all others."""
    for name, value in LITTLE_WORK.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        yield lambda service: stack.enter_context(TestClient(service))


@pytest.mark.parametrize("service", [Frontend, Backend, Storage])
def test_start_pages(client_of: ClientOf, service: type[MS]) -> None:
    """Every service says what it is."""
    answer = client_of(service).get("/")
    assert answer.status == 200
    assert "This service" in answer.body


def test_pictures_are_fetched(client_of: ClientOf) -> None:
    """What the storage has is sent as a picture; the storage has a second less than the frontend."""
    client = client_of(Frontend)
    client.stub("storage", "/fetch/", UPLOAD["base64"])
    answer = client.post("/fetch/", {"imgfile": NAME, "upstream-timeout": 3, "storage-extraload": 2})
    assert (answer.headers["content-type"], answer.content) == ("image/jpeg", PICTURE)
    assert client.calls[0].params == {"json": {"file": NAME}, "storage-extraload": 2}


def test_an_empty_storage_is_passed_on(client_of: ClientOf) -> None:
    """It answers that there is nothing."""
    client = client_of(Frontend)
    client.stub("storage", "/fetch/", {"exists": False})
    assert client.post("/fetch/", {"imgfile": NAME}).body == {"exists": False}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"imgfile": "picture.gif"},
        {"imgfile": NAME, "upstream-timeout": "soon"},
        {"imgfile": NAME, "upstream-timeout": 1},
        {"imgfile": NAME, "storage-extraload": -1},
    ],
    ids=str,
)
def test_who_asks_wrongly_gets_a_form(client_of: ClientOf, params: dict[str, Any]) -> None:
    """Missing and odd parameters."""
    answer = client_of(Frontend).post("/fetch/", params)
    assert answer.status == 200
    assert 'name="imgfile"' in answer.body


@pytest.mark.parametrize("upload", [None, "text", {"name": "x"}, {"name": "x", "base64": "!"}], ids=str)
def test_who_uploads_nothing_gets_a_form(client_of: ClientOf, upload: Any) -> None:
    """No picture, no detection."""
    answer = client_of(Frontend).post("/detect/", {"imgfile": upload})
    assert 'id="upload"' in answer.body


@pytest.mark.parametrize(("weights", "backend"), [("1, 0", "backend0"), ("0, 1", "backend1")])
def test_weights_choose_the_backend(client_of: ClientOf, weights: str, backend: str) -> None:
    """All weight on one."""
    client = client_of(Frontend)
    client.stub(backend, "/detect/", {"faces": [], "backend_name": backend})
    answer = client.post("/detect/", {"imgfile": UPLOAD, "lb-weights": weights})
    assert answer.content == PICTURE
    assert client.calls[0].params["file"] == UPLOAD


def test_a_form_without_a_file(client_of: ClientOf) -> None:
    """Browsers send a file without name and content; it is no picture."""
    client = client_of(Frontend)
    answer = client.request("POST", "/detect/", form={"lb-weights": "0, 1"}, files={"imgfile": ("", b"")})
    assert 'id="upload"' in answer.body
    assert client.calls == []


def test_a_form_uploads_a_file(client_of: ClientOf) -> None:
    """A browser sends the picture as a file; the backend gets it as every other one."""
    client = client_of(Frontend)
    client.stub("backend1", "/detect/", {"faces": [], "backend_name": "backend1"})
    form = {"lb-weights": "0, 1", "upstream-timeout": "3"}
    answer = client.request("POST", "/detect/", form=form, files={"imgfile": (NAME, PICTURE)})
    assert (answer.headers["content-type"], answer.content) == ("image/jpeg", PICTURE)
    assert client.calls[0].params["file"] == UPLOAD


@pytest.mark.parametrize("weights", ["", "1", "1, 2, 3", "a, b", "0, 0", "1, -1"])
def test_odd_weights_are_equal_ones(client_of: ClientOf, weights: str) -> None:
    """Both backends get some of forty requests."""
    client = client_of(Frontend)
    for name in ("backend0", "backend1"):
        client.stub(name, "/detect/", {"faces": [], "backend_name": name})
    for _ in range(40):
        client.post("/detect/", {"imgfile": UPLOAD, "lb-weights": weights})
    assert {call.dest for call in client.calls} == {"backend0", "backend1"}


def test_an_unknown_picture_is_another_one(client_of: ClientOf) -> None:
    """The storage gives what it has; extra pictures are read first."""
    client = client_of(Storage)
    asked = []
    client.stub_query("pictures", "pictureByName", [])
    client.stub_query("pictures", "randomPicture", lambda *query: asked.append(query) or [{"base64": "text"}])
    answer = client.post("/fetch/", {"json": {"file": "unknown.jpg"}, "storage-extraload": 3})
    assert answer.body == "text"
    assert len(asked) == 4


def test_faces_are_found_for_real(client_of: ClientOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """With OpenCV, the two people in the picture are found, and marked in a grey picture."""
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
    monkeypatch.setenv("MUP_WORK", "cpu")
    detector = client_of(Backend)
    detector.stub("storage", "/store/", {})
    found = detector.post("/detect/", {"file": UPLOAD}).body
    assert len(found["faces"]) == 2
    frontend = client_of(Frontend)
    frontend.stub("backend0", "/detect/", found)
    marked = frontend.post("/detect/", {"imgfile": UPLOAD, "lb-weights": "1, 0"}).content
    import numpy as np

    decoded = cv2.imdecode(np.frombuffer(marked, np.uint8), cv2.IMREAD_UNCHANGED)
    assert decoded.shape == (480, 640)
    left, top, width, _ = found["faces"][0]
    assert decoded[top, left + width // 2] > 200


@pytest.fixture(scope="module")
def application() -> Application:
    return analysed("facedetect")


@pytest.fixture(scope="module")
def model(application: Application) -> Model:
    return committed_model("facedetect", application)


def test_analysis_finds_every_path(application: Application) -> None:
    """Both backends, though the source has one call; the loop over extra pictures stands in its path."""
    stored = ("pictures.randomPicture", "pictures.pictureByName")
    any_picture = (*stored, "pictures.randomPicture")
    assert lacking(application, {**DONE_BY_PHOTOGRAPHERS, "storage/fetch/": {stored, any_picture}}) == {}
    pages = (
        *("frontend/fetch/", "frontend/detect/"),
        *(f"{name}/" for name in ("frontend", "backend0", "backend1", "storage")),
    )
    assert lacking(application, {page: {()} for page in pages}) == {}


def test_the_model_has_the_stated_sizes(model: Model) -> None:
    """All seven numbers, counted as in the thesis's Table 3."""
    sizes = statistics(model)
    assert sizes.table3 == Size(6, 11, 28, 16, 6, 48, 7)
    assert sizes.correct_arcs == 58


@pytest.fixture(scope="module")
def embedded_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of some cycles on the embedded database."""
    folder = tmp_path_factory.mktemp("log")
    project = example("facedetect", LITTLE_WORK)
    with Deployment(project, log_dir=folder) as deployment:
        drive(deployment, project, seconds=1)
    return folder


@pytest.mark.slow
@pytest.mark.services
def test_photographers_do_what_is_stated(embedded_log: Path) -> None:
    """Six endpoints, and only the upload takes two paths."""
    assert executed(embedded_log) == DONE_BY_PHOTOGRAPHERS


@pytest.mark.slow
@pytest.mark.services
def test_a_picture_on_a_real_mongodb(mongod: Any) -> None:
    """It comes out as it went in, also when the storage has to read others first."""
    project = example("facedetect", LITTLE_WORK).with_database_uri("pictures", mongod.uri)
    with Deployment(project) as deployment:
        wish = {"imgfile": NAME, "upstream-timeout": 30, "storage-extraload": 2}
        assert fetch(deployment, "frontend", "POST", "/fetch/", wish).content == PICTURE
        unknown = {**wish, "imgfile": "unknown.jpg"}
        other = fetch(deployment, "frontend", "POST", "/fetch/", unknown).content
        assert base64.b64encode(other).decode() in {picture["base64"] for picture in data.pictures()}
        upload = {"imgfile": UPLOAD, "upstream-timeout": 30}
        assert fetch(deployment, "frontend", "POST", "/detect/", upload).content == PICTURE


@pytest.fixture(scope="module")
def running() -> Iterator[Deployment]:
    """The services, on the embedded database."""
    with Deployment(example("facedetect", LITTLE_WORK)) as deployment:
        yield deployment


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("service", ["frontend", "backend0", "backend1", "storage"])
def test_browsers_show_every_page(running: Deployment, service: str) -> None:
    """All tags are closed, all links lead somewhere; a browser may send the forms there."""
    pages = visit(Browser(running, service), "/")
    assert set(pages) == ({"/", "/fetch/", "/detect/"} if service == "frontend" else {"/"})
