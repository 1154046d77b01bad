"""Compiled code stays inside its arrays: a library that checks indices runs random models."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mup.native.building import build
from mup.native.libraries import SIMULATOR

TESTS = Path(__file__).parents[1]

RUN = """
import json, sys
from pathlib import Path
from mup.native import loading
if sys.argv[1]:
    loading._libraries["simulator"] = loading.opened(Path(sys.argv[1]))
sys.path += [sys.argv[2], sys.argv[2] + "/simulator"]
from random_models import random_model
from mup.errors import MupError
from simulator import simulate
found = []
for number in range(int(sys.argv[3])):
    try:
        result = simulate(random_model(number), horizon=200.0, seed=number, max_events=4000).to_json()
        result.pop("wall_seconds")
        found.append(result)
    except MupError as error:
        found.append(str(error))
print(json.dumps(found))
"""


def results(file: str, models: int) -> list[object]:
    """Return the results of random models, by a library (the usual one if none is named)."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, file, str(TESTS), str(models)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1000:]
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_no_index_is_outside_of_its_array(tmp_path: Path) -> None:
    """The process would end at the first one, and say which it was. Results are those of the usual library."""
    checked = build(SIMULATOR, tmp_path, checked=True)
    assert results(str(checked), 30) == results("", 30)
