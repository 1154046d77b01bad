"""Imports of modules by their earlier names, with a warning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

__all__ = ["MOVED", "install"]

MOVED: Final = {
    f"simulator.{old}": f"simulator.{new}"
    for old, new in {
        "autoscale": "studies.autoscale",
        "closed_network": "networks.closed_network",
        "grids": "studies.grids",
        "inlined": "networks.inlined",
        "inlined_fluid": "networks.inlined_fluid",
        "inlined_process": "networks.inlined_process",
        "network_fluid": "networks.fluid",
        "network_model": "networks.model",
        "network_prediction": "networks.prediction",
        "network_simulation": "networks.simulation",
        "prediction": "studies.prediction",
        "product_form": "analytic.product_form",
        "rehearsal": "studies.rehearsal",
        "result": "figures.result",
        "saturation": "studies.saturation",
        "variates": "machine.variates",
        "whatif": "studies.whatif",
    }.items()
}


class _Moved:
    """Finds and loads them, as the classes of ``importlib.abc`` do, whose import takes long."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        itself: Any = self  # has what a loader needs
        return ModuleSpec(fullname, itself) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Let an ordinary module be made."""

    def exec_module(self, module: ModuleType) -> None:
        name, new = module.__name__, MOVED[module.__name__]
        warnings.warn(f"{name} is now {new}", DeprecationWarning, stacklevel=2)
        sys.modules[name] = importlib.import_module(new)


def install() -> None:
    """Find the modules by their old names from now on."""
    sys.meta_path.append(_Moved())
