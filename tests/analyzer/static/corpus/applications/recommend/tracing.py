"""A small tracer with the interface of OpenTelemetry's."""

import functools
import inspect
import time
from contextlib import contextmanager


class Span:
    def __init__(self, name: str) -> None:
        self.name = name
        self.attributes = {}
        self.start = time.perf_counter()

    def set_attribute(self, key, value) -> None:
        self.attributes[key] = value

    def record_exception(self, error: BaseException) -> None:
        self.attributes["exception"] = repr(error)

    def end(self) -> None:
        self.attributes["seconds"] = time.perf_counter() - self.start


class Tracer:
    def __init__(self) -> None:
        self.finished = 0

    @contextmanager
    def start_as_current_span(self, name: str):
        span = Span(name)
        try:
            yield span
        except Exception as error:
            span.record_exception(error)
            raise
        finally:
            span.end()
            self.finished += 1


class Counter:
    def __init__(self, name: str) -> None:
        self.name = name
        self.values = {}

    def add(self, amount: int, attributes=None) -> None:
        key = tuple(sorted((attributes or {}).items()))
        self.values[key] = self.values.get(key, 0) + amount


tracer = Tracer()
metrics = {"recommendations": Counter("recommendations"), "errors": Counter("errors")}


def traced(name):
    def decorate(function):
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args, **kwargs):
                with tracer.start_as_current_span(name):
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                with tracer.start_as_current_span(name):
                    return function(*args, **kwargs)

        return wrapper

    return decorate


def count_exceptions(counter):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except Exception as error:
                counter.add(1, {"type": type(error).__name__})
                raise

        return wrapper

    return decorate


class timer:
    """To be used as a decorator and in a ``with`` statement."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self):
        self.begin = time.perf_counter()
        return self

    def __exit__(self, *error):
        self.seconds = time.perf_counter() - self.begin
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapper
