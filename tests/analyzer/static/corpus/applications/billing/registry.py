"""Who handles what: filled where handlers are defined."""

from collections import defaultdict
from typing import ClassVar

COMMANDS = {}
LISTENERS = defaultdict(list)
CHECKS: list = []
DEFAULTS = {"currency": "EUR"}


def command(name):
    def register(handler):
        COMMANDS[name] = handler
        return handler

    return register


def on(*events):
    def register(listener):
        for event in events:
            LISTENERS[event].append(listener)
        return listener

    return register


def check(function):
    CHECKS.append(function)
    return function


class Provider:
    known: ClassVar[dict] = {}
    fee = 0

    @classmethod
    def register(cls, name):
        def decorate(kind):
            cls.known[name] = kind
            return kind

        return decorate

    def pay(self, comm, amount):
        raise NotImplementedError


class Exporter:
    formats: ClassVar[dict] = {}

    def __init_subclass__(cls, suffix, **options) -> None:
        super().__init_subclass__(**options)
        Exporter.formats[suffix] = cls()

    def export(self, comm, number):
        raise NotImplementedError
