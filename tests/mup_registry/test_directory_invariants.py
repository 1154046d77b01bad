"""The invariants of the registry's directory hold after whatever replicas and clients do."""

from __future__ import annotations

import random

import pytest

from mup_registry import directory as bounds
from mup_registry.directory import Directory, FullError, TakenError

STEPS = 400


def violated(directory: Directory) -> list[str]:
    """Return what does not hold of those that ``Directory`` states."""
    instances = list(directory._instances.values())
    kept = {s.last.text: 1 for s in directory.services.values() if s.last is not None}
    for instance in instances:
        kept[instance.endpoints.text] = 1
    users = [i.endpoints for i in instances] + [s.last for s in directory.services.values() if s.last]
    checks = {
        "not ordered by life signs": [i.seen for i in instances] == sorted(i.seen for i in instances),
        "urls": directory._by_url == {i.url: i for i in instances},
        "services": {i.id for s in directory.services.values() for i in s.instances.values()}
        == set(directory._instances),
        "empty": set(directory._empty) == {n for n, s in directory.services.items() if not s.instances},
        "last": all((s.last is not None) == (not s.instances) for s in directory.services.values()),
        "maps": set(directory._maps) == set(kept),
        "users": all(m.users == sum(used is m for used in users) for m in directory._maps.values()),
        "bytes": directory._map_bytes == sum(map(len, directory._maps)),
    }
    return [problem for problem, holds in checks.items() if not holds]


@pytest.mark.parametrize("seed", range(8))
def test_invariants_hold_after_every_request(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas come, come back, show life, go and fall silent, at bounds that are soon reached."""
    monkeypatch.setattr(bounds, "MAX_REPLICAS", 6)
    monkeypatch.setattr(bounds, "MAX_SERVICES", 5)
    monkeypatch.setattr(bounds, "MAX_ENDPOINT_BYTES", 90)
    draw = random.Random(seed)
    directory = Directory(expiry=3.0, forget=10.0)
    now, known, refused = 0.0, [""], 0
    for _ in range(STEPS):
        now += draw.choice((0.0, 0.1, 1.0, 2.0))
        kind = draw.random()
        if kind < 0.5:
            number = draw.randrange(8)
            try:
                known.append(
                    directory.register(
                        service="ABCDEFG"[number % 7],
                        replica=draw.randrange(3),
                        url=f"http://127.0.0.1:{number + draw.randrange(2)}",
                        pid=1,
                        endpoints={draw.choice("xyz"): "/" + "p" * draw.randrange(20)},
                        now=now,
                    ).id
                )
            except (FullError, TakenError):
                refused += 1
        elif kind < 0.8:
            directory.heartbeat(draw.choice(known), now)
        elif kind < 0.9:
            directory.deregister(draw.choice(known), now)
        else:
            directory.service(draw.choice("ABCDEFG"), now)
        assert violated(directory) == []
    assert refused > STEPS / 40, "the bounds are never reached"
