"""Accuracy of predictions. ``python benchmarks/accuracy COMMAND`` is the test bed's entry point."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Started as a folder, Python looks for modules inside it; the package itself is one level up.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from accuracy.command import main

    sys.exit(main())
