"""Parts of a calibrated model, and the purpose of each.

Every component can be left out, to see by how much predictions get worse (``benchmarks/accuracy``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["ALL", "Components"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Parts of calibration; all of them unless said otherwise.

    Attributes:
        host: Everything on the machine shares its cores; else every task has cores of its own, as many as it
            can use (the thesis's model).
        cpu_clock: Processor time and delays are told apart; else all wall time is charged to the processor.
        framework: Processor time of fronts and workers outside endpoints.
        generator: The load generator works on the same machine.
        database: A database on the same machine works there; else it is a delay.
        scheduler: The host's measured scheduler, and how it slows down while mostly idle; else its cores are
            shared ideally, at one speed.
        background: Housekeeping, which no request asks for, works on the machine, too.
        contention: Waiting for cores that a simulation makes anew is taken off the delays.
        load_dependence: Processor time depends on how long workers slept (``setup``), or on the rate of
            requests.
        bursts: Rounds of several clients say how, too, where the exploration has such rounds.
        setup: It depends on how long they slept, where that explains it; else always on the rate. None: so
            where users think for constant times, which no round shortened; else only where rounds of several
            clients confirm it for every service.
        speed: Times are corrected for the speed of the machine in each window.
        outliers: Stalls of the machine are left out of delays.
        distributions: Families by likelihood; else all times are exponential.
        variants: Path probabilities per calling site, where they differ.
    """

    host: bool = True
    cpu_clock: bool = True
    framework: bool = True
    generator: bool = True
    database: bool = True
    scheduler: bool = True
    background: bool = True
    contention: bool = True
    load_dependence: bool = True
    bursts: bool = True
    setup: bool | None = None
    speed: bool = True
    outliers: bool = True
    distributions: bool = True
    variants: bool = True

    @property
    def left_out(self) -> list[str]:
        """Names of what is missing of what is there by default."""
        return [f.name for f in fields(self) if f.default and not getattr(self, f.name)]


ALL = Components()
