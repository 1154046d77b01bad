"""Pictures of the learned layered systems beside the true ones, from results of layered.py.

    python benchmarks/learning/layered.py --instances 8 --replications 30
    python benchmarks/learning/layered_pictures.py --replications 30      # 1 min; writes SVG into the docs

*Queue lengths over time*, a file per system and a panel per task: of its instance with the largest error of a
response time, and of several unseen starts the one that is predicted worst.
*What if there were k times the clients*: errors of response times, median and largest over the instances.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from layered import DT, SAMPLES, add_settings, stored_rows
from machine import describe
from topologies import TOPOLOGIES, instance

from analyzer.learning.lqn_columns import match_columns
from mup.cli.output.chart import Curve, Panel, draw_panels
from simulator.networks.inlined import inline
from simulator.networks.inlined_fluid import FluidCell
from simulator.networks.inlined_process import InlinedProcess

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "pictures"
BEGINNINGS, RUNS = 10, 200
THESIS = 5.0
"""Percent; figure 19 of the thesis."""
SEED = 5000
"""Of beginnings and simulations; those that were learned from have others."""

FloatArray = npt.NDArray[np.float64]


def worst_error(row: dict[str, Any]) -> float:
    """Return the largest error of a response time of an instance."""
    return max(abs(e) for e in row["response"].values())


def queue_lengths(row: dict[str, Any]) -> str:
    """Return a picture of one instance: true, learned, and as the fluid alone would have it."""
    model = instance(row["system"], row["seed"])
    lqn = inline(model)
    tasks = [t.name for t in model.tasks if t.role != "reference"]
    counts = match_columns(lqn, tasks).counts
    process, cell = InlinedProcess(lqn), FluidCell(lqn)
    starts = process.random_starts(BEGINNINGS, seed=SEED + row["seed"])
    learned = lqn.means * (1 + np.array(row["time_error"]))
    alone = lqn.means * (1 + np.array(row["time_error_fluid"]))

    def simulated(means: FloatArray, seed: int) -> FloatArray:
        found = process.simulate(means, starts, dt=DT, samples=SAMPLES, replications=RUNS, seed=seed)
        return np.asarray(found.x @ counts.T)

    true, corrected = simulated(lqn.means, SEED), simulated(learned, SEED + 1)
    errors = np.abs(true - corrected).sum(axis=2).mean(axis=1)
    worst = int(np.argmax(errors))
    fluid = cell.trajectory(alone, starts[worst], dt=DT, samples=SAMPLES)[0] @ counts.T
    curves = {
        f"true: mean of {RUNS} simulated runs": true[worst],
        "learned and corrected, simulated as often": corrected[worst],
        "fluid alone, uncorrected": fluid,
    }
    panels = [
        Panel(f"requests at {task}", {name: _curve(found[:, i]) for name, found in curves.items()})
        for i, task in enumerate(tasks)
    ]
    moments = np.arange(SAMPLES) * DT
    # A label per second: there is no room for more.
    names = [f"{t:.0f}" if abs(t - round(t)) < DT / 2 else "" for t in moments]
    title = f"{row['system']} {row['seed']}, {row['clients']} clients, from a beginning not learned from"
    return draw_panels(title, "seconds", names, panels)


def what_ifs(rows: Sequence[dict[str, Any]]) -> str:
    """Return a picture of the errors of response times over k, a panel per system."""
    factors = sorted(map(int, rows[0]["response"]))
    panels = []
    for name in TOPOLOGIES:
        mine = [r for r in rows if r["system"] == name]
        if not mine:
            continue
        errors = np.array([[100 * abs(r["response"][str(k)]) for k in factors] for r in mine])
        curves = {
            "largest of the thesis, at most": _curve(np.full(len(factors), THESIS)),
            "largest": _curve(errors.max(axis=0)),
            "median": _curve(np.median(errors, axis=0)),
        }
        panels.append(Panel(f"{name}, instances: {len(mine)}; percent", curves))
    title = "Error of the response time when there are k times the clients"
    return draw_panels(title, "k", list(map(str, factors)), panels)


def _curve(values: FloatArray) -> Curve:
    nothing = [None] * len(values)
    return Curve(list(range(len(values))), values.tolist(), nothing, nothing)


def main() -> None:
    """Draw everything there are results of."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add_settings(parser)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write")
    options = parser.parse_args()
    print(describe("numpy"))
    rows = stored_rows(options)
    if not rows:
        parser.error(f"{options.results} has no results with these settings; run layered.py with them first")
    options.folder.mkdir(parents=True, exist_ok=True)
    pictures = {"what-if": what_ifs(rows)}
    for name in TOPOLOGIES:
        mine = [r for r in rows if r["system"] == name]
        if mine:
            pictures[name] = queue_lengths(max(mine, key=worst_error))
    for name, text in pictures.items():
        file = options.folder / f"learning-lqn-{name}.svg"
        file.write_text(text + "\n", encoding="utf-8")
        print(f"wrote {file}")


if __name__ == "__main__":
    main()
