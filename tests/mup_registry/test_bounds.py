"""The registry forgets what is gone, and bounds what it keeps and sends."""

from __future__ import annotations

import json
import os
import socket
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from registries import ask, entry, start, stop

from mup.errors import did_you_mean
from mup_registry import directory as bounds
from mup_registry.directory import Directory, FullError

pytestmark = pytest.mark.slow


def test_services_without_replicas_are_forgotten() -> None:
    """For some minutes their callers hear that no replica lives, then that they are unknown."""
    directory = Directory(expiry=3.0)
    gone = directory.register(**entry(service="gone"), now=0.0)
    directory.register(**entry(service="silent", url="http://127.0.0.1:2"), now=0.0)
    assert directory.deregister(gone.id, now=1.0)
    last = directory.forget + 1.0
    assert directory.replicas("gone", now=last) == []
    assert directory.replicas("gone", now=last + 0.1) is None
    # Gone since the first question after its expiry.
    assert directory.replicas("silent", now=last + directory.forget) == []
    assert directory.replicas("silent", now=last + directory.forget + 1.0) is None
    assert not directory.services


def test_a_service_that_returns_is_not_forgotten() -> None:
    """Whatever happened before, it counts from when its last replica went."""
    directory = Directory(expiry=3.0)
    first = directory.register(**entry(), now=0.0)
    directory.deregister(first.id, now=1.0)
    second = directory.register(**entry(), now=200.0)
    assert directory.replicas("A", now=200.1) == [second]
    directory.deregister(second.id, now=201.0)
    assert directory.replicas("A", now=500.0) == []
    assert directory.replicas("A", now=502.0) is None


def test_the_dead_give_way_to_the_living(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds are refusals only if what is there lives."""
    monkeypatch.setattr(bounds, "MAX_SERVICES", 3)
    monkeypatch.setattr(bounds, "MAX_ENDPOINT_BYTES", 100)
    directory = Directory(expiry=3.0)

    def register(number: int, now: float, size: int = 1) -> str:
        new = entry(service=f"S{number}", url=f"http://127.0.0.1:{number}", endpoints={"e": "/" + "x" * size})
        return directory.register(**new, now=now).id

    ids = [register(number, 0.0) for number in range(3)]
    with pytest.raises(FullError, match="knows 3 services"):
        register(3, 0.1)
    directory.deregister(ids[1], now=0.2)
    register(3, 0.3)
    assert sorted(directory.services) == ["S0", "S2", "S3"]
    # Their maps are one; another one of this size does not fit beside it, and then it does.
    directory.deregister(ids[0], now=0.4)
    with pytest.raises(FullError, match="endpoints of all live replicas have 100 bytes"):
        register(4, 0.5, size=90)
    assert sorted(directory.services) == ["S2", "S3"]
    register(4, 9.0, size=80)
    assert sorted(directory.services) == ["S4"]


def test_replicas_and_databases_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than so many are refused; those that are there may register again."""
    monkeypatch.setattr(bounds, "MAX_REPLICAS", 2)
    monkeypatch.setattr(bounds, "MAX_DATABASES", 1)
    directory = Directory(expiry=3.0)
    for number in (0, 1, 1):
        directory.register(**entry(replica=number, url=f"http://127.0.0.1:{number}"), now=0.0)
    with pytest.raises(FullError, match="2 live replicas"):
        directory.register(**entry(replica=2, url="http://127.0.0.1:2"), now=1.0)
    directory.register(**entry(replica=2, url="http://127.0.0.1:2"), now=4.0)
    directory.add_database("a", "mongodb://h/a")
    directory.add_database("a", "mongodb://h/b")
    with pytest.raises(FullError, match="1 databases"):
        directory.add_database("b", "mongodb://h/b")


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def pipelined(url: str, names: Iterable[str], first_port: int) -> Counter[int]:
    """Register services, many requests at a time; return how often which status was answered."""
    parts = urlsplit(url)
    requests = []
    for port, name in enumerate(names, first_port):
        body = json.dumps(entry(service=name, url=f"http://127.0.0.1:{port}", endpoints={"e": f"/{name}/"}))
        head = "POST /register HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        requests.append(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    text = b""
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
        for start_of_batch in range(0, len(requests), 100):
            batch = requests[start_of_batch : start_of_batch + 100]
            connection.sendall(b"".join(batch))
            seen = text.count(b"HTTP/1.1 ") + len(batch)
            while text.count(b"HTTP/1.1 ") < seen or not text.endswith(b"}"):
                text += connection.recv(1 << 20)
    return Counter(int(line[:3]) for line in text.split(b"HTTP/1.1 ")[1:])


@pytest.mark.services
def test_twenty_thousand_names() -> None:
    """They cost little memory, no answer grows with them, and the living stay listed."""
    process, url = start("--expiry", "0.3")
    try:
        before = resident_mb(process.pid)
        names = [f"{'x' * 140}{number:06d}" for number in range(20_000)]
        statuses: Counter[int] = Counter()
        for first in range(0, len(names), 500):
            statuses += pipelined(url, names[first : first + 500], first + 1)
        assert statuses.total() == len(names)
        assert set(statuses) <= {200, 507}
        assert statuses[200] >= bounds.MAX_SERVICES
        # It was 97 MB for 20,000 names, and the names stayed.
        assert resident_mb(process.pid) - before < 25.0
        services, after = 0, ""
        while after is not None:
            page = ask(url, f"/services?after={after}")[1]
            services, after = services + len(page["services"]), page["next"]
        assert services <= bounds.MAX_SERVICES
        status, answer = ask(url, f"/replicas?service={'x' * 139}1")
        assert status == 404
        # It was 3.2 MB, which the callee's callers were answered.
        assert len(json.dumps(answer)) < 3000
        assert " more)" in answer["error"]
        time.sleep(0.4)
        assert ask(url, "/register", entry(service="Orders", url="http://127.0.0.1:40000"))[0] == 200
    finally:
        stop(process)


@pytest.mark.services
def test_listings_come_in_pages() -> None:
    """A client that follows ``next`` gets every service once."""
    process, url = start("--expiry", "60")
    try:
        names = [f"S{number:04d}" for number in range(1500)]
        for replica in range(2):
            first = 1 + replica * 2000
            for part in range(0, len(names), 500):
                pipelined(url, names[part : part + 500], first + part)
        found: dict[str, int] = {}
        after, pages = "", 0
        while after is not None:
            page = ask(url, f"/services?after={after}")[1]
            assert not found.keys() & page["services"].keys()
            found |= {name: len(replicas) for name, replicas in page["services"].items()}
            after, pages = page["next"], pages + 1
        assert list(found) == names
        assert pages == 3
    finally:
        stop(process)


def test_remedies_are_bounded() -> None:
    """A remedy lists all names if they are few, else some and their number; it finds the closest of many."""
    few = [f"S{number}" for number in range(20)]
    assert did_you_mean("T", few).count("S") == 20
    many = [f"service-{number}" for number in range(20_000)]
    text = did_you_mean("service-1234x", many)
    assert "did you mean 'service-1234" in text
    assert text.endswith(", and 19990 more)")
    assert len(text) < 400
    assert len(did_you_mean("y", ["x" * 10_000] * 30)) < 2000
    assert did_you_mean("x" * 5000, ["x" * 5001]).startswith("did you mean 'xxx")
