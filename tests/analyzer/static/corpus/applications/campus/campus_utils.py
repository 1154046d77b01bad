"""Small helpers that every service needs."""

import csv
import hashlib
import hmac
import io
import logging
import random
import threading
import time
from contextlib import contextmanager
from functools import wraps
from itertools import islice

from mup.errors import (
    BrokenCallError,
    CallTimeoutError,
    CommunicationError,
    NoReplicaError,
)

logger = logging.getLogger("campus.utils")

TRANSIENT = (CallTimeoutError, BrokenCallError, NoReplicaError)


def chunked(iterable, size):
    iterator = iter(iterable)
    while batch := list(islice(iterator, size)):
        yield batch


def as_list(value):
    """Query strings have "a,b", JSON has ["a", "b"]."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value)


def truthy(value):
    return str(value).lower() in ("1", "true", "yes", "on")


def retry(attempts=3, on=TRANSIENT, backoff=0.02):
    """Repeats a function that fails with a transient error."""

    def decorator(function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            for attempt in range(1, attempts + 1):
                try:
                    return function(*args, **kwargs)
                except on as error:
                    if attempt == attempts:
                        raise
                    logger.info("%s failed (%s), attempt %d", function.__name__, error, attempt)
                    time.sleep(random.uniform(0, backoff * 2**attempt))

        return wrapper

    return decorator


def settle(futures, timeout=None):
    """Waits for a dict of futures: what came, and the names of what failed."""
    done, failed = {}, []
    for name, future in futures.items():
        try:
            done[name] = future.get(timeout=timeout)
        except CommunicationError:
            logger.warning("%s is missing", name)
            failed.append(name)
    return done, failed


def get_or(future, default):
    try:
        return future.get()
    except CommunicationError:
        return default


@contextmanager
def ignoring_outage(what):
    """What is nice to have must not fail the request."""
    try:
        yield
    except CommunicationError as error:
        logger.warning("%s skipped: %s", what, error)


class Undo:
    """Steps that are taken back, last one first, if the block fails."""

    def __init__(self):
        self._steps = []

    def push(self, step, *args, **kwargs):
        self._steps.append((step, args, kwargs))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            return False
        while self._steps:
            step, args, kwargs = self._steps.pop()
            try:
                step(*args, **kwargs)
            except CommunicationError:
                logger.exception("could not undo %s", getattr(step, "__name__", step))
        return False


class TTLCache:
    def __init__(self, seconds, clock=time.monotonic):
        self.seconds = seconds
        self._clock = clock
        self._entries = {}
        self._lock = threading.Lock()

    def get(self, key, default=None):
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return default
            expires, value = entry
            if expires < self._clock():
                del self._entries[key]
                return default
            return value

    def set(self, key, value):
        with self._lock:
            self._entries[key] = (self._clock() + self.seconds, value)

    def delete(self, key):
        with self._lock:
            self._entries.pop(key, None)

    def get_or_set(self, key, factory):
        value = self.get(key)
        if value is None:
            value = factory()
            self.set(key, value)
        return value


class Flags:
    """Feature flags, asked at most once per half minute and worker."""

    def __init__(self, defaults=None, seconds=30):
        self.defaults = defaults or {}
        self.cache = TTLCache(seconds)

    def enabled(self, comm, name):
        known = self.cache.get(name)
        if known is not None:
            return known
        try:
            answer = comm.call("Flags", "/evaluate", {"flag": name}, timeout=0.5).get()
        except CommunicationError:
            return self.defaults.get(name, False)
        enabled = bool(answer.get("on", self.defaults.get(name, False)))
        self.cache.set(name, enabled)
        return enabled


def csv_text(rows, columns):
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=columns, extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow(row)
    return buffer.getvalue()


def respond_csv(comm, rows, columns, filename):
    comm.respond(
        csv_text(rows, columns),
        headers={
            "Content-Type": "text/csv; charset=utf-8",
            "Content-Disposition": f'attachment; filename="{filename}"',
        },
    )


def signature(secret, *parts):
    return hmac.new(secret, "|".join(str(part) for part in parts).encode(), hashlib.sha256).hexdigest()


def signature_matches(secret, given, *parts):
    return hmac.compare_digest(signature(secret, *parts), given or "")
