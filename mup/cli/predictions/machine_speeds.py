"""The machine speed of a prediction: what ``--machine-speed`` asks for, and how it is printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mup.errors import UsageError

if TYPE_CHECKING:
    from mup.lqn.machine_speed import MachineSpeed
    from mup.lqn.model import Model
    from simulator.studies.prediction import Prediction
    from simulator.studies.whatif import Axis

__all__ = ["Assumed", "assumed_speed", "mostly_the_machine"]

NOW = "now"


@dataclass(frozen=True, slots=True)
class Assumed:
    """A model at the speed its machine is taken to have.

    Attributes:
        model: At that speed.
        machine: What its predictions have to allow for; None if nothing is known.
        factor: The speed relative to the exploration; None if it is that of the exploration.
        notes: What a reader must know, one sentence each.
    """

    model: Model
    machine: MachineSpeed | None
    factor: float | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any] | None:
        """Return the object under ``machine_speed``; None if no speed was asked for."""
        if self.factor is None:
            return None
        return {
            "factor": self.factor,
            "allowed_for": None if self.machine is None else self.machine.to_json(),
            "notes": list(self.notes),
        }


def assumed_speed(model: Model, text: str | None, changed: Sequence[Axis] = (), *, seconds: float) -> Assumed:
    """Return a model at the speed that is asked for.

    Args:
        model: Calibrated.
        text: ``now``, a factor, or a range ``LOW..HIGH``, relative to the exploration; None = whatever the
            machine's history makes likely.
        changed: What else is changed.
        seconds: How long the real run is that predictions are for; of repeats, all together.

    Raises:
        UsageError: The text is none of these, the speed of the machine is changed otherwise, too, the machine
            cannot be probed, or the model has none.
    """
    from analyzer.host.measured_machine import measured_processors, tells_machine

    if text is None and not tells_machine(model):
        return Assumed(model, None)
    from analyzer.host.machine_speed import machine_now, machine_speed, speed_now, speed_range
    from mup.lqn.machine_speed import on_machine_of_speed

    if text is None:
        known = machine_speed(model, seconds=seconds)
        return Assumed(model, known.machine, None, known.notes)
    also = {c.name for axis in changed for c in axis if c.kind == "speed"} & set(measured_processors(model))
    if also:
        name = min(also)
        raise UsageError(
            f"--machine-speed and --speed {name}=F both say how fast {name!r} is",
            hint="leave one of them out: --speed is that of other hardware, --machine-speed that of the same",
        )
    notes: tuple[str, ...] = ()
    machine: MachineSpeed | None
    if text == NOW:
        now = speed_now(model)
        known = machine_now(model, now, seconds=seconds)
        machine, factor = known.machine, now.factor
        note = (
            f"this machine is now {factor:.3g} times as fast as during the exploration (probed for"
            f" {now.seconds:.0f} s); predictions are for this speed"
        )
        notes = (note, *known.notes)
    else:
        factor, machine = speed_range(model, *_range(text))
    processors = () if machine is None else machine.processors
    return Assumed(on_machine_of_speed(model, processors, factor), machine, factor, notes)


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition("..")
    try:
        return float(low), float(high or low)
    except ValueError:
        raise UsageError(
            f"--machine-speed: must be 'now', a factor, or a range LOW..HIGH, got {text!r}",
            hint="for example --machine-speed 0.9..1.1",
        ) from None


def mostly_the_machine(predictions: Iterable[Prediction | None]) -> str:
    """Say that most of the uncertainty of response times is the machine, if that is so; else ""."""
    found = [p for p in predictions if p is not None]
    shares = [p.response_time.parts.get("machine_speed", 0.0) for p in found]
    machines = [p.machine for p in found if p.machine is not None]
    if not machines or not shares or sum(shares) <= len(shares) / 2:
        return ""
    return f"Most of the uncertainty is the machine: {machines[0].source}."
