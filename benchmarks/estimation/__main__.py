"""Demand estimators: ``python benchmarks/estimation`` makes the paper's figures, and more."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Started as a folder, Python looks for modules inside it; the package itself is one level up.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from estimation.command import main

    try:
        main()
    except KeyboardInterrupt:
        print("stopped; the same command continues", file=sys.stderr)
        sys.exit(130)
