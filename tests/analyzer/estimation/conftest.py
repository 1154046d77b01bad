"""Let the tests use the sampler of the benchmarks: ``benchmarks`` is a folder of scripts, not a package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
