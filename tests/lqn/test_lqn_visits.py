"""Mean visits of activities and entries are those computed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from model_strategies import models

from mup.errors import ModelError, UncalibratedError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Empirical,
    Entry,
    Exponential,
    Forward,
    Geometric,
    Model,
    Precedence,
    Task,
)
from mup.lqn.lowered import Lowered, per_request
from mup.lqn.visits import activity_visits, entry_rates, entry_requests

ONCE = Constant(1)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def _entry(
    names: str, *arcs: Precedence, name: str = "e", calls: tuple[Call, ...] = (), **fields: Any
) -> Entry:
    """An entry whose last activity makes the calls."""
    activities = tuple(Activity(name=n, calls=calls if n == names[-1] else ()) for n in names)
    return Entry(name=name, start=names[0], activities=activities, precedences=arcs, **fields)


def _p(pre: str, post: str, **fields: Any) -> Precedence:
    return Precedence(pre=tuple(pre), post=tuple(post), **fields)


def _call(target: str, count: Distribution | None = ONCE, **fields: Any) -> Call:
    task, entry = target.split(".")
    return Call(task=task, entry=entry, count=count, **fields)


def test_loops_multiply_by_their_mean_counts() -> None:
    """Bodies run count times, nested ones product times, what follows the loop once."""
    entry = _entry(
        "abcdef",
        _p("a", "bcf", fork="loop", counts=(Geometric(2.5), Constant(4))),
        _p("c", "d", fork="loop", counts=(Empirical((0, 1, 2, 5)),)),
        _p("d", "e"),
    )
    assert activity_visits(entry) == {"a": 1, "b": 2.5, "c": 4, "d": 8, "e": 8, "f": 1}


def test_quorum_join_runs_once_if_enough_branches_come() -> None:
    """Two of three suffice although the third never arrives."""
    entry = _entry(
        "abcdxyj",
        _p("a", "bcd", fork="and"),
        _p("d", "xy", fork="or", probabilities=(0.3, 0.7)),
        _p("bcx", "j", join="and", quorum=2),
    )
    assert activity_visits(entry)["j"] == 1


def test_unknown_counts_matter_only_where_they_are_reached() -> None:
    """A loop behind a branch of probability 0 need not be calibrated."""
    arcs = (_p("a", "bc", fork="or", probabilities=(0.0, 1.0)), _p("b", "d", fork="loop", counts=(None,)))
    assert activity_visits(_entry("abcd", *arcs))["d"] == 0
    with pytest.raises(UncalibratedError, match=r"precedences\[0\]: the count was never measured"):
        activity_visits(_entry("ab", _p("a", "b", fork="loop", counts=(None,))))


def _system(*more: Task, cycle: Entry) -> Model:
    return Model(name="m", tasks=(Task(name="U", role="reference", entries=(cycle,)), *more))


def test_entry_rates_add_up_all_ways() -> None:
    """Calls, sends and forwards of several levels are counted; an entry with arrivals is its own source."""
    a = _entry(
        "xy",
        _p("x", "y"),
        calls=(_call("C.e", Geometric(1.5)),),
        forwards=(Forward(task="B", entry="e", probability=0.25),),
    )
    b = _entry("x", calls=(_call("C.e", Constant(2), kind="send"),), arrivals=Exponential(1.0))
    cycle = _entry("xy", _p("x", "y", fork="loop", counts=(Constant(3),)), calls=(_call("A.e"),))
    model = _system(
        Task(name="A", entries=(a,)), Task(name="B", entries=(b,)), Task(name="C", entries=(_entry("x"),)),
        cycle=cycle,
    )  # fmt: skip
    assert entry_requests(a) == {("C", "e"): 1.5, ("B", "e"): 0.25}
    rates = entry_rates(model)
    assert rates["U", "e"] == pytest.approx(
        {("U", "e"): 1, ("A", "e"): 3, ("B", "e"): 0.75, ("C", "e"): 3 * 1.5 + 0.75 * 2}
    )
    assert rates["B", "e"] == pytest.approx({("B", "e"): 1, ("C", "e"): 2})


def test_cycles_of_sends_converge_or_are_refused() -> None:
    """A request that causes half a one is two in total; one that causes another never ends."""

    def ring(mean: float) -> Model:
        again = _entry("x", calls=(_call("A.e", Geometric(mean), kind="send"),))
        return _system(Task(name="A", entries=(again,)), cycle=_entry("x", calls=(_call("A.e"),)))

    assert entry_rates(ring(0.5))["U", "e"]["A", "e"] == pytest.approx(2)
    with pytest.raises(ModelError, match=r"multiply without end .* A\.e"):
        entry_rates(ring(1.0))


def test_unknown_counts_of_calls_name_their_place() -> None:
    """A reachable call whose count was never measured is refused with its path."""
    cycle = _entry("x", calls=(_call("A.e", None),))
    with pytest.raises(UncalibratedError, match=r"tasks\['U'\]\.e\.activities\['x'\]"):
        entry_rates(_system(Task(name="A", entries=(_entry("x"),)), cycle=cycle))


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(models())
def test_rates_balance(model: Model) -> None:
    """Over random models: what arrives at an entry is what all others send it."""
    try:
        rates = entry_rates(model)
    except UncalibratedError:
        return
    lowered = Lowered(model)
    for source in lowered.sources:
        found = lowered.requests_from(source)
        arriving = dict.fromkeys(found, 0.0) | {(*source.key, False): 1.0}
        for (task, name, waited), rate in found.items():
            for target, often in per_request(lowered.graph(task, name), waited=waited).items():
                arriving[target] += rate * often
        assert found == pytest.approx(arriving)
        assert all(math.isfinite(r) for r in found.values())
        assert sum(found.values()) == pytest.approx(sum(rates[source.key].values()))
