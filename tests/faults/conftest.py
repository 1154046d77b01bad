"""Let the tests import what the long forms of themselves use: ``benchmarks`` is a folder of scripts."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
