"""Compile the libraries of ``mup.native`` at installation, with a C compiler or ``ziglang``.

An installation from a clone needs nothing but Python and an installer: where the machine has no C compiler,
one comes as a wheel, for the time of the build alone.
"""

from __future__ import annotations

import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ZIGLANG = "ziglang>=0.13"


class Compilation(BuildHookInterface[Any]):
    """Compiles into the package: of a wheel, or of the clone if that is installed editable."""

    def dependencies(self) -> list[str]:
        """Return the compiler the build needs, if this machine has none."""
        if self.target_name != "wheel":
            return []
        building = _native(self.root)
        return [] if any(map(building.works, building.compilers())) else [ZIGLANG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files of a wheel are collected."""
        if self.target_name != "wheel":
            return
        building = _native(self.root)
        from mup.native.libraries import LIBRARIES  # noqa: PLC0415 - found once the line above has run

        root = Path(self.root)
        built = root / "mup" / "native" / "built"
        if version == "editable":
            for library in LIBRARIES:
                # Its name says which sources it is made of.
                if not (built / library.file_name(root)).exists():
                    building.build(library, built, root)
            return
        self.folder = tempfile.TemporaryDirectory()
        for library in LIBRARIES:
            file = building.build(library, Path(self.folder.name), root)
            build_data["force_include"][str(file)] = f"mup/native/built/{file.name}"
        # Compiled code calls nothing of Python, so one wheel does for all its versions.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def _native(root: str) -> ModuleType:
    """Return ``mup.native.building`` of the sources that are being built, without what ``mup`` imports."""
    if "mup" not in sys.modules:
        package = ModuleType("mup")
        package.__path__ = [str(Path(root) / "mup")]
        sys.modules["mup"] = package
    from mup.native import building  # noqa: PLC0415

    return building
