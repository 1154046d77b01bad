"""What costs seconds is done once for several commands."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.learning import network_learning
from analyzer.learning.network_learning import LearnedNetwork, learn_network
from analyzer.learning.traces import Traces


@pytest.fixture
def learned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of one test that differ in what they print learn their network once, with fewer events."""
    known: list[tuple[Any, LearnedNetwork]] = []

    def learn(traces: Traces, **options: Any) -> LearnedNetwork:
        asked = (traces.x.tobytes(), sorted(options.items()))
        if not known or known[0][0] != asked:
            known[:] = [(asked, learn_network(traces, **options, events=4e6))]
        return known[0][1]

    monkeypatch.setattr(network_learning, "learn_network", learn)
