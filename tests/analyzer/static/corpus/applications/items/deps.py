"""What the endpoints depend on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mup import Communication


class HTTPException(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Forbidden(HTTPException):
    def __init__(self) -> None:
        super().__init__(403, "forbidden")


def token(comm: Communication) -> str:
    scheme, _, value = comm.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not value:
        raise HTTPException(401, "Not authenticated")
    return value


def current_user(comm: Communication) -> dict[str, Any]:
    users = comm.query("app", "user_by_token", "users", {"token": token(comm)}).get()
    if not users:
        raise HTTPException(404, "User not found")
    if users[0].get("inactive"):
        raise Forbidden
    return users[0]


def superuser(comm: Communication) -> bool:
    try:
        return bool(current_user(comm).get("superuser"))
    except HTTPException:
        return False


@contextmanager
def error_answers(comm: Communication) -> Iterator[None]:
    """Answer what is raised inside."""
    try:
        yield
    except HTTPException as error:
        comm.respond({"detail": error.detail}, status=error.status)
