"""Whatever becomes of real sources by accident, analysing them ends with paths or findings, never with a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from analyzer.static import analyse, render

ROOT = Path(__file__).parents[2]
SOURCES = [
    ROOT / "examples/translator/services.py",
    ROOT / "examples/translator/workload.py",
    ROOT / "tests/analyzer_static/mutated_service.py.txt",
]
PER_SOURCE = 40
TOKENS = [
    b"comm", b"(", b")", b"[", b"]", b":", b"\n", b"    ", b"\t", b"'", b'"""', b"f'{", b"yield ", b"await ", b"async ",
    b"return ", b"lambda: ", b"*", b"**", b"=", b":=", b"@EP('/x/')", b"class ", b"def ", b"if ", b"else:", b"for x in y:",
    b"try:", b"finally:", b"del ", b"global x", b"nonlocal x", b"import mup", b"MS", b"\\", b"#", b"\x00", b"\xff", b"\f", b"\r",
    b"9" * 50, b"None", b".get()", b"comm.call('B', '/b/')", b"comm.respond(1)", b"break", b"continue", b"raise", b"with x:",
]  # fmt: skip


def mutated(data: bytes, random: random.Random, others: list[bytes]) -> bytes:
    """Return a text with a few accidents: bytes and lines lost, doubled, moved, replaced, or from elsewhere."""
    for _ in range(random.randint(1, 4)):
        kind = random.randrange(7)
        at = random.randrange(len(data) + 1)
        end = min(len(data), at + random.randint(1, 60))
        lines = data.splitlines(keepends=True)
        if kind == 0:
            data = data[:at] + random.choice(TOKENS) + data[at:]
        elif kind == 1:
            data = data[:at] + random.choice(TOKENS) + data[end:]
        elif kind == 2:
            data = data[:at]
        elif kind == 3:
            data = data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
        elif kind == 4 and lines:
            lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))
            data = b"".join(lines)
        elif kind == 5:
            other = random.choice(others)
            start = random.randrange(len(other) + 1)
            data = data[:at] + other[start : start + random.randint(1, 300)] + data[at:]
        elif lines:
            chosen = random.randrange(len(lines))
            data = b"".join([*lines[:chosen], lines[chosen], *lines[chosen:]])
    return data


@pytest.mark.parametrize("source", SOURCES, ids=[s.name for s in SOURCES])
def test_mutated_source_is_survived(tmp_path: Path, source: Path) -> None:
    """Every mutation yields an application whose findings can be shown, none of them a failure of the analyzer."""
    texts = [s.read_bytes() for s in SOURCES]
    file = tmp_path / "app.py"
    for seed in range(PER_SOURCE):
        data = mutated(source.read_bytes(), random.Random(seed), texts)
        file.write_bytes(data)
        application = analyse(file)
        assert "MUP099" not in {d.code for d in application.diagnostics}, (seed, application.diagnostics)
        for diagnostic in application.diagnostics:
            assert render(diagnostic, application.root)
            assert diagnostic.line <= data.count(b"\n") + data.count(b"\r") + 1
