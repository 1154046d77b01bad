"""How often paths are taken several users say, too, unless they take them more or less often than one user."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.components import Components
from analyzer.calibration.rundir import PartInfo, ProcessUse, RunInfo, Window, fingerprints, load_run
from analyzer.static import analyse
from mup.events.record import Event

SOURCE = """\
from mup import EP, MS


class S(MS):
    @EP("/e/")
    def e(self, comm):
        if comm.params.get("known"):
            comm.respond(1)
        else:
            comm.respond(2)
"""
WORKER = 7
COUNTS = {"cold": 20, "hot": 60, "burst": 160}
ROUNDS = 3


def calibrated(
    folder: Path, *, one: Sequence[float], several: Sequence[float], components: Components | None = None
) -> Calibration:
    """Calibrate a service in whose rounds this share of the requests, of 1 to 3, takes the first path."""
    source, run = folder / "source", folder / "run"
    source.mkdir()
    run.mkdir()
    (source / "services.py").write_text(SOURCE)
    found = analyse(source)
    first, second = (path.operations[0].site for path in found.endpoint("S/e/").paths)
    log = LogFile(run / "S.0.w0.mlog", service="S")
    windows, request = [], 0
    for position in range(ROUNDS * len(COUNTS)):
        start, phase = 2000.0 * position, list(COUNTS)[position % len(COUNTS)]
        share = (several if phase == "burst" else one)[position // len(COUNTS)]
        for k in range(COUNTS[phase]):
            request += 1
            t = start + k * 1000.0 / COUNTS[phase]
            site = first if k < share * COUNTS[phase] else second
            log.add(Event.BEGIN, request, t, cpu=0, name="S/e/")
            log.add(Event.END, request, t + 1, cpu=1, name="S/e/", site=site)
            log.add(Event.DONE, request, t + 1, cpu=1, name="S/e/")
        ends = round((start + 1000.0) * 1e6)
        used = {str(WORKER): COUNTS[phase] / 1e3}
        windows.append(Window(round(start * 1e6), ends, phase=phase, cpu=used))  # type: ignore[arg-type]
    log.close()
    parts = [PartInfo(windows=windows, processes=[ProcessUse(role="worker", service="S", pid=WORKER)])]
    RunInfo(project="s", cores=2, parts=parts, fingerprints=fingerprints(found)).save(run)
    return calibrate(load_run(run), found, name="s", components=components or Components())


def share_of_first(calibration: Calibration) -> float:
    (entry,) = calibration.model.task("S").entries
    (fork,) = (p for p in entry.precedences if p.fork == "or")
    return fork.probabilities[0]


def doubt(calibration: Calibration) -> float:
    """Return the standard deviation of the share over the replicates."""
    assert calibration.model.uncertainty is not None
    (shares,) = zip(
        *(next(iter(r.probabilities.values()))[:1] for r in calibration.model.uncertainty.replicates),
        strict=True,
    )
    return float(np.std(shares))


def test_bursts_say_it_too(tmp_path: Path) -> None:
    """Their executions are counted with the others, and make it known more surely."""
    shares = {"one": (0.2, 0.25, 0.3), "several": (0.25, 0.2625, 0.2875)}
    for name in ("both", "alone"):
        (tmp_path / name).mkdir()
    both = calibrated(tmp_path / "both", **shares)
    alone = calibrated(tmp_path / "alone", **shares, components=Components(bursts=False))
    assert share_of_first(alone) == pytest.approx(0.25, abs=1e-3)
    number = {name: COUNTS["burst"] if name == "burst" else 80 for name in ("one", "burst")}
    pooled = (number["one"] * 0.25 + number["burst"] * 0.26667) / sum(number.values())
    assert share_of_first(both) == pytest.approx(pooled, abs=1e-3)
    assert doubt(both) < 0.7 * doubt(alone)
    assert not any("more or less often" in warning for warning in both.warnings)


def test_several_users_who_take_other_paths_say_nothing_of_one(tmp_path: Path) -> None:
    """The frequencies are those of one user, and a warning says that they change."""
    found = calibrated(tmp_path, one=(0.2, 0.25, 0.3), several=(0.5, 0.55, 0.6))
    assert share_of_first(found) == pytest.approx(0.25, abs=1e-3)
    assert any("S/e/: several users at once take its paths more or less often" in w for w in found.warnings)


def test_a_small_difference_is_none_to_warn_of(tmp_path: Path) -> None:
    """It may be chance, and may not: then one user says it alone, without a word."""
    found = calibrated(tmp_path, one=(0.25, 0.25, 0.25), several=(0.35, 0.35, 0.35))
    assert share_of_first(found) == pytest.approx(0.25, abs=1e-3)
    assert not any("more or less often" in warning for warning in found.warnings)
