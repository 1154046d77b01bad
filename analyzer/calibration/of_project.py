"""Calibrated model of a project, with all that is known about where it runs.

``calibrate`` fills numbers in; this finds what else belongs to a prediction: the profile of the machine of
the run, where tasks are deployed, and by how much predictions were off on other systems.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.components import ALL, Components
from analyzer.calibration.observed import FloatArray, Observed
from analyzer.calibration.placement import placement_of
from analyzer.calibration.rundir import Run
from analyzer.host.profile import HostProfile, current_profile, load_profile
from analyzer.static.application import Application
from mup.lqn import Discrepancy, Uncertainty
from mup.project import Project

__all__ = ["calibrate_project", "known_discrepancy"]

DISCREPANCY = Path(__file__).with_name("discrepancy.json")
"""Written by ``python benchmarks/accuracy discrepancy``."""


def calibrate_project(
    project: Project,
    run: Run,
    application: Application,
    *,
    client: str | None = None,
    partial: bool = False,
    host: str | Path | None = None,
    components: Components = ALL,
    draw: Callable[[Observed], Sequence[FloatArray]] | None = None,
) -> Calibration:
    """Calibrate a project's model from a run.

    Args:
        project: Says where things are deployed.
        run: The exploratory run.
        application: The application as its source is now.
        client: As for ``calibrate``.
        partial: As for ``calibrate``.
        host: Profile of the machine of the run; None = that of this machine, if the run is from it.
        components: As for ``calibrate``.
        draw: As for ``calibrate``.

    Raises:
        StaleLogError, LogError: As ``calibrate``.
        ProjectError: A profile cannot be read.
    """
    profile, warning = _profile(run, host)
    placement = placement_of(project)
    elsewhere = (one.warning for one in placement.machines.values() if isinstance(one, HostProfile))
    warnings = tuple(text for text in (warning, *elsewhere) if text)
    found = calibrate(
        run,
        application,
        name=project.name,
        client=client,
        partial=partial,
        host=profile,
        placement=placement,
        components=components,
        draw=draw,
    )
    discrepancy = known_discrepancy()
    model = found.model
    if discrepancy is not None:
        known = model.uncertainty or Uncertainty()
        model = replace(model, uncertainty=replace(known, discrepancy=discrepancy))
    if not warnings:
        return replace(found, model=model)
    together = (*found.warnings, *warnings)
    model = replace(model, provenance={**model.provenance, "warnings": list(together)})
    return replace(found, model=model, warnings=together)


def known_discrepancy() -> Discrepancy | None:
    """Return by how much predictions were off on the training systems of the test bed."""
    try:
        text = DISCREPANCY.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return Discrepancy.from_json(json.loads(text))


def _profile(run: Run, host: str | Path | None) -> tuple[HostProfile | None, str]:
    """Return the profile of the machine of a run, and what is wrong if there is none."""
    if host is not None:
        profile = load_profile(host)
        return profile, profile.warning
    profile, reason = current_profile()
    here, there = profile.identity.hostname, run.info.hostname
    if there and here != there:
        return None, (
            f"the run is from the machine {there!r}, whose profile is not known: its cores are taken to be"
            " shared ideally. 'mup host -o FILE' there, then 'mup model --host-profile FILE' here"
        )
    if not profile.measured:
        return None, (
            f"cores are taken to be shared ideally ({reason}):"
            " 'mup host' measures this machine in half a minute"
        )
    return profile, profile.warning
