"""A user keeps cookies as a browser does."""

from __future__ import annotations

import pytest

from mup.runtime.protocol.kept_cookies import KeptCookies


def test_cookies_go_back_to_the_service_that_set_them() -> None:
    """A later value replaces an earlier one; other services see nothing."""
    cookies = KeptCookies()
    cookies.keep("Shop", ["session=old; Path=/", 'cart="[1\\0542]"; HttpOnly; SameSite=Lax'])
    cookies.keep("Shop", ["session=new"])
    assert cookies.header("Shop") == 'session=new; cart="[1\\0542]"'
    assert cookies.header("Other") is None


@pytest.mark.parametrize(
    "text",
    ["session=; Max-Age=0", "session=x; Max-Age=-1", "session=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"],
)
def test_services_delete_cookies(text: str) -> None:
    """By either of the two attributes; without any cookie there is no header."""
    cookies = KeptCookies()
    cookies.keep("Shop", ["session=1"])
    cookies.keep("Shop", [text])
    assert cookies.header("Shop") is None


@pytest.mark.parametrize(
    "text", ["session=2; Max-Age=60", "session=2; Max-Age=soon", "session=2; Expires=never"]
)
def test_cookies_that_live_on(text: str) -> None:
    """A time in the future, or one that cannot be read, deletes nothing."""
    cookies = KeptCookies()
    cookies.keep("Shop", [text])
    assert cookies.header("Shop") == "session=2"
