"""Models of two versions of a source, with times, for tests of what a change does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analyzer.static import analyse, translate
from mup.lqn import Constant, Exponential, Front, Model


def model_of(folder: Path, source: str, seconds: float, *, clients: int = 1) -> Model:
    """Return the model of a source in which every activity takes so long on average.

    Network and registry cost a delay, everything else processor time. There is one client class.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "services.py").write_text(source)
    application = analyse(folder)
    assert not application.errors, application.errors
    model = translate(application, name="m", client=application.clients[0].name)
    none, time = Constant(0.0), Exponential(seconds)
    tasks = []
    for task in model.tasks:
        delays = task.role == "network"
        entries = tuple(
            replace(
                entry,
                activities=tuple(
                    a
                    if a.kind == "think"
                    else replace(a, demand=none if delays else time, delay=time if delays else none)
                    if a.kind in ("local", "after") or delays
                    else replace(a, demand=none, delay=none)
                    for a in entry.activities
                ),
            )
            for entry in task.entries
        )
        front = Front(request=time, reply=time) if task.role == "service" else None
        threads = clients if task.is_reference else task.threads
        tasks.append(replace(task, entries=entries, front=front, threads=threads))
    return replace(model, tasks=tuple(tasks))
