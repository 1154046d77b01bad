"""The thesis's evaluation on real runs: ``python benchmarks/case_studies COMMAND``."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Started as a folder, Python looks for modules inside it; the package itself is one level up.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from case_studies.command import main

    sys.exit(main())
