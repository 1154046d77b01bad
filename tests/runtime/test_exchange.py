"""The next step of a call after a failure: rules of both shells, without any socket."""

from __future__ import annotations

import ast
import importlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mup.errors import BrokenCallError, CallTimeoutError, NoReplicaError
from mup.retries import RetryPolicy
from mup.runtime.client.events import EventLog, Operation
from mup.runtime.client.exchange import STALE_SECONDS, Call, Choose, Pause, Receive, Send, StaleError, Step
from mup.runtime.client.replicas import Answer, Replicas
from mup.runtime.client.reply import BrokenError, RawResponse
from mup.runtime.client.request import Address, Message
from mup.runtime.client.retries import Retries

A, B = ("127.0.0.1", 1), ("127.0.0.1", 2)
GONE = BrokenError("the server closed the connection without a response", empty=True)
CUT = BrokenError("the connection was closed within a chunk")


class Peers:
    """Notes what was dropped and forgotten."""

    def __init__(self) -> None:
        self.dropped: list[Address] = []
        self.forgotten: list[Address] = []

    def drop(self, name: str, address: Address) -> None:
        assert name == "S"
        self.dropped.append(address)

    def forget(self, address: Address) -> None:
        self.forgotten.append(address)


def answer(status: int = 200, **headers: str) -> RawResponse:
    """Return a response without a body."""
    fields: Mapping[str, str] = {name.replace("_", "-"): value for name, value in headers.items()}
    return RawResponse(status=status, headers=fields, body=b"", keep=True)


REFUSES = answer(503, x_mup_refused="draining")
Outcome = object


def made(
    *outcomes: Outcome, seconds: float = 30.0, retries: Retries | None = None, method: str = "POST"
) -> tuple[Call, list[Step], Peers]:
    """Make a call; what its steps give is said in turn, exceptions are raised, a function is called for it."""
    peers = Peers()
    operation = Operation(EventLog(None, Path()), 1, 2, 1, 0, "S/x/", time.monotonic() + seconds)
    call = Call(operation, "S", Message(method, "/x/"), peers, retries)
    steps, seen = call.steps(), []
    said = iter(outcomes)
    step = next(steps)
    try:
        while True:
            seen.append(step)
            outcome = next(said)
            if callable(outcome):
                outcome = outcome()
            step = steps.throw(outcome) if isinstance(outcome, Exception) else steps.send(outcome)
    except StopIteration:
        assert next(said, None) is None, "not all outcomes were wanted"
    return call, seen, peers


def late(outcome: Outcome, seconds: float) -> Callable[[], Outcome]:
    """Return what comes so many seconds later."""

    def come() -> Outcome:
        time.sleep(seconds)
        return outcome

    return come


def status(call: Call) -> int:
    """Return the status of the response there must be."""
    assert call.response is not None
    return call.response.status


def test_a_call_that_goes_well() -> None:
    """It is sent once, and nothing is held against the replica."""
    call, seen, peers = made(A, True, answer())
    assert seen == [Choose([]), Send(A, False), Receive()]
    assert (status(call), call.error, peers.dropped, peers.forgotten) == (200, None, [], [])


def test_a_replica_that_cannot_be_reached_is_dropped_and_replaced() -> None:
    """Whatever the reason; the request has not been sent."""
    for reason in (ConnectionRefusedError(111, "refused"), TimeoutError(), OSError(113, "no route")):
        call, seen, peers = made(A, reason, B, False, answer())
        assert seen == [Choose([A]), Send(A, False), Choose([A]), Send(B, False), Receive()]
        assert (status(call), peers.dropped) == (200, [A])


def test_when_none_is_left_the_error_says_why() -> None:
    """The reason of the last one is part of the message."""
    call, _, peers = made(
        A, ConnectionRefusedError(111, "refused"), NoReplicaError("service 'S' has no live replica")
    )
    assert isinstance(call.error, NoReplicaError)
    assert "no live replica: [Errno 111] refused" in call.error.message
    assert peers.dropped == [A]


def test_a_replica_that_serves_no_caller_is_replaced() -> None:
    """A 503 of a replica that stops means that another one may serve the request."""
    call, seen, peers = made(A, True, REFUSES, B, True, answer())
    assert [step for step in seen if isinstance(step, Send)] == [Send(A, False), Send(B, False)]
    assert (status(call), peers.dropped, peers.forgotten) == (200, [A], [A])


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        pytest.param((False, answer()), 200, id="successor"),
        pytest.param((False, REFUSES), 503, id="refuses-too"),
        pytest.param((ConnectionRefusedError(),), 503, id="nobody-listens"),
    ],
)
def test_the_last_replica_that_serves_no_caller(then: tuple[Outcome, ...], expected: int) -> None:
    """Its successor may listen on the same port already: one new connection is tried, then the answer stands."""
    call, seen, _ = made(A, True, REFUSES, NoReplicaError("none"), *then)
    assert [step for step in seen if isinstance(step, Send)] == [Send(A, False), Send(A, True)]
    assert status(call) == expected


@pytest.mark.parametrize("failing", ["sending", "waiting"])
def test_a_stale_connection_is_replaced_once(failing: str) -> None:
    """By a new one to the same replica."""
    first: tuple[Outcome, ...] = (StaleError(),) if failing == "sending" else (True, GONE)
    call, seen, peers = made(A, *first, False, answer())
    assert [step for step in seen if isinstance(step, Send)] == [Send(A, False), Send(A, True)]
    assert (status(call), peers.dropped) == (200, [])


@pytest.mark.parametrize(
    ("used", "outcome"),
    [
        pytest.param(False, GONE, id="new-connection"),
        pytest.param(True, CUT, id="response-begun"),
        pytest.param(True, late(GONE, STALE_SECONDS + 0.02), id="later"),
    ],
)
def test_what_may_have_been_executed_is_not_repeated(used: bool, outcome: Outcome) -> None:
    """Any other connection that breaks is an error."""
    call, seen, peers = made(A, used, outcome)
    assert len(seen) == 3
    assert isinstance(call.error, BrokenCallError)
    assert (call.error.message.startswith("call of S/x/ failed: "), peers.dropped) == (True, [])


def test_no_answer_in_time() -> None:
    """Neither from the callee, nor from any other if the deadline passes before."""
    call, _, _ = made(A, True, TimeoutError(), seconds=0.25)
    assert isinstance(call.error, CallTimeoutError)
    assert call.error.message == "S/x/: no answer within 0.25 s"
    call, seen, _ = made(late(A, 0.02), seconds=0.01)
    assert seen == [Choose([])]
    assert isinstance(call.error, CallTimeoutError)


def test_attempts_share_a_budget() -> None:
    """A lost attempt is repeated where that does no harm, and no more often than the budget allows."""
    policy = RetryPolicy(attempts=8, budget=0.001, backoff=0.001)
    lost = (A, False, CUT)
    call, seen, _ = made(*lost, None, A, False, answer(), retries=Retries(policy, "seed"), method="GET")
    assert [type(step) for step in seen] == [Choose, Send, Receive, Pause, Choose, Send, Receive]
    assert (status(call), call.operation.attempt) == (200, 1)
    call, seen, _ = made(*lost, retries=Retries(policy, "seed"), method="POST")
    assert isinstance(call.error, BrokenCallError)
    repeated: list[Outcome] = [*lost, *([None, *lost] * 5)]
    call, seen, _ = made(*repeated, retries=Retries(policy, "seed"), method="GET")
    assert sum(isinstance(step, Pause) for step in seen) == 5, "the reserve"
    assert isinstance(call.error, BrokenCallError)


def listing(run: str, version: int, *replicas: tuple[Address, str], learning: bool = False) -> Answer:
    """Return what a registry answers."""
    listed = [{"url": f"http://{host}:{port}", "id": name} for (host, port), name in replicas]
    fields = {"service": "S", "replicas": listed, "endpoints": {}, "learning": learning}
    return Answer(200, f'"{run}.{version}"', fields)


def test_a_dropped_replica_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """For three seconds, unless it registers anew or there is no other."""
    now = 100.0
    monkeypatch.setattr("mup.runtime.client.replicas.time.monotonic", lambda: now)
    replicas = Replicas(1.0, encrypted=False)

    def picked(reply: Answer) -> set[Address | None]:
        entry = replicas.answered("S", reply)
        return {replicas.pick(entry) for _ in range(50)}

    both = listing("r", 1, (A, "a"), (B, "b"))
    assert picked(both) == {A, B}
    replicas.drop("S", A)
    assert picked(both) == {B}
    assert picked(listing("r", 2, (A, "a2"), (B, "b"))) == {A, B}
    replicas.drop("S", A)
    assert replicas.last("S", replicas.answered("S", listing("r", 3, (A, "a2"))), ()) == A
    now += 3.1
    assert picked(listing("r", 4, (A, "a2"), (B, "b"))) == {A, B}


def test_a_registry_that_has_been_restarted_takes_no_replica_away() -> None:
    """Until it knows all replicas; but what it has listed itself and does not list any more is gone."""
    replicas = Replicas(1.0, encrypted=False)
    replicas.answered("S", listing("old", 1, (A, "a")))
    entry = replicas.answered("S", listing("new", 1, (B, "b"), learning=True))
    assert set(entry.listed) == {A, B}
    entry = replicas.answered("S", listing("new", 2, learning=True))
    assert set(entry.listed) == {A}
    assert not replicas.answered("S", listing("new", 3)).listed


@pytest.mark.parametrize(
    "name", ["exchange", "request", "reply", "replicas", "registry", "retries", "events"]
)
def test_the_core_neither_sends_nor_waits(name: str) -> None:
    """What both shells share imports nothing that could, and neither of the shells."""
    module = importlib.import_module(f"mup.runtime.client.{name}")
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    froms = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imports = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
    shells = ("blocking", "sockets", "resolver", "awaited", "streams", "network", "scenario")
    forbidden = {"asyncio", "socket", "select", "ssl", "threading", "aiohttp"}
    assert not (froms | imports) & (forbidden | {f"mup.runtime.client.{shell}" for shell in shells})
