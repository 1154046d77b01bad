"""Neither a web page nor a false registration can mislead callers through a registry."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from registries import ROOT, ask, entry, registry

from mup.addresses import allowance
from mup.runtime.protocol.origin import KnownHosts
from mup_registry.directory import Directory, TakenError
from mup_registry.reach import Reach

JSON = {"Content-Type": "application/json"}
EVIL = "evil.example"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A registry on loopback without a token."""
    with registry() as url:
        yield url


def send(url: str, method: str, path: str, data: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
    """Send exactly these headers, as a browser would."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, None if data is None else json.dumps(data), named)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


REQUESTS = [
    ("POST", "/register", entry(service="Orders", url="http://127.0.0.1:6666")),
    ("POST", "/databases", {"name": "db", "uri": "mongodb://127.0.0.1:6666/db"}),
    ("DELETE", "/databases", {"name": "db"}),
    ("POST", "/deregister", {"id": "x"}),
    ("POST", "/heartbeat", {"id": "x"}),
]


@pytest.mark.services
@pytest.mark.parametrize(("method", "path", "data"), REQUESTS)
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_only_json_changes_anything(url: str, method: str, path: str, data: Any, kind: str) -> None:
    """What a page can send without asking, a "simple request", is refused whatever else it says."""
    status, answer = send(url, method, path, data, **({"Content_Type": kind} if kind else {}))
    assert status == 415
    assert "application/json" in answer["error"]
    assert "Orders" not in send(url, "GET", "/services")[1]["services"]


@pytest.mark.services
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Origin": f"http://{EVIL}"}, id="origin"),
        pytest.param({"Origin": "null"}, id="sandboxed-page"),
        pytest.param({"Origin": "http://localhost:3000"}, id="other-port"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="cross-site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, id="same-site"),
        pytest.param({"Host": EVIL}, id="rebound"),
        pytest.param({"Host": f"{EVIL}:9099", "Origin": f"http://{EVIL}:9099", "Sec-Fetch-Site": "same-origin"}, id="rebound-page"),
        pytest.param({"Host": "203.0.113.7:9099"}, id="foreign-address"),
        pytest.param({"Host": "127.0.0.1.evil.example"}, id="looks-like-ours"),
        pytest.param({"Host": "0.0.0.0:9099"}, id="any-address"),
    ],
)  # fmt: skip
def test_pages_of_strangers_are_refused(url: str, headers: dict[str, str]) -> None:
    """Reading and writing; the health check alone is for all."""
    named = {name.replace("-", "_"): value for name, value in headers.items()}
    for method, path, data in [*REQUESTS, ("GET", "/services", None), ("GET", "/mup/metrics", None)]:
        status, answer = send(url, method, path, data, Content_Type="application/json", **named)
        assert status == 403, path
        assert "web pages" in answer["error"] or "not known as" in answer["error"]
    assert send(url, "GET", "/healthz", **named)[0] == 200


@pytest.mark.services
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "127.1.2.3", "[::1]:9099"])
def test_programs_and_own_pages_are_served(url: str, host: str) -> None:
    """Every name of loopback is a name of the registry; a page of its own is not a stranger's."""
    assert send(url, "GET", "/services", Host=host)[0] == 200
    own = {"Origin": f"http://{host}", "Sec_Fetch_Site": "same-origin"}
    assert send(url, "GET", "/services", Host=host, **own)[0] == 200
    assert send(url, "GET", "/services", Host=host, Sec_Fetch_Site="none")[0] == 200


@pytest.mark.slow
@pytest.mark.services
def test_other_names_are_options() -> None:
    """A registry is called by the names it is given, and by that of its machine if others reach it."""
    with registry("--name", "shop.internal") as url:
        assert send(url, "GET", "/services", Host="shop.internal:9099")[0] == 200
        assert send(url, "GET", "/services", Host="internal")[0] == 403
    with registry("--host", "0.0.0.0", MUP_REGISTRY_TOKEN="t") as url:
        for host, status in ((socket.gethostname(), 200), ("192.0.2.1:9099", 200), (EVIL, 403)):
            assert send(url, "GET", "/services", Host=host, Authorization="Bearer t")[0] == status, host


ODD = [
    "http://169.254.169.254",
    "http://169.254.169.254:80/",
    "http://2852039166",  # the same, as a number
    "http://0xa9fea9fe",
    "http://[::ffff:169.254.169.254]:80",
    "http://[64:ff9b::a9fe:a9fe]:80",
    "http://[fe80::1]:80",
    "http://[fe80::1%25eth0]:80",
    "http://[fd00:ec2::254]",
    "http://100.100.100.200",
    "http://metadata.google.internal",
    "http://0.0.0.0:1",
    "http://[::]:1",
    "http://224.0.0.1:1",
    "http://[ff02::1]:1",
    "http://255.255.255.255:1",
    "http://240.0.0.1:1",
]


@pytest.mark.services
@pytest.mark.parametrize("address", ODD)
def test_odd_addresses_are_not_registered(url: str, address: str) -> None:
    """Neither as replicas, also with a registry for others, nor as databases."""
    status, answer = ask(url, "/register", entry(url=address))
    assert status == 400
    assert "allow" in answer["error"]
    host = urlsplit(address).netloc
    status, answer = ask(url, "/databases", {"name": "d", "uri": f"mongodb://127.0.0.1:1,{host}/d"})
    assert status == 400
    assert "allow" in answer["error"]
    assert Reach(KnownHosts("0.0.0.0"), (), local=False).problem(urlsplit(address).hostname or "")


@pytest.mark.slow
@pytest.mark.services
def test_a_registry_on_loopback_is_for_its_machine() -> None:
    """It lists replicas at addresses of this machine only, unless others are allowed."""
    far = ("http://203.0.113.7:1", "http://shop.example:1", "http://10.255.255.254:1")
    with registry() as url:
        assert [ask(url, "/register", entry(url=u))[0] for u in far] == [400] * 3
        for near in ("http://127.0.0.1:1", "http://localhost:2", "http://[::1]:3", "http://127.9.9.9:4"):
            assert ask(url, "/register", entry(url=near))[0] == 200, near
    allow = ("--allow", "203.0.113.0/24", "--allow", "shop.example", "--allow", "169.254.169.254")
    with registry(*allow) as url:
        assert [ask(url, "/register", entry(url=u))[0] for u in far] == [200, 200, 400]
        assert ask(url, "/register", entry(url="http://169.254.169.254:1"))[0] == 200


def test_what_can_be_allowed() -> None:
    """Networks, addresses and names."""
    assert [str(allowance(text)) for text in ("10.0.0.0/8", "10.1.2.3", "fe80::1%eth0", "Shop.Example.")] == [
        "10.0.0.0/8",
        "10.1.2.3/32",
        "fe80::1/128",
        "shop.example",
    ]
    for text in ("", "a b", "http://x", "10.0.0.0/99", "-x"):
        with pytest.raises(ValueError, match="not a network"):
            allowance(text)
    done = subprocess.run(
        [sys.executable, "-m", "mup_registry", "--allow", "10.0.0.0/99"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=10,
        check=False,
    )
    assert done.returncode == 2
    assert "'10.0.0.0/99'" in done.stderr


@pytest.mark.services
def test_an_address_is_not_taken_from_who_lives_there() -> None:
    """Its owner stays listed until it has been silent for too long; then the address is free."""
    with registry("--expiry", "0.5") as url:
        owner = ask(url, "/register", entry(service="Orders", url="http://127.0.0.1:40"))[1]["id"]
        for stranger in (
            entry(service="Evil", url="http://127.0.0.1:40"),
            entry(service="Orders", replica=1, url="http://127.0.0.1:40/"),
        ):
            status, answer = ask(url, "/register", stranger)
            assert status == 409
            assert "'Orders', replica 0" in answer["error"]
            assert ask(url, "/heartbeat", {"id": owner})[0] == 200
        assert [r["id"] for r in ask(url, "/replicas?service=Orders")[1]["replicas"]] == [owner]
        time.sleep(0.7)
        assert ask(url, "/register", entry(service="Other", url="http://127.0.0.1:40"))[0] == 200


def test_a_replica_started_again_is_itself() -> None:
    """The same replica at the same address replaces itself at once, as after a crash; no other one does."""
    directory = Directory(expiry=3.0)
    first = directory.register(**entry(pid=1), now=0.0)
    second = directory.register(**entry(pid=2), now=0.1)
    assert directory.replicas("A", now=0.2) == [second]
    with pytest.raises(TakenError):
        directory.register(**entry(service="B"), now=0.3)
    assert not directory.heartbeat(first.id, now=0.3)
    assert directory.register(**entry(service="B"), now=3.2).service == "B"


def test_endpoints_are_not_changed_by_who_comes() -> None:
    """Who registers adds endpoints; those of the others have their paths until the others have gone."""

    def endpoints() -> dict[str, str]:
        service = directory.service("A", now=1.0)
        assert service is not None
        return service.endpoints

    directory = Directory(expiry=3.0)
    old = [
        directory.register(**entry(replica=n, url=f"http://127.0.0.1:{n}", endpoints={"buy": "/buy/", "old": "/old/"}), now=0.0)
        for n in range(2)
    ]  # fmt: skip
    fresh = entry(url="http://127.0.0.1:9", endpoints={"buy": "/steal/", "new": "/new/"})
    newer = directory.register(**fresh, now=0.5)
    assert endpoints() == {"buy": "/buy/", "old": "/old/", "new": "/new/"}
    assert directory.deregister(old[0].id, now=0.6)
    assert endpoints() == {"buy": "/buy/", "old": "/old/", "new": "/new/"}
    # As in a rolling update: the old ones have gone.
    assert directory.deregister(old[1].id, now=0.7)
    assert endpoints() == {"buy": "/steal/", "new": "/new/"}
    # Callers of a service that is down still know what its endpoints mean.
    assert directory.deregister(newer.id, now=0.8)
    assert endpoints() == {"buy": "/steal/", "new": "/new/"}
