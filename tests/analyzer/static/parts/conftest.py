"""The fixture that walks small pieces of code."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from probing import probe

__all__ = ["probe"]
