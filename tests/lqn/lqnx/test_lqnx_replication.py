"""Replication is written out as the tools mean it."""

from __future__ import annotations

import pytest
from lqnx_samples import file, phases, read

from mup.errors import ModelError


def network(clients: int, servers: int, fans: str = "", homes: int = 1) -> str:
    """Replicated clients that call replicated servers on replicated processors."""
    call = 'host-demand-mean="1"><synch-call dest="e" calls-mean="1"/>'
    return file(
        f'<processor name="pc" scheduling="inf" replication="{clients}">'
        f'<task name="c" scheduling="ref" replication="{clients}">{fans}{phases("ce", call)}</task></processor>'
        f'<processor name="p" replication="{homes}"><task name="s" replication="{servers}">'
        f"{phases('e', '')}</task></processor>"
    )


def targets(text: str) -> dict[str, list[str]]:
    model = read(text)
    return {t.name: [c.task for c in t.entries[0].activities[0].calls] for t in model.reference_tasks}


def test_replicas_share_the_servers_in_turn() -> None:
    """Without fan-out each client replica calls one server replica, the i-th the one i modulo their number."""
    assert targets(network(4, 2)) == {"c_1": ["s_1"], "c_2": ["s_2"], "c_3": ["s_1"], "c_4": ["s_2"]}


def test_fan_out_calls_several_replicas() -> None:
    """With fan-out 2 each client replica calls two server replicas."""
    found = targets(network(2, 4, '<fan-out dest="s" value="2"/>'))
    assert found == {"c_1": ["s_1", "s_2"], "c_2": ["s_3", "s_4"]}


def test_tasks_are_spread_over_their_processors() -> None:
    """Four replicas on two processors are two on each."""
    model = read(network(4, 4, homes=2))
    assert [t.processor for t in model.tasks if t.role == "service"] == ["p_1", "p_1", "p_2", "p_2"]


def test_names_stay_without_replication() -> None:
    """A replication of 1 changes nothing."""
    assert targets(network(1, 1)) == {"c": ["s"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (network(3, 2), "do not fit"),
        (network(2, 2, '<fan-out dest="s" value="3"/>'), "do not fit"),
        (network(2, 3, homes=2), "do not divide evenly"),
        (network(0, 1), "whole number >= 1"),
        (network(100_000, 1), "at most 10000"),
    ],
)
def test_numbers_that_do_not_fit(text: str, expected: str) -> None:
    """Replicas that cannot be connected evenly, or are absurdly many, are refused."""
    with pytest.raises(ModelError, match=expected):
        read(text)
