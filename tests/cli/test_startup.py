"""Commands load what they need, when they need it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import saved, shop

from mup.workload.machine import this_machine

FAST = ["--precision", "0.1", "--no-difference", "--no-saturation"]
# What projects, TLS, clusters and terminals need, and emoji, which nothing needs.
STRANGERS = {
    "concurrent.futures",
    "importlib.metadata",
    "mup.project",
    "rich._emoji_codes",
    "rich.progress",
    "scipy",
    "simulator.studies.grids.elsewhere",
    "ssl",
    "tomllib",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["whatif", "--clients", "8", *FAST],
        ["whatif", "--clients", "8", "--engine", "analytic"],
        ["simulate", "--precision", "0.1"],
    ],
    ids=lambda words: " ".join(words[:1] + words[3:]),
)
def test_a_prediction_loads_nothing_it_has_no_use_for(words: list[str], tmp_path: Path) -> None:
    """Of a calibrated model, whose machine has a history, and with output that goes to a file."""
    here = this_machine()
    provenance = {"hostname": here.hostname, "cores": here.cores, "monitored_speed": 2000.0, "speed": 1000.0}
    file = saved(tmp_path, replace(shop(), provenance=provenance))
    code = (
        "import atexit, json, sys\nfrom mup.cli.main import main\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules))))\n"
        f"main({[words[0], file, *words[1:]]!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert {"simulator.api", "mup.cli.output.tables"} <= loaded
    # Percentiles of simulations need masked arrays, as does np.unique, and estimates nothing of them.
    strangers = {*STRANGERS, "numpy.ma"} if "analytic" in words else STRANGERS
    assert loaded & strangers == set()
