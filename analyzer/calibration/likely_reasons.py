"""Likely reasons for a difference between model and log of one user, or of the few of a burst.

Each reason is looked for where it would show: in the log of the rounds that differ. The first that is found
is named, with the figure that speaks for it; none of them is proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from analyzer.calibration.observed import Observed
from analyzer.calibration.one_user import (
    ALONE,
    Compared,
    Logged,
    OfOneUser,
    Place,
    response_of,
    waited_for,
)
from analyzer.calibration.rundir import RunInfo

__all__ = ["ROUNDS", "likely_reason", "users", "warnings_of"]

NAMED: Final = 3
"""Callers a warning names; the rest is a number."""
ROUNDS: Final = {"hot": "back to back", "cold": "with think times", "burst": "back to back"}

FAILED: Final = 0.01
"""Part of the cycles that failed from which on their paths are missed."""
UNEVEN: Final = 0.1
"""Relative range of the machine's speed over the rounds of a kind from which on it is named."""
FEW: Final = 4
"""Usable rounds of a kind up to which discarded ones are named."""
LONGEST: Final = 0.01
TAIL: Final = 0.1
"""So large a part of the time is carried by the longest hundredth: too few were seen to know it."""
TOGETHER: Final = 0.2
"""Correlation of calls with the rest of a cycle from which on it is named: parts are sampled apart."""
BESIDE: Final = 0.2
"""Part of the requests beside which another one was under way from which on branches are named."""
BEHIND: Final = 0.05
"""Part of the requests that had to wait for a worker from which on what the last ones left is named."""


def warnings_of(found: OfOneUser, observed: Observed, info: RunInfo) -> list[str]:
    """Return one sentence per figure of a cycle that differs, and one about callers, with likely reasons."""
    different = found.warned()
    texts = []
    for one in (c for c in different if not c.place.callee):
        what = "" if one.figure == "mean" else f", {one.figure}"
        reason = likely_reason(one, found, observed, info)
        texts.append(
            f"{users(one)} {ROUNDS[one.kind]}{what}: {_apart(one)} than in the log, more than chance"
            f" explains; prediction intervals contain it. Likely reason: {reason}"
        )
    callers = [c for c in different if c.place.callee]
    texts += [
        f"{one.place} ({ROUNDS[one.kind]}): {_apart(one)} than in the log."
        f" Likely reason: {likely_reason(one, found, observed, info)}"
        for one in callers[:NAMED]
    ]
    if len(callers) > NAMED:
        texts.append(
            f"{len(callers) - NAMED} more endpoints are seen otherwise by their callers than in the log:"
            " 'mup model --json' has all under 'single_user'"
        )
    return texts


def users(one: Compared) -> str:
    """Return how many users the rounds of a figure have, in words."""
    return "one user" if one.clients == 1 else f"{one.clients} users"


def _apart(one: Compared) -> str:
    half = one.half_width or 0.0
    word = "longer" if one.difference > 0 else "shorter"
    return f"{abs(one.difference):.1%} +- {half:.1%} {word} in the model ({one.simulated * 1e3:.4g} ms)"


def likely_reason(one: Compared, found: OfOneUser, observed: Observed, info: RunInfo) -> str:
    """Return what the log says of why a figure differs."""
    log = found.logs[one.kind, one.place]
    reasons: Sequence[Callable[[], str]] = (
        lambda: _failed(one, observed),
        lambda: _speed(one, observed),
        lambda: _void(one, observed, info),
        lambda: _tail(log) if one.kind in ALONE else "",
        lambda: _together(one, observed),
        lambda: _beside(one, found),
        # Of several users some always wait for workers, in the model too.
        lambda: _behind(one, observed) if one.kind in ALONE else "",
    )
    for reason in reasons:
        if text := reason():
            return text
    return "none that the log shows; 'mup validate' tells whether predictions are off, too"


def _failed(one: Compared, observed: Observed) -> str:
    windows = [w for w in observed.windows if w.phase == one.kind]
    failed = sum(w.failed for w in windows)
    total = failed + sum(w.cycles for w in windows)
    if total == 0 or failed <= FAILED * total:
        return ""
    return f"{failed} of {total} cycles failed, and what happens then is in no path of the model"


def _speed(one: Compared, observed: Observed) -> str:
    chosen = observed.phase(one.kind) > 0
    slowness = observed.slowness[chosen]
    if not slowness.size or slowness.max() / slowness.min() - 1 <= UNEVEN:
        return ""
    return (
        f"the machine was up to {slowness.max() / slowness.min() - 1:.0%} slower in some of these rounds than"
        " in others"
    )


def _void(one: Compared, observed: Observed, info: RunInfo) -> str:
    usable = int(observed.phase(one.kind).sum())
    void = sum(v.window.phase == one.kind for v in info.void)
    if usable > FEW or void < usable:
        return ""
    return f"only {usable} rounds of the kind are usable, {void} were discarded as disturbed"


def _tail(log: Logged) -> str:
    values = np.sort(np.asarray(log.times.values))
    longest = max(1, round(LONGEST * values.size))
    share = float(values[-longest:].sum() / values.sum()) if values.sum() > 0 else 0.0
    if share <= TAIL:
        return ""
    return f"{longest} of {values.size} times carry {share:.0%} of the sum: long ones were seen rarely"


def _together(one: Compared, observed: Observed) -> str:
    """Look for cycles in which calls and the rest are long together: their sum reaches further then."""
    if one.figure == "mean" or one.difference > 0:
        return ""
    calls, rest = [], []
    for execution in observed.executions:
        window = observed.windows[observed.window_of[execution.request]]
        if execution.role != "client" or window.phase != one.kind or execution.failed:
            continue
        calls.append(sum(waited_for(o) for o in execution.operations.values()))
        rest.append(response_of(execution) - calls[-1])
    if len(calls) < 2 or min(np.std(calls), np.std(rest)) == 0:
        return ""
    correlation = float(np.corrcoef(calls, rest)[0, 1])
    if correlation <= TOGETHER:
        return ""
    return (
        f"what is long in a cycle is long together (calls and the rest of a cycle have a correlation of"
        f" {correlation:.2f}), and its parts are sampled independently"
    )


def _beside(one: Compared, found: OfOneUser) -> str:
    """Look for requests side by side below a caller, or anywhere if it is the cycle that is too long."""
    if one.difference < 0:
        return ""
    places = (
        [one.place] if one.place.callee else [p for kind, p in found.logs if kind == one.kind and p.callee]
    )
    for place in places:
        for at in _below(place, found, one.kind):
            log = found.logs[one.kind, at]
            if len(log.times) and log.beside > BESIDE * len(log.times):
                return (
                    f"{at.caller} waits for {at.callee} and something else at once, and parallel branches are"
                    " sampled independently"
                )
    return ""


def _below(place: Place, found: OfOneUser, kind: str) -> list[Place]:
    """Return a place and everything its callee asks for, however indirectly."""
    order = [place]
    for at in order:
        for of, other in found.logs:
            if of == kind and other.caller == at.callee and other.callee and other not in order:
                order.append(other)
    return order


def _behind(one: Compared, observed: Observed) -> str:
    """Look for requests that came before the worker was done with what the last one left to do."""
    queued: dict[str, list[bool]] = {}
    for execution in observed.executions:
        if execution.arrive is not None:
            window = observed.windows[observed.window_of[execution.request]]
            if window.phase == one.kind:
                queued.setdefault(execution.endpoint, []).append(execution.queued)
    often = {label: sum(flags) / len(flags) for label, flags in queued.items()}
    if one.place.callee:
        often = {label: share for label, share in often.items() if label == one.place.callee}
    label = max(often, key=lambda key: often[key], default="")
    if not label or often[label] <= BEHIND:
        return ""
    return (
        f"{often[label]:.0%} of the requests of {label} waited for a worker that was not done with what the"
        " last one had left to do after its reply"
    )
