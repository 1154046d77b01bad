"""The modules of each compiled library, and the sources it depends on."""

from __future__ import annotations

import hashlib
import platform
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["ANALYTIC", "ESTIMATION", "LIBRARIES", "MANIFEST", "ROOT", "SIMULATOR", "Library"]

ROOT: Final = Path(__file__).parents[2]
"""The folder of the packages."""

MANIFEST: Final = "mup_manifest"
"""Name of the text in a library that says, as JSON, what its functions take and return."""

TRANSLATOR: Final = ("kinds", "library", "subset", "translation", "building")


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library.

    Attributes:
        name: Part of its file's name.
        modules: Whose functions Python may call.
        others: Modules with constants, kinds and functions that these use.
    """

    name: str
    modules: tuple[str, ...]
    others: tuple[str, ...]

    def files(self, root: Path = ROOT) -> list[Path]:
        """Return the sources it is made of."""
        paths = [root.joinpath(*name.split(".")) for name in (*self.modules, *self.others)]
        paths += [Path(__file__).parent / name for name in TRANSLATOR]
        return [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in paths]

    def file_name(self, root: Path = ROOT) -> str:
        """Return the name of the library made of the sources as they are now, for this kind of machine."""
        return _file_name(self, root)


@cache
def _file_name(library: Library, root: Path) -> str:
    whole = hashlib.blake2b(digest_size=12)
    for file in library.files(root):
        whole.update(file.read_bytes())
        whole.update(b"\0")
    return f"{library.name}-{sys.platform}-{platform.machine()}-{whole.hexdigest()}.so"


SIMULATOR: Final = Library(
    "simulator",
    modules=(
        "simulator.machine.compiled.interpreter",
        "simulator.machine.compiled.snapshot",
        "simulator.machine.setups",
        "simulator.machine.variates",
        "simulator.networks.fluid",
        "simulator.networks.inlined_fluid",
        "simulator.networks.inlined_process",
        "simulator.networks.service_simulation",
        "simulator.networks.simulation",
    ),
    others=(
        "mup.native.shapes",
        "simulator.machine.compiled.accounts",
        "simulator.machine.compiled.parts",
        "simulator.machine.compiled.servers",
        "simulator.machine.compiled.sleep",
        "simulator.machine.compiled.state",
        "simulator.machine.compiled.sticky",
        "simulator.program",
        "simulator.program.instructions",
        "simulator.program.tables",
    ),
)

ESTIMATION: Final = Library(
    "estimation",
    modules=(
        "analyzer.blackbox.departures",
        "analyzer.blackbox.series_filter",
        "analyzer.estimation.fluid",
        "analyzer.estimation.krylov",
        "analyzer.estimation.markov",
    ),
    others=("mup.native.shapes",),
)

ANALYTIC: Final = Library(
    "analytic",
    modules=("simulator.analytic.compiled.iteration", "simulator.analytic.compiled.networks"),
    others=(
        "mup.native.shapes",
        "simulator.analytic.approximations.convolution",
        "simulator.analytic.approximations.general_service",
        "simulator.analytic.approximations.interlock",
        "simulator.analytic.approximations.parallel_branches",
        "simulator.analytic.approximations.replicas",
        "simulator.analytic.approximations.shared_station",
        "simulator.analytic.compiled.entry_times",
        "simulator.analytic.compiled.evaluation",
        "simulator.analytic.compiled.loads",
        "simulator.analytic.compiled.queues",
        "simulator.analytic.compiled.records",
        "simulator.analytic.compiled.feedback",
        "simulator.analytic.compiled.special",
        "simulator.analytic.compiled.views",
        "simulator.analytic.entries.entry_times",
        "simulator.analytic.entries.feedback",
        "simulator.analytic.evaluation",
        "simulator.analytic.fixed_point",
        "simulator.analytic.operating_point",
    ),
)

LIBRARIES: Final = (SIMULATOR, ANALYTIC, ESTIMATION)
