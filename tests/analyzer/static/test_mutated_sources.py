"""Whatever becomes of real sources by accident, analysing them ends with paths or findings, never with a traceback."""

from __future__ import annotations

import ast
import copy
import random
from pathlib import Path

import pytest

from analyzer.static import analyse, render

ROOT = Path(__file__).parents[3]
SOURCES = [
    ROOT / "examples/translator/services.py",
    ROOT / "examples/translator/workload.py",
    ROOT / "tests/analyzer/static/mutated_service.py.txt",
]
PER_SOURCE = 15
REARRANGED = 15
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


SNIPPETS = """
comm
self
comm.call('B', '/b/')
comm.call('B', '/b/').get()
comm.query('db', 'q', 'c', {})
comm.respond(1)
comm.params['x']
[comm.call('B', p) for p in ('/b/', '/c/')]
{p: comm.call('B', p) for p in comm.params}
(yield comm)
lambda x=comm: x.call('B', '/b/')
[f.get() for f in futures]
(n := comm.call('C', '/b/'))
A
A.a
super().setup
TABLE[word]
10 ** 10 ** 10
'{:>999999999}'.format(1)
open
None
"""


class Pieces:
    """Code of the sources, to be put together in another way."""

    def __init__(self) -> None:
        self.trees = [ast.parse(s.read_bytes()) for s in SOURCES]
        nodes = [n for tree in self.trees for n in ast.walk(tree)]
        self.statements = [n for n in nodes if isinstance(n, ast.stmt)]
        self.expressions = [n for n in nodes if isinstance(n, ast.expr) and loaded(n)]
        written = [ast.parse(line.strip(), mode="eval").body for line in SNIPPETS.strip().splitlines()]
        self.expressions += written * 20

    def rearranged(self, random: random.Random) -> str:
        """Return a source that parses, in which code stands where it does not belong."""
        tree = copy.deepcopy(random.choice(self.trees))
        parents = [n for n in ast.walk(tree) if isinstance(n, ast.stmt | ast.expr)]
        for parent in random.sample(parents, random.randint(1, 8)):
            body = getattr(parent, "body", None)
            if isinstance(body, list) and random.random() < 0.5:
                body.insert(random.randrange(len(body) + 1), copy.deepcopy(random.choice(self.statements)))
                continue
            fields = [k for k, v in ast.iter_fields(parent) if isinstance(v, ast.expr) and loaded(v)]
            if fields and not isinstance(parent, ast.FormattedValue):
                setattr(parent, random.choice(fields), copy.deepcopy(random.choice(self.expressions)))
        try:
            return ast.unparse(ast.fix_missing_locations(tree))
        except ValueError:  # some expressions cannot be written inside of f-strings
            return self.rearranged(random)


def loaded(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def test_rearranged_source_is_survived(tmp_path: Path) -> None:
    """Code that is nonsense, but Python, is followed to its end, with findings that point into it."""
    pieces = Pieces()
    file = tmp_path / "app.py"
    for seed in range(REARRANGED):
        text = pieces.rearranged(random.Random(seed))
        file.write_text(text, encoding="utf-8")
        application = analyse(file)
        assert "MUP099" not in {d.code for d in application.diagnostics}, (seed, application.diagnostics)
        for diagnostic in application.diagnostics:
            assert render(diagnostic, application.root)
            assert diagnostic.line <= text.count("\n") + 1
