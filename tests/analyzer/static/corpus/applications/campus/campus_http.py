"""Errors as exceptions, authentication, and the decorators of endpoints."""

import logging
from functools import wraps

from campus_models import Role, User
from mup.errors import CallError, CallTimeoutError, CommunicationError

logger = logging.getLogger("campus.http")


class ApiError(Exception):
    status = 500
    code = "error"

    def __init__(self, detail="", **extra):
        super().__init__(detail)
        self.detail = detail
        self.extra = extra

    def payload(self):
        return {"code": self.code, "detail": self.detail, **self.extra}


class BadRequest(ApiError):
    status = 400
    code = "bad_request"


class ValidationFailed(BadRequest):
    status = 422
    code = "invalid"


class NotAuthenticated(ApiError):
    status = 401
    code = "not_authenticated"


class PermissionDenied(ApiError):
    status = 403
    code = "permission_denied"


class NotFound(ApiError):
    status = 404
    code = "not_found"


class Conflict(ApiError):
    status = 409
    code = "conflict"


class TooManyRequests(ApiError):
    status = 429
    code = "throttled"


class Unavailable(ApiError):
    status = 503
    code = "unavailable"


def api_errors(function):
    """Answers with the status of an exception instead of a 500."""

    @wraps(function)
    def wrapper(self, comm):
        try:
            return function(self, comm)
        except ApiError as error:
            comm.respond(error.payload(), status=error.status)
        except CallError as error:
            if error.status == 404:
                comm.respond(NotFound("no such object").payload(), status=404)
            else:
                logger.warning("upstream answered %s", error.status)
                comm.respond({"code": "upstream", "status": error.status}, status=502)
        except CallTimeoutError:
            comm.respond({"code": "timeout"}, status=504)
        except CommunicationError:
            logger.exception("upstream is not reachable")
            comm.respond(Unavailable("try again later").payload(), status=503)

    return wrapper


def get_token(comm):
    header = comm.headers.get("authorization", "")
    scheme, _, token = header.partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    return comm.cookies.get("session")


def authenticate(comm):
    """The user of the request; raises NotAuthenticated without one."""
    token = get_token(comm)
    if not token:
        raise NotAuthenticated("a token is required")
    try:
        session = comm.call("Identity", "/session", {"token": token}, timeout=2.0).get()
    except CallError as error:
        if error.status in (401, 403, 404):
            raise NotAuthenticated("the token is not valid") from error
        raise
    if not session or "user" not in session:
        raise NotAuthenticated("the session has expired")
    return User(
        id=session["user"],
        role=Role.parse(session.get("role", "student")),
        token=token,
        scopes=frozenset(session.get("scopes", ())),
    )


def login_required(function):
    @wraps(function)
    def wrapper(self, comm):
        return function(self, comm, authenticate(comm))

    return wrapper


def permission_required(*permissions, any_of=False):
    """The user needs all permissions, or with any_of one of them."""
    enough = any if any_of else all

    def decorator(function):
        @wraps(function)
        def wrapper(self, comm):
            user = authenticate(comm)
            if not enough(user.has_perm(permission) for permission in permissions):
                comm.call(
                    "Audit", "/record", {"event": "denied", "user": user.id, "needed": list(permissions)}
                )
                raise PermissionDenied("you may not do this", needed=list(permissions))
            return function(self, comm, user)

        return wrapper

    return decorator


def feature_required(flag):
    """404 while the feature is switched off, as if the endpoint did not exist."""

    def decorator(function):
        @wraps(function)
        def wrapper(self, comm, *args):
            if not self.flags.enabled(comm, flag):
                raise NotFound("no such page")
            return function(self, comm, *args)

        return wrapper

    return decorator


def own_or_permission(user, student_id, permission):
    if not user.owns(student_id) and not user.has_perm(permission):
        raise PermissionDenied("not your record")
