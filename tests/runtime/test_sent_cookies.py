"""Cookies are read as browsers send them; a malformed one does not cost the others."""

from __future__ import annotations

from http.cookies import SimpleCookie

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mup.communication import Headers
from mup.runtime.protocol.sent_cookies import cookies_of


@pytest.mark.parametrize(
    ("header", "cookies"),
    [
        pytest.param("", {}, id="none"),
        pytest.param("a=1; c=2", {"a": "1", "c": "2"}, id="two"),
        pytest.param("a=1;c=2", {"a": "1", "c": "2"}, id="without-blanks"),
        pytest.param("a=1; a=2", {"a": "2"}, id="twice"),
        pytest.param("a=; c=2", {"a": "", "c": "2"}, id="empty"),
        pytest.param("a=eyJ==; c=2", {"a": "eyJ==", "c": "2"}, id="equals-signs"),
        pytest.param('a=1; b={"x": [1, 2]}; c=2', {"a": "1", "b": '{"x": [1, 2]}', "c": "2"}, id="json"),
        pytest.param("a=x y; c=2", {"a": "x y", "c": "2"}, id="blank-inside"),
        pytest.param("a=1; b; =x; ; c=2", {"a": "1", "c": "2"}, id="no-names"),
        pytest.param("ä=ö; c=2", {"ä": "ö", "c": "2"}, id="not-ascii"),
        pytest.param('a="x\\"y\\054z\\\\"; c="', {"a": 'x"y,z\\', "c": '"'}, id="quoted"),
        pytest.param("path=/; domain=x; $Version=1", {"path": "/", "domain": "x", "$Version": "1"}, id="reserved"),
    ],
)  # fmt: skip
def test_cookies(header: str, cookies: dict[str, str]) -> None:
    """Names and values are what stands between semicolons."""
    assert cookies_of(header) == cookies


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z]{1,8}", fullmatch=True), st.text(st.characters(max_codepoint=255))
    )
)
def test_what_services_set_comes_back(values: dict[str, str]) -> None:
    """Whatever is in a cookie: a client returns what it was told, quotes and all."""
    jar = SimpleCookie({f"x-{name}": value for name, value in values.items()})
    header = "; ".join(f"{name}={morsel.coded_value}" for name, morsel in jar.items())
    assert cookies_of(header) == {f"x-{name}": value for name, value in values.items()}


def test_repeated_headers() -> None:
    """Proxies may spread cookies over several headers: together they are one list."""
    headers = Headers([("Cookie", "a=1"), ("Accept", "x"), ("cookie", "c=2"), ("accept", "y")])
    assert (headers["cookie"], headers["accept"]) == ("a=1; c=2", "x, y")
