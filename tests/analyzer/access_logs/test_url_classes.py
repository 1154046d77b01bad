"""Ids in paths are put together, and endpoints are not."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from analyzer.access_logs.targets import TOO_MANY, Targets
from mup.errors import UsageError


def classes(*requests: str, groups: dict[str, str] | None = None) -> list[str]:
    """Return the class of each request."""
    targets = Targets(groups or {})
    numbers = targets.numbers(requests)
    names, place = targets.names()
    return [names[r] for r in place[numbers]]


@pytest.mark.parametrize(
    ("request_line", "name"),
    [
        pytest.param("GET /", "GET /", id="root"),
        pytest.param("GET /item/4711", "GET /item/{}", id="number"),
        pytest.param("GET /item/4711/reviews?page=2", "GET /item/{}/reviews", id="inside"),
        pytest.param(f"GET /u/{uuid.UUID(int=5)}", "GET /u/{}", id="uuid"),
        pytest.param("GET /c/3f2504e04f8911d39a0c", "GET /c/{}", id="hexadecimal"),
        pytest.param("GET /t/dGhpcyBpcyBhIHQ1ZX4N", "GET /t/{}", id="token"),
        pytest.param("GET /img/1024.jpg", "GET /img/{}.jpg", id="file"),
        pytest.param("GET /v1/search", "GET /v1/search", id="version"),
        pytest.param("GET /static/bootstrap-responsive", "GET /static/bootstrap-responsive", id="long word"),
        pytest.param("GET https://shop.example:443/cart/7", "GET /cart/{}", id="origin"),
        pytest.param("GET /a;jsessionid=99", "GET /a", id="parameter"),
        pytest.param("GET /2026/01/31/", "GET /{}/{}/{}/", id="date"),
    ],
)
def test_what_looks_like_an_id(request_line: str, name: str) -> None:
    """Numbers, UUIDs, hexadecimal words and long words with digits; nothing else."""
    assert classes(request_line) == [name]


def test_names_of_things_are_put_together() -> None:
    """Sixty products with a request each are no sixty classes; sixty operations with fifty requests are."""
    things = [f"GET /product/thing-{'abcdefghij'[i % 10] * (1 + i // 10)}" for i in range(60)]
    operations = [f"POST /do/operation-{'abcdefghij'[i % 10] * (1 + i // 10)}" for i in range(60)] * 50
    found = classes(*things, *operations, "GET /product")
    assert set(found[:60]) == {"GET /product/{}"}
    assert len(set(found[60:-1])) == 60
    assert found[-1] == "GET /product"


def test_memory_is_bounded_while_reading() -> None:
    """A hundred thousand names stand for a few classes long before the end."""
    targets = Targets({})
    letters = "bcdfghjkmp"
    names = [
        "GET /p/" + "".join(letters[int(d)] for d in f"{i:05d}") + ("/buy" if i % 2 else "")
        for i in range(100_000)
    ]
    numbers = np.concatenate([targets.numbers(names[i : i + 1000]) for i in range(0, len(names), 1000)])
    found, place = targets.names()
    assert found == ["GET /p/{}", "GET /p/{}/buy"]
    assert len(place) < 12 * TOO_MANY
    assert np.bincount(place[numbers]).tolist() == [50_000, 50_000]


def test_groups_come_first() -> None:
    """What the user puts together is together, ids or not; a class that no group fits has its own name."""
    found = classes(
        "GET /item/1",
        "GET /item/two",
        "POST /item",
        "GET /x/9",
        groups={"read": "^GET /item", "write": "^POST"},
    )
    assert found == ["read", "read", "write", "GET /x/{}"]
    with pytest.raises(UsageError, match="is no regular expression"):
        Targets({"x": "("})
