"""Compiled code does what Python does with the same function."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mup.native.binding import called
from mup.native.building import build
from mup.native.libraries import Library
from mup.native.library import library_text
from mup.native.loading import opened
from mup.native.subset import Refusal

HEAD = """
from __future__ import annotations
import math
from typing import Annotated, Final, NamedTuple
import numpy as np
import numpy.typing as npt
from mup.native.binding import compiled, inlined, internal
from mup.native.shapes import ANY, Floats1, Floats2, Longs1, Word
WIDE: Final = 3
Rows = Annotated[npt.NDArray[np.int32], (ANY, WIDE)]
"""

FUNCTIONS = """
class Inner(NamedTuple):
    rows: Rows
    floats: Floats1

class Outer(NamedTuple):
    inner: Inner
    longs: Longs1

@compiled
def rounding(a: int, b: int) -> tuple[int, int]:
    return a // b, a % b

@compiled
def mixed(a: int, b: float) -> float:
    total = 0
    for i in range(a):
        if i % 3 == 0:
            continue
        if i > 20:
            break
        total += i * b if i % 2 else -i
    return total / 4 + max(b, a) + abs(min(a, -2)) ** 2

@compiled
def counting_down(n: int) -> int:
    last = 0
    for i in range(n, -1, -2):
        last = (3 * last + i) % 1000
    return last

@compiled
def scrambled(state: Word) -> tuple[Word, float]:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return state, float(state >> np.uint64(11)) * 2.0**-53

@compiled
def bits(values: Floats1) -> Word:
    return values.view(np.uint64)[1] & np.uint64(0xFFFF)

@inlined
def bump(rows: Rows, row: int) -> int:
    rows[row, WIDE - 1] += 7
    return int(rows[row, WIDE - 1])

@compiled
def recorded(state: Outer, row: int) -> int:
    inner = state.inner
    found = bump(inner.rows, row)
    state.longs[-1] = found
    inner.floats[0] += 0.5 if found > 7 else 0.25
    return found + len(state.longs) + inner.rows.shape[1]

@internal
def total(values: Floats1) -> float:
    whole = 0.0
    for i in range(len(values)):
        whole += values[i]
    return whole

@compiled
def parts(table: Floats2, low: int, high: int) -> float:
    second = table[1]
    part = second[low:high]
    made = np.zeros(3)
    made[1] = total(part)
    copy = np.empty(2, dtype=np.int64)
    copy[0] = 5
    made, other = made, made
    return total(table[0]) * 100 + total(made) + copy[0] + total(table[1:2][0]) * 0 + other[1]

@compiled
def choosing(a: int, b: bool) -> int:
    if a in (2, 5) or not b:
        return 1
    elif 0 <= a < 5:
        return 2
    return 3

@compiled
def mathematics(x: float) -> float:
    return math.log(x) + math.exp(-x) + math.sqrt(x) + math.erfc(x) + math.floor(x) + x**0.3 + math.pi
"""


def source(folder: Path, text: str, name: str = "arithmetic") -> Library:
    """Write a module of functions to compile."""
    (folder / f"{name}.py").write_text(HEAD + text)
    return Library(name, modules=(name,), others=())


class Both:
    """The functions of a module, compiled and as Python executes them."""

    def __init__(self, folder: Path) -> None:
        library = source(folder, FUNCTIONS)
        self._opened = opened(build(library, folder / "built", folder))
        spec = importlib.util.spec_from_file_location("arithmetic", folder / "arithmetic.py")
        assert spec is not None
        assert spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        sys.modules["arithmetic"] = self.module
        spec.loader.exec_module(self.module)

    def __call__(self, name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return a function's machine code, and the function."""
        python: Callable[..., Any] = getattr(self.module, name).__wrapped__
        return called(f"arithmetic.{name}", *self._opened), python


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Compile once for all tests."""
    return Both(tmp_path_factory.mktemp("native"))


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5)])
def test_division_rounds_down(both: Both, a: int, b: int) -> None:
    """As Python's does, and not as C's, which rounds towards 0."""
    compiled, python = both("rounding")
    assert compiled(a, b) == python(a, b) == divmod(a, b)


@pytest.mark.parametrize("n", [-1, 0, 1, 7, 8, 40])
def test_loops_and_numbers_of_two_kinds(both: Both, n: int) -> None:
    """A name that holds a floating point number anywhere holds one from the beginning."""
    for name, arguments in (("mixed", (n, 1.25)), ("counting_down", (n,))):
        compiled, python = both(name)
        assert compiled(*arguments) == python(*arguments)


def test_words_wrap_around(both: Both) -> None:
    """64 bits, without a sign."""
    compiled, _ = both("scrambled")
    state = 2**64 - 3
    expected = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    assert compiled(state) == (expected, (expected >> 11) * 2.0**-53)
    assert both("bits")[0](np.array([0.0, 0.1])) == int(np.array([0.1]).view(np.uint64)[0]) & 0xFFFF


def test_records_of_arrays_are_written_in_place(both: Both) -> None:
    """What Python sees afterwards is what the function itself would have left."""
    results = []
    for function in both("recorded"):
        inner = both.module.Inner(np.zeros((4, 3), dtype=np.int32), np.zeros(2))
        state = both.module.Outer(inner, np.zeros(5, dtype=np.int64))
        values = [function(state, 2), function(state, 2)]
        results.append((values, inner.rows.tolist(), inner.floats.tolist(), state.longs.tolist()))
    assert results[0] == results[1]
    assert results[0][0] == [15, 22]


def test_parts_of_arrays_and_arrays_of_its_own(both: Both) -> None:
    """Rows, ranges, and arrays that end with the function."""
    table = np.arange(10.0).reshape(2, 5)
    compiled, _ = both("parts")
    assert compiled(table, 1, 4) == 100 * 10.0 + (6 + 7 + 8) + 5 + (6 + 7 + 8)


def test_conditions(both: Both) -> None:
    """Membership, chains, and what is not true."""
    compiled, python = both("choosing")
    cases = [(a, b) for a in range(-1, 7) for b in (False, True)]
    assert [compiled(a, b) for a, b in cases] == [python(a, b) for a, b in cases]


def test_mathematics_is_that_of_the_c_library(both: Both) -> None:
    """The same functions as Python's, so the same bits."""
    compiled, python = both("mathematics")
    for x in (0.3, 1.0, 2.75, 17.0):
        assert compiled(x) == python(x)
    assert math.isfinite(compiled(3.0))


def test_other_arrays_are_refused(both: Both) -> None:
    """Compiled code would read past their ends, or numbers of another kind."""
    compiled, _ = both("parts")
    for wrong in (np.zeros(5), np.zeros((2, 5), dtype=np.int64), np.zeros((5, 2)).T):
        with pytest.raises(TypeError, match=r"arithmetic\.parts: argument 1: .*arrays of f64"):
            compiled(wrong, 0, 1)
    rows = both.module.Inner(np.zeros((4, 2), dtype=np.int32), np.zeros(2))
    with pytest.raises(TypeError, match=r"rows: .*shape \(any, 3\)"):
        both("recorded")[0](both.module.Outer(rows, np.zeros(5, dtype=np.int64)), 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("@compiled\ndef f(a: int) -> int:\n    return a if a else 'x'\n", "no such expression: \"'x'\""),
        ("@compiled\ndef f(a) -> int:\n    return a\n", "f: a is called from Python, so its kind"),
        ("@compiled\ndef f(a: int) -> int:\n    return g(a)\n", "g is not compiled"),
        ("@compiled\ndef f(a: int) -> int:\n    with a:\n        return a\n", "no such statement"),
        ("@compiled\ndef f(a: int) -> int:\n    return a + b\n", "b is no number"),
        ("@compiled\ndef f(a: Word) -> Word:\n    return a + 1\n", "np.uint64 goes with np.uint64 only"),
        ("@compiled\ndef f(a: Floats2) -> float:\n    return a[1, 2, 3]\n", "3 indices for 2 dimensions"),
        ("@compiled\ndef f(a: int) -> int:\n    b = 1\n    b = np.zeros(3)\n    return a\n", "b would hold"),
    ],
)
def test_what_cannot_be_compiled_is_named(tmp_path: Path, text: str, says: str) -> None:
    """With file and line, and before any C compiler sees it."""
    source(tmp_path, text, "wrong")
    with pytest.raises(Refusal) as refused:
        library_text(tmp_path, ["wrong"])
    assert says in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path / 'wrong.py'}:")


def test_sources_that_libraries_are_made_of_are_all_listed() -> None:
    """Else a change of one of them would go unnoticed, and old code be used."""
    from mup.native.libraries import LIBRARIES, ROOT

    for library in LIBRARIES:
        _, files = library_text(ROOT, library.modules)
        assert set(files) <= set(library.files())
