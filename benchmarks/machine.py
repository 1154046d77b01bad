"""Print what a figure depends on: machine, versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path


def describe(*packages: str) -> str:
    """Return one line on machine, Python and the versions of some packages."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.partition(":")[2].strip()
            for line in cpuinfo.read_text().splitlines()
            if "model name" in line
        ]
        model = names[0] if names else model
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return (
        f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}{', ' if versions else ''}{versions}"
    )
