"""What ``from MODULE import *`` binds, of modules outside the source tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.static import analyse
from analyzer.static.star_imports import MODULES, exported

SOURCE = """
{imports}


class Kind(Enum):
    PLAIN = "/plain"
    ROUND = "/round"


class B(MS):
    @EP("/plain")
    def plain(self, comm: Communication) -> None:
        comm.respond(1)

    @EP("/round")
    def round(self, comm: Communication) -> None:
        comm.respond(1)


class S(MS):
    @EP("/s")
    def s(self, comm: Communication) -> None:
        try:
            for kind in Kind:
                comm.call("B", kind.value).get()
        except CallError:
            comm.call("B", Kind("/plain").value).get()
        if Kind.PLAIN == "/plain":
            comm.call("B", "/round").get()
        comm.respond(1)
"""
EXPLICIT = "from enum import Enum\nfrom mup import EP, MS, Communication\nfrom mup.errors import CallError"


def paths(root: Path, imports: str) -> list[list[str]]:
    """Return what the paths of the endpoint call, in order."""
    (root / "services.py").write_text(SOURCE.format(imports=imports), encoding="utf-8")
    application = analyse(root)
    assert [str(d) for d in application.diagnostics if d.severity == "error"] == []
    service = next(s for s in application.services if s.name == "S")
    return sorted(
        [str(o.target) for o in path.operations if o.op == "call"] for path in service.endpoints[0].paths
    )


@pytest.mark.parametrize(
    "imports",
    [
        "from enum import *\nfrom mup import *\nfrom mup.errors import *",
        "from mup.errors import *\nfrom mup import *\nfrom enum import *",
    ],
)
def test_stars_bind_what_the_names_would(tmp_path: Path, imports: str) -> None:
    (tmp_path / "named").mkdir()
    (tmp_path / "stars").mkdir()
    named = paths(tmp_path / "named", EXPLICIT)
    assert ["B/plain", "B/round"] in named
    assert paths(tmp_path / "stars", imports) == named


def test_a_later_star_counts(tmp_path: Path) -> None:
    for name, path in (("first", "/plain"), ("second", "/round")):
        (tmp_path / f"{name}.py").write_text(f"PATH = {path!r}\n", encoding="utf-8")
    source = """
from mup import EP, MS, Communication
from {} import *
from {} import *


class B(MS):
    @EP("/plain")
    def plain(self, comm: Communication) -> None:
        comm.respond(1)

    @EP("/round")
    def round(self, comm: Communication) -> None:
        comm.respond(1)


class S(MS):
    @EP("/s")
    def s(self, comm: Communication) -> None:
        comm.call("B", PATH).get()
        comm.respond(1)
"""
    found = []
    for order in (("first", "second"), ("second", "first")):
        (tmp_path / "services.py").write_text(source.format(*order), encoding="utf-8")
        application = analyse(tmp_path)
        service = next(s for s in application.services if s.name == "S")
        found.append(str(service.endpoints[0].paths[0].operations[0].target))
    assert ["round" in one for one in found] == [True, False]


def test_private_names_and_unknown_modules_bind_nothing() -> None:
    assert "Enum" in exported("enum")
    assert "sqrt" in exported("math")  # a module without __all__
    assert not any(name.startswith("__") for module in MODULES for name in exported(module))
    assert exported("not_installed_anywhere") == exported("antigravity") == frozenset()
