"""Let the tests import what they test: ``benchmarks`` is a folder of scripts, not an installed package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
