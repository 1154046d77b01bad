"""Stop rule: how well a run knows its endpoints and paths by now, and when that is enough.

The rule is the thesis's (section 5.2.2): the 95 % batch-means interval of every endpoint's execution time,
one batch per round, is within 1 % of its mean. Here a path has to meet it, too, in proportion to how often
it is taken: what is not known about a path must not move the mean of its endpoint by more. The executions
that take a body of a choice count as a path.

The rounds without think times count, for they show many more executions. What the others reached is
reported beside it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from analyzer.calibration.executions import Execution
from analyzer.calibration.matching import Decision, Recognizer
from analyzer.calibration.rundir import PathUse, Width, Window
from analyzer.static.application import Application, Operation, Path
from analyzer.static.translate import Place
from mup.statistics.groups import half_width_of_sums

__all__ = ["Knowledge", "KnownPaths", "State", "known_paths"]


@dataclass(frozen=True, slots=True)
class State:
    """What is known after some rounds.

    Attributes:
        widths: Per endpoint, from the rounds that count.
        cold_widths: Per endpoint, from the rounds with think times.
        paths: Per endpoint and scenario, every path of its source, and every body of its choices.
        unmatched: Per endpoint and scenario, executions that fit none of them.
        worst: The largest relative half-width of an endpoint, or of a path in proportion to its share; None
            while one of them has too few batches, or none was seen.
        widest: The endpoint it belongs to, or the first that has too few batches.
    """

    widths: Mapping[str, Width]
    cold_widths: Mapping[str, Width]
    paths: Mapping[str, Sequence[PathUse]]
    unmatched: Mapping[str, int]
    worst: float | None
    widest: str

    @property
    def seen(self) -> int:
        """Paths and bodies that were taken."""
        return sum(1 for uses in self.paths.values() for use in uses if use.executions)

    @property
    def total(self) -> int:
        """Paths and bodies there are."""
        return sum(len(uses) for uses in self.paths.values())


@dataclass(slots=True)
class _Tally:
    """Sum and number of execution times per round."""

    sums: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    sizes: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, number: int, seconds: float) -> None:
        self.sums[number] += seconds
        self.sizes[number] += 1

    def count(self, rounds: Iterable[int]) -> int:
        return sum(self.sizes.get(r, 0) for r in rounds)

    def width(self, rounds: Collection[int]) -> Width | None:
        filled = [r for r in rounds if self.sizes.get(r)]
        if not filled:
            return None
        sums, sizes = [self.sums[r] for r in filled], [self.sizes[r] for r in filled]
        return Width(
            mean=sum(sums) / sum(sizes),
            half_width=half_width_of_sums(sums, sizes),
            executions=sum(sizes),
            batches=len(filled),
        )


class Knowledge:
    """Collects the executions of a run, round by round.

    Args:
        application: Its paths are what there is to see.
        client: The client class that runs.
        wanted: The endpoints that have to be known well; None = all.
    """

    def __init__(self, application: Application, client: str, wanted: Collection[str] | None = None) -> None:
        self._wanted = wanted
        self._scenario = f"{client}.scenario"
        self._known = known_paths(application, client)
        self._endpoints: dict[str, _Tally] = defaultdict(_Tally)
        self._paths: dict[tuple[str, int | None], _Tally] = defaultdict(_Tally)

    def add(self, executions: Iterable[Execution], rounds: Mapping[int, Window]) -> None:
        """Add executions; those inside no round do not count.

        Args:
            executions: Of one deployment.
            rounds: Its rounds by number, in order of time.
        """
        numbers, windows = list(rounds), list(rounds.values())
        starts = [w.start for w in windows]
        for execution in executions:
            last = execution.done or execution.end
            if execution.failed or last is None or execution.end is None:
                continue
            position = bisect_right(starts, execution.begin.time) - 1
            if position < 0 or last.time > windows[position].end:
                continue
            number = numbers[position]
            seconds = (execution.end.time - execution.begin.time) / 1e9
            label = execution.endpoint
            if execution.role != "client":
                self._endpoints[label].add(number, seconds)
            if label in self._known:
                for taken in self._known[label].taken(execution) or (None,):
                    self._paths[label, taken].add(number, seconds)

    def state(self, counting: Collection[int], cold: Collection[int]) -> State:
        """Return what the rounds of these numbers tell.

        Args:
            counting: Rounds whose widths count.
            cold: Rounds with think times.
        """
        both = [*dict.fromkeys([*counting, *cold])]
        labels = sorted(self._endpoints)
        widths = {label: w for label in labels if (w := self._endpoints[label].width(counting))}
        paths = {
            label: [
                PathUse(
                    path=text,
                    executions=self._paths[label, index].count(both),
                    # The time of a whole scenario is mostly think time; what counts is which paths it took.
                    hot=self._paths[label, index].width(counting) if label != self._scenario else None,
                    cold=self._paths[label, index].width(cold) if label != self._scenario else None,
                )
                for index, text in enumerate(known.texts)
            ]
            for label, known in self._known.items()
        }
        unmatched = {label: count for label in self._known if (count := self._paths[label, None].count(both))}
        wanted = {k: w for k, w in widths.items() if self._wanted is None or k in self._wanted}
        worst, widest = _worst(wanted, paths)
        return State(
            widths=widths,
            cold_widths={label: w for label in labels if (w := self._endpoints[label].width(cold))},
            paths=paths,
            unmatched=unmatched,
            worst=worst,
            widest=widest,
        )


def _worst(widths: Mapping[str, Width], paths: Mapping[str, Sequence[PathUse]]) -> tuple[float | None, str]:
    """Return the largest relative half-width and whose it is; None and whose if one is unknown."""
    worst, widest = None, ""
    for label, whole in widths.items():
        parts = [use.hot for use in paths.get(label, ()) if use.hot is not None]
        for width in [whole, *parts]:
            if width.half_width is None:
                return None, label
            share = width.executions / whole.executions
            relative = share * width.half_width / whole.mean
            if worst is None or relative > worst:
                worst, widest = relative, label
    return worst, widest


class KnownPaths:
    """The paths of one endpoint, and which of them an execution took.

    Attributes:
        texts: Each path as one line (its operations with their lines), then each body of each choice.

    Args:
        paths: As static analysis found them.
        whole: The endpoint was not analysed: whatever an execution does, it takes the only path.
    """

    def __init__(self, paths: Iterable[Path], *, whole: bool = False) -> None:
        self._whole = whole
        returning = [path for path in paths if path.ends == "return"]
        self._recognizer = Recognizer(returning)
        texts = [_describe(path.operations) for path in returning]
        self._bodies: dict[tuple[int, Decision], int] = {}
        for number, path in enumerate(returning):
            for decision, text in _bodies(path, ()):
                self._bodies[number, decision] = len(texts)
                texts.append(text)
        self.texts = _numbered(texts)

    def taken(self, execution: Execution) -> list[int]:
        """Return the numbers of the path and the bodies an execution took; empty if it fits no path."""
        if self._whole:
            return [0]
        found = self._recognizer.taken(execution)
        if found is None:
            return []
        path, decisions = found
        return [path, *dict.fromkeys(self._bodies[path, decision] for decision in decisions)]


def _bodies(path: Path, place: Place) -> Iterator[tuple[Decision, str]]:
    """Yield every body of every choice of a path, in order, with its description."""
    for index, operation in enumerate(path.operations):
        for number, body in enumerate(operation.bodies):
            if operation.op == "choice":
                text = f"choice ({operation.site.line}) [{_describe(body.operations)}]"
                yield Decision((place, index), number), text
            yield from _bodies(body, (*place, index, number))


def _numbered(texts: Iterable[str]) -> list[str]:
    """Tell apart what reads alike: a helper that is called twice."""
    seen: Counter[str] = Counter()
    found = []
    for text in texts:
        seen[text] += 1
        found.append(f"{text} #{seen[text]}" if seen[text] > 1 else text)
    return found


def known_paths(application: Application, client: str) -> dict[str, KnownPaths]:
    """Return the paths of every endpoint and of the client's scenario, by the label the log uses.

    Paths that end with an exception are left out: executions that fail are not used.
    """
    found = {e.label: e.paths for e in application.endpoints()}
    found.update({f"{c.name}.scenario": c.paths for c in application.clients if c.name == client})
    whole = {e.label for e in application.endpoints() if e.whole}
    return {label: KnownPaths(paths, whole=label in whole) for label, paths in found.items()}


def _describe(operations: Sequence[Operation]) -> str:
    parts = []
    for o in operations:
        text = f"{o.op} {o.target}".strip() + f" ({o.site.line})"
        if o.bodies:
            text += " [" + " | ".join(_describe(body.operations) for body in o.bodies) + "]"
        parts.append(text)
    return ", ".join(parts) or "no operation"
