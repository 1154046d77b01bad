"""What do users notice of faults? ``python benchmarks/faults COMMAND``: the entry point."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Started as a folder, Python looks for modules inside it; the package itself is one level up.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from faults.command import main

    sys.exit(main())
