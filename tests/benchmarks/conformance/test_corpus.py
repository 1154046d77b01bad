"""Agreement with the figures of an independent simulator, model by model.

The reference corpus is not part of the repository; without it these tests are skipped.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from conformance import MAX_OUTSIDE, agreement
from conformance_corpus import Case, find_corpus, load_cases

from mup.errors import ModelError
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Task
from mup.lqn.files import read_model
from simulator import simulate

pytestmark = pytest.mark.slow

SHARE = 1 / 8
"""Of the simulated time of the corpus: enough to see a percent, and seconds for all models."""

SEEDS = (1,)

REFUSED = {
    "reg-71-fair": "processor groups",
}

CORPUS = find_corpus()
CASES = load_cases(CORPUS) if CORPUS is not None else []
EXPRESSIBLE = [c for c in CASES if c.name not in REFUSED]


@pytest.fixture(autouse=True)
def _corpus_is_there() -> None:
    if CORPUS is None:
        pytest.skip("no reference corpus: MUP_REFERENCE_DIR names the directory that contains lqn-corpus")


def by_name(case: Case | None) -> str:
    return "absent" if case is None else case.name


@pytest.mark.parametrize("case", EXPRESSIBLE or [None], ids=by_name)
def test_every_figure_agrees_or_depends_on_a_rule_that_differs(case: Case) -> None:
    """Throughputs, utilizations, service and waiting times are those of lqsim unless a named rule differs."""
    found = agreement(read_model(case.file), case, SHARE, SEEDS)
    assert found.judged
    assert [f"{j.pair.what}: {j.pair.ours} for {j.pair.theirs}" for j in found.wrong] == []


def test_most_figures_are_within_one_joint_interval() -> None:
    """Of all figures that chance alone may change, about one in twenty lies outside one joint half-width."""
    names = ["reg-20-multiserver", "reg-44-activities", "mup-web-db-1", "mup-web-db-3", "drv-layered-model-det",
             "drv-ex1-1-taskhol", "reg-53-replication", "quo-two-layer-k-a-c-d", "usr-zhengtao_2"]  # fmt: skip
    pairs = [
        p for c in CASES if c.name in names for p in agreement(read_model(c.file), c, SHARE, SEEDS).plain
    ]  # fmt: skip
    assert len(pairs) > 200
    assert sum(p.outside for p in pairs) <= MAX_OUTSIDE * len(pairs)


def test_a_lock_agrees_where_the_rules_of_lqsim_are_written_into_the_model() -> None:
    """What readers and writers wait for each other is that of lqsim once two of its rules are part of the model.

    An unlock takes no time there for those of the other kind: its work is a message to another task, which comes
    behind the work of a writer that is let in, and before that of readers. And a thread that sends a message keeps
    its processor: the rest of its work is a call that preempts.
    """
    case = next(c for c in CASES if c.name == "reg-69-rwlock")
    result = simulate(_with_the_rules_of_lqsim(read_model(case.file)), horizon=1e6, seed=1)
    theirs = case.reference
    for task in ("reader_wait", "writer_wait", "rwlock"):
        rate = result.tasks[task].throughput.mean
        assert rate == pytest.approx(theirs["tasks"][task]["throughput"]["mean"], rel=0.01), task
    for caller, kind in (("reader_wait#1", "reader_lock"), ("writer_wait#1", "writer_lock")):
        service = theirs["activities"][f"{kind}#1"]["service_time"]["mean"]
        waiting = theirs["calls"][f"{caller}->{kind}"]["waiting"]["mean"]
        locked = result.entries[f"rwlock.{kind}"].response_time.mean
        assert locked == pytest.approx(service + waiting, rel=0.01), kind


def _with_the_rules_of_lqsim(given: Model) -> Model:
    """Write two rules of lqsim into the model of a lock that is unlocked by messages."""
    nothing = Constant(0)
    tasks = []
    for task in given.tasks:
        changed = task
        if task.name in ("reader_signal", "writer_signal"):
            kind = task.name[:6]
            half = Exponential(0.5)
            unlocks = tuple(
                Call(task=t, entry=f"{kind}_{e}", kind="send")
                for t, e in (("rwlock", "unlock"), ("work", "after"))
            )
            rest = (Call(task=f"rest_{kind}", entry="rest"),)
            steps = (
                Activity(name="first", demand=half, delay=nothing),
                Activity(name="send", demand=nothing, delay=nothing, calls=unlocks),
                Activity(name="rest", demand=nothing, delay=nothing, calls=rest),
            )
            changed = replace(task, entries=(_chain(task.name, *steps),))
            only = _chain("rest", Activity(name="rest", demand=half, delay=nothing))
            tasks.append(
                Task(name=f"rest_{kind}", threads=math.inf, processor="server", priority=1, entries=(only,))
            )
        elif task.name == "rwlock":
            entries = []
            for entry in task.entries:
                quick = tuple(replace(a, demand=nothing) for a in entry.activities)
                entries.append(replace(entry, activities=quick) if "unlock" in entry.name else entry)
            changed = replace(task, entries=tuple(entries))
            late = Activity(name="behind", demand=nothing, delay=Constant(1e-9))
            work = Activity(name="work", demand=Exponential(0.3), delay=nothing)
            after = (_chain("reader_after", late, work), _chain("writer_after", work))
            tasks.append(Task(name="work", threads=math.inf, processor=task.processor, entries=after))
        tasks.append(changed)
    processors = tuple(replace(p, discipline="pp") if p.name == "server" else p for p in given.processors)
    return replace(given, tasks=tuple(tasks), processors=processors)


def _chain(name: str, *steps: Activity) -> Entry:
    arcs = tuple(Precedence(pre=(a.name,), post=(b.name,)) for a, b in pairwise(steps))
    return Entry(name=name, start=steps[0].name, activities=steps, precedences=arcs)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_expressed_is_refused_by_name(name: str) -> None:
    """A model with an element that has no counterpart is refused, and the message names the element."""
    assert isinstance(CORPUS, Path)
    with pytest.raises(ModelError, match=REFUSED[name]):
        read_model(CORPUS / "models" / f"{name}.lqnx")
