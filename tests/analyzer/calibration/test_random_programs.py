"""Random endpoints with loops, branches, handlers and exits: every execution fits the analysis of its source."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from test_matching import check
from walking import endpoint, world

from analyzer.calibration.matching import match
from analyzer.static import analyse

OPERATIONS = (
    'comm.call("B", "/b/").get()',
    'comm.call("B", "/c/").get()',
    'comm.query("db", "q", "c", {}).get()',
    'comm.call("B", "/b/")',
    'comm.params["work"](1)',
    'x = [comm.call("B", "/b/").get() for v in comm.params["items"] if comm.params["coin"]()]',
)
LOOPS = (
    'for w in comm.params["items"]:',
    'while comm.params["coin"](0.6):',
    'while comm.call("B", "/c/").get() and comm.params["coin"](0.6):',
    "for w in (1, 2):",
)
DEPTH = 3


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def block(draw: random.Random, depth: int = 0, *, inside: bool = False) -> list[str]:
    """Return the lines of a random block; ``inside`` a loop it may leave it."""
    lines: list[str] = []
    for _ in range(draw.randrange(1, 4 if depth == 0 else 3)):
        kind = draw.random()
        if kind < 0.4 or depth == DEPTH:
            lines.append(draw.choice(OPERATIONS))
        elif kind < 0.5:
            name = f"f{depth}"
            lines.append(draw.choice((f'{name} = comm.call("B", "/c/")', f"{name} and {name}.get()")))
        elif kind < 0.64:
            lines += ['if comm.params["coin"]():', *indented(block(draw, depth + 1, inside=inside))]
            if draw.random() < 0.5:
                lines += ["else:", *indented(block(draw, depth + 1, inside=inside))]
        elif kind < 0.78:
            lines += [draw.choice(LOOPS), *indented(block(draw, depth + 1, inside=True))]
            if draw.random() < 0.2:
                lines += ["else:", *indented(block(draw, depth + 1, inside=inside))]
        elif kind < 0.87:
            lines += ["try:", *indented(block(draw, depth + 1, inside=inside))]
            handler = draw.choice(("except CallError:", "except MupError:"))
            lines += [handler, *indented(block(draw, depth + 1, inside=inside))]
        elif kind < 0.95 and inside:
            lines += ['if comm.params["coin"](0.3):', f"    {draw.choice(('break', 'continue'))}"]
        else:
            lines += ['if comm.params["coin"](0.2):', "    comm.respond(0)", "    return"]
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(5))
def test_random_endpoint_is_matched(tmp_path: Path, batch: int) -> None:
    """Programs that are refused with a diagnostic are skipped; of the others every execution is explained."""
    explained = with_loops = 0
    for number in range(15):
        draw = random.Random(100 * batch + number)
        futures = [f"f{depth} = None" for depth in range(DEPTH + 1)]
        source = endpoint("\n".join([*futures, *block(draw), "comm.respond(1)"]))
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "app.py").write_text(source, encoding="utf-8")
        application = analyse(folder)
        paths = () if application.errors else application.endpoint("A/a/").paths
        if application.errors or sum(path.size for path in paths) > 40:
            continue
        app = world(folder, source, fail=0.2, seed=number)
        for _ in range(30):
            app.request("A/a/", items=list(range(draw.randrange(4))))
        _, plans = app.translated()
        found = match(plans["A/a/"], app.of("A/a/"))
        assert [u.reason for u in found.unmatched] == [], source
        check(found)
        explained += 1
        with_loops += any(plan.loops for plan in plans["A/a/"])
    assert explained >= 5
    assert with_loops >= 1
