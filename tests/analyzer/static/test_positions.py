"""Where a piece of code is: what the interpreter's tree tells is what libcst would have found out."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import libcst as cst
import pytest
from libcst.metadata import CodeRange

from analyzer.static import analyse
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.source import Module, SourceTree, Span
from analyzer.static.walking import nodes_of

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SOURCES = [
    *sorted((HERE / "realistic").rglob("*.py")),
    *sorted((ROOT / "examples").rglob("*.py")),
    *sorted((ROOT / "analyzer/static").glob("f*.py")),
]

ELSEWHERE = (cst.GeneratorExp, cst.WithItem, cst.FunctionDef, cst.ClassDef)
"""Here libcst begins or ends somewhere else: before decorators, inside of parentheses, behind ``as NAME``."""


def module(folder: Path, name: str) -> Module:
    """Return a parsed module."""
    found = SourceTree(folder, Diagnostics()).module(name)
    assert found is not None
    return found


def as_span(place: CodeRange) -> Span:
    """Return a place as libcst has it, counted as in findings."""
    return Span(
        line=place.start.line,
        column=place.start.column + 1,
        end_line=place.end.line,
        end_column=place.end.column + 1,
    )


@pytest.mark.parametrize("source", SOURCES, ids=[str(s.relative_to(ROOT)) for s in SOURCES])
def test_both_trees_agree(source: Path) -> None:
    """Every node that has an AST node is where libcst says it is."""
    one = module(source.parent, source.stem)
    assert bool(one.ast_nodes) is bool(ast.parse(source.read_text(encoding="utf-8")).body)
    for node in one.ast_nodes:
        if not isinstance(node, ELSEWHERE):
            assert one.span(node) == as_span(one.positions[node]), one.tree.code_for_node(node)


CODE = {
    "plain": "sum(x for x in y)",
    "condition": "sum(x for x in y if x)",
    "chain": "sum(x for x in y if x and y and not x or 1 if y)",
    "nested": "sum(x for y in z if y for x in y if x if y)",
    "parentheses": "sum((x) for x in ((y)) if ((x)))",
    "tuples": "sum((x, y) for x, y in (y, x) if (x, y))",
    "generators": "any((x for x in y) for y in z if (y for y in z))",
    "lines": """
        sum(  # a ) comment
            (x  # (
             )  # )
            for x
            in (
                y
            )  # for
            if x
        )
    """,
    "continued": """
        sum((x \\
          ) for x in y)
    """,
    "asynchronous": """
        async def ä(b):
            return [x async for x in (f(ö) async for ö in b)]
    """,
    "decorators": """
        @ a.b
        @(c)
        @d(1,
           2)
        @(
            e
        )
        class  F  :
            @staticmethod
            def g ( ): ...
    """,
    "continued-name": """
        def \\
          f(): ...
    """,
    "not-ascii": 'ä = "ö" + ß.é(sum(ü for ü in ä))',
    "steps": "f(1 for x in y), f('a' for x in y), f(x.y[0] for x in y), f({x: y} for x in y)",
}


@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_parts_without_ast_nodes_agree(tmp_path: Path, code: str) -> None:
    """Names of definitions, decorators, and clauses and steps of generator expressions are where libcst says."""
    (tmp_path / "app.py").write_text(dedent(code).lstrip("\n"), encoding="utf-8")
    one = module(tmp_path, "app")
    assert one.ast_nodes
    asked: list[cst.CSTNode] = []
    for node in nodes_of(one.tree, (cst.GeneratorExp, cst.FunctionDef, cst.ClassDef)):
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            asked += [node.name, *node.decorators]
        else:
            assert isinstance(node, cst.GeneratorExp)
            clause: cst.CompFor | None = node.for_in
            asked.append(node.elt)
            while clause is not None:
                asked += [clause, *(condition.test for condition in clause.ifs)]
                clause = clause.inner_for_in
    for part in asked:
        if not isinstance(part, ELSEWHERE):
            assert one.span(part) == as_span(one.positions[part]), one.tree.code_for_node(part)
        assert one.line(part) == one.positions[part].start.line


APPLICATIONS = [
    *sorted((HERE / "realistic").iterdir()),
    ROOT / "examples/starter",
    ROOT / "examples/translator",
]


@pytest.mark.parametrize("application", APPLICATIONS, ids=[a.name for a in APPLICATIONS])
def test_code_without_findings_needs_no_positions(application: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What libcst needs twice as long for as for parsing is not asked for if nothing is wrong."""

    def refuse(one: Module) -> object:
        raise AssertionError(one.file)

    monkeypatch.setattr(Module, "positions", property(refuse))
    assert not analyse(application).errors
