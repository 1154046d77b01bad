"""All errors of all packages stand in one tree, and each crosses process boundaries."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mup import errors
from mup.errors import CallError, MupError

PACKAGES = ("mup", "mup_registry", "analyzer", "simulator")
"""All that is installed; what benchmarks or applications derive is theirs."""


def _tree(kind: type[MupError]) -> Iterator[type[MupError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _tree(child)


def _error(kind: type[MupError]) -> MupError:
    more: dict[str, Any] = {"status": 503, "body": {"error": "full"}} if issubclass(kind, CallError) else {}
    return kind("too bad: 7", where="here", hint="try 8", **more)


PUBLIC = [k for k in _tree(MupError) if k.__module__ == errors.__name__]


def _modules() -> list[str]:
    """Return the modules of all packages, by their files."""
    found = []
    for name in PACKAGES:
        (folder,) = importlib.import_module(name).__path__
        for file in sorted(Path(folder).rglob("*.py")):
            parts = (name, *file.relative_to(folder).with_suffix("").parts)
            if parts[-1] != "__main__":
                found.append(".".join(parts).removesuffix(".__init__"))
    return found


@pytest.fixture(scope="module")
def of_all_packages() -> list[type[MupError]]:
    """The errors of every module there is, whichever of them other tests have imported."""
    for module in _modules():
        importlib.import_module(module)
    return [k for k in _tree(MupError) if k.__module__.partition(".")[0] in PACKAGES]


class RefundedError(CallError):
    """What an application may derive; it carries more."""

    def __init__(self, message: str, *, amount: int) -> None:
        super().__init__(message, status=409)
        self.amount = amount


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda k: k.__name__)
def test_errors_cross_process_boundaries(kind: type[MupError]) -> None:
    """Every error pickles with all that it carries, and is in the overview."""
    error = _error(kind)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error) == "here: too bad: 7\n  try 8"
    assert again.__dict__ == error.__dict__
    assert kind.__name__ in (errors.__doc__ or "").split()


def _strays(kinds: list[type[MupError]]) -> list[type[MupError]]:
    """Return the errors that other modules may use, and that are not where all of these are."""
    return [k for k in kinds if k not in PUBLIC and not k.__name__.startswith("_")]


def test_errors_that_other_modules_see_stand_in_one_module(of_all_packages: list[type[MupError]]) -> None:
    """Only errors whose name has an underscore are defined elsewhere."""
    assert set(PUBLIC) <= set(of_all_packages)
    assert _strays(of_all_packages) == []
    assert _strays([*of_all_packages, RefundedError]) == [RefundedError]


def test_errors_of_single_modules_cross_process_boundaries(of_all_packages: list[type[MupError]]) -> None:
    """They are found by their names, too: none is local to a function."""
    for kind in of_all_packages:
        error = kind.__new__(kind)  # what their constructors ask for is theirs
        MupError.__init__(error, "too bad: 7", where="here", hint="try 8")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind
        assert again.__dict__ == error.__dict__


def test_errors_of_applications_cross_process_boundaries() -> None:
    """Derived errors pickle without any code of their own, whatever their constructor asks for."""
    again = pickle.loads(pickle.dumps(RefundedError("late", amount=7)))
    assert type(again) is RefundedError
    assert (again.message, again.status, again.amount) == ("late", 409, 7)
