"""Systems, loads, samples and methods of each figure of the paper, and its statements.

The figures themselves are curves; ``paper`` holds what the text states about them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["LOADS", "Setting", "figures", "table1"]

LOADS = (20, 60, 100, 140, 180)
BUSY = (160, 180, 190, 200, 220, 260)
SMALL = ("bl", "erps", "minps", "ldps")
LARGE = ("bl", "erps", "fmlps", "ldps")


@dataclass(frozen=True)
class Setting:
    """One curve's system.

    Attributes:
        figure: Of the paper, ``table1`` or ``coverage``.
        cores, threads, classes, ratio, switch, scv, shared: Of the system (``station.System``).
        samples: Requests per class.
        methods: To run.
        loads: Numbers of users.
        paper: What the paper's text says about its curves.
    """

    figure: str
    cores: int
    threads: int
    methods: tuple[str, ...]
    classes: int = 2
    ratio: float = 2.0
    switch: float = 0.1
    scv: float = 1.0
    shared: bool = True
    samples: int = 100
    loads: tuple[int, ...] = LOADS
    paper: str = field(default="", compare=False)

    @property
    def label(self) -> str:
        """Return what distinguishes the setting, for tables and as its key."""
        parts = [f"V={self.cores} W={self.threads} R={self.classes}"]
        parts += [f"ratio={self.ratio:g}"] if self.ratio != 2 else []
        parts += [f"switch={self.switch:g}"] if self.switch != 0.1 else []
        parts += [f"scv={self.scv:g}"] if self.scv != 1 else []
        parts += [] if self.shared else ["JSQ"]
        return ", ".join([*parts, f"{self.samples} samples"])


def figures() -> list[Setting]:
    """Return the settings of figures 2, 4, 5, 7 and 9 to 16, and of pools of 64 threads under high load."""
    windows = ("bl", "ur", "pf", "fcfs", "ldps")
    four = [
        Setting("4a", 2, 8, ("bl", "ldps"), samples=n, paper=f"BL {e} % on average")
        for n, e in ((100, 8.34), (1000, 2.45), (10000, 0.86))
    ]
    same = "BL does not depend on W"
    return [
        Setting("2a", 1, 2, windows, paper="NNLR and FCFS perform well"),
        Setting("2b", 2, 4, windows, paper="NNLR and FCFS degrade severely"),
        *four,
        *(Setting("4b", 2, w, ("bl", "ldps"), loads=(100,), paper=same) for w in (4, 8, 16, 32, 64)),
        Setting(
            "5a",
            1,
            2,
            ("bl", "rps", "erps", "mlps", "ldps"),
            paper="RPS, ERPS as BL; MLPS worse at high load",
        ),
        Setting(
            "5b", 4, 16, ("bl", "rps", "erps", "mlps", "ldps"), paper="RPS 145, 52 % at 20, 60; ERPS twice BL"
        ),
        Setting("7a", 4, 16, SMALL, paper="MINPS as BL at low load, as ERPS at high load"),
        Setting("7b", 4, 32, SMALL, paper="the same with more threads"),
        Setting("9a", 2, 8, SMALL, paper="MINPS and ERPS similar"),
        Setting("9b", 2, 8, SMALL, samples=1000, paper="MINPS as BL, ERPS much worse at low load"),
        Setting("10a", 8, 64, LARGE, paper="FMLPS as BL, ERPS worse at low load"),
        Setting("10b", 8, 64, LARGE, samples=1000, paper="FMLPS better than ERPS, but at high load"),
        Setting("11a", 2, 8, SMALL, ratio=1000, paper="as 9a"),
        Setting("11b", 8, 64, LARGE, ratio=1000, paper="as 10a"),
        Setting("12a", 2, 8, SMALL, scv=0.2, paper="MINPS close to BL"),
        Setting("12b", 2, 8, SMALL, scv=2, paper="MINPS, ERPS similar to BL"),
        Setting("13a", 8, 64, LARGE, scv=0.2, paper="FMLPS as BL; ERPS worse at low load"),
        Setting("13b", 8, 64, LARGE, scv=2, paper="all similar"),
        Setting("14a", 8, 64, (*LARGE, "fmlps-he"), scv=10, paper="FMLPS (HE) well but at high load"),
        Setting("14b", 8, 64, (*LARGE, "fmlps-he"), scv=10, samples=500, paper="smaller errors than 14a"),
        Setting("15", 4, 16, SMALL, shared=False, paper="slightly higher than 7a"),
        *(
            Setting("16", v, 4 * v, ("mlps", "fmlps", "ldps"), loads=(140,), paper="FMLPS 1 to 4 min")
            for v in (1, 2, 4, 8, 16)
        ),
        *(
            Setting("pool64", v, 64, ("mlps", "ldps"), loads=BUSY, paper="MLPS over-estimates at high loads")
            for v in (2, 4, 8, 16)
        ),
    ]


def table1(*, quick: bool = False) -> Iterator[Setting]:
    """Yield all settings of the paper's table 1, for the recommended method."""
    cores, ratios = (1, 2, 4, 8, 16), (2, 4, 8, 16, 32)
    for v, per_core, r, ratio, switch in itertools.product(
        cores[::4] if quick else cores,
        ratios[::4] if quick else ratios,
        (2,) if quick else (1, 2, 3),
        (2, 10, 1000),
        (0.1,) if quick else (0.1, 0.001),
    ):
        if r == 1 and (ratio != 2 or switch != 0.1):
            continue  # neither says anything about a single class
        yield Setting("table1", v, v * per_core, ("bl", "ldps"), classes=r, ratio=ratio, switch=switch)
