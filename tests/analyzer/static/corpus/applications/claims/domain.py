"""Domain of claims: values, errors, and what turns one into the other."""

import enum
import functools
import json
import logging
import struct
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation

logger = logging.getLogger("claims")


class ClaimError(Exception):
    status = 400
    code = "claim"


class InvalidClaim(ClaimError):
    status = 422
    code = "invalid"

    def __init__(self, field_name, message):
        super().__init__(f"{field_name}: {message}")
        self.field_name = field_name


class LimitExceeded(InvalidClaim):
    status = 409
    code = "limit"

    def __init__(self, limit):
        super().__init__("amount", "over %.2f" % limit)
        self.limit = limit


class UnknownPeril(ClaimError, LookupError):
    status = 404
    code = "peril"


class Peril(enum.Enum):
    FIRE = "fire"
    WATER = "water"
    THEFT = "theft"

    @classmethod
    def _missing_(cls, value):
        if isinstance(value, str):
            for member in cls:
                if member.value == value.lower():
                    return member
        return None


class Severity(enum.IntEnum):
    LOW = 1
    MEDIUM = 2
    HIGH = 3


@dataclass(frozen=True)
class Money:
    amount: Decimal
    currency: str = "EUR"

    def __post_init__(self):
        if len(self.currency) != 3:
            raise InvalidClaim("currency", repr(self.currency))
        if self.amount < 0:
            raise ValueError("negative amount")

    @classmethod
    def parse(cls, text):
        number, _, currency = text.partition(" ")
        try:
            return cls(Decimal(number), currency or "EUR")
        except InvalidOperation as error:
            raise InvalidClaim("amount", f"no number: {number!r}") from error


@dataclass
class Damage:
    raw: dict = field(default_factory=dict)

    @property
    def cost(self):
        try:
            return float(self.raw["cost"])
        except KeyError:
            raise AttributeError("cost") from None

    @property
    def items(self):
        return self.raw["items"]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.raw["extra"][name]
        except (KeyError, TypeError):
            raise AttributeError(name) from None


@contextmanager
def as_invalid(field_name, *kinds):
    """What goes wrong in here is the fault of the field."""
    try:
        yield
    except kinds or (ValueError, TypeError) as error:
        logger.info("%s is invalid: %s", field_name, error)
        raise InvalidClaim(field_name, str(error)) from error


class swallow:
    def __init__(self, *kinds):
        self.kinds = kinds
        self.error = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None and issubclass(kind, self.kinds):
            self.error = error
            return True
        return False


def answers_errors(method):
    @functools.wraps(method)
    def wrapper(self, comm, *args, **kwargs):
        try:
            return method(self, comm, *args, **kwargs)
        except InvalidClaim as error:
            comm.call("Audit", "/rejected", {"field": error.field_name}).get()
            comm.respond({"error": str(error)}, status=error.status)
        except ClaimError as error:
            comm.respond({"error": error.code}, status=error.status)

    return wrapper


def answers_errors_async(*, report=True):
    def decorate(method):
        @functools.wraps(method)
        async def wrapper(self, comm, *args, **kwargs):
            try:
                await method(self, comm, *args, **kwargs)
            except ClaimError as error:
                if report:
                    await comm.call("Audit", "/rejected", {"code": error.code})
                comm.respond({"error": error.code}, status=error.status)
            except (KeyError, TypeError) as error:
                await comm.query("claims", "malformed", "malformed", {"$insert": [{"error": repr(error)}]})
                comm.respond({"error": "malformed"}, status=400)

        return wrapper

    return decorate


def positive(value, name="amount"):
    number = int(value)
    if number <= 0:
        raise InvalidClaim(name, "has to be positive")
    return number


def required(params, *names):
    missing = [n for n in names if params.get(n) in (None, "")]
    if missing:
        raise InvalidClaim(missing[0], "is missing")
    return tuple(params[n] for n in names)


def parse_header(data):
    version, kind, size = struct.unpack(">HHI", data[:8])
    if version > 2:
        raise InvalidClaim("version", str(version))
    return kind, size


def waiting_period(start, loss):
    return datetime.fromisoformat(loss) - datetime.fromisoformat(start) < timedelta(days=30)


def load_policy(text):
    try:
        policy = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidClaim("policy", error.msg) from error
    if not isinstance(policy, dict):
        raise TypeError("policy is no object")
    return policy
