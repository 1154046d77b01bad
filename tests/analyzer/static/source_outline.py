"""Source text in, outline out."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent, indent

from analyzer.static import Application, analyse
from analyzer.static.application import Path as ExecutionPath

HEAD = (
    "from mup import MS, EP, Client, Communication\nfrom mup.errors import CallError, QueryError, MupError\n"
)
OTHERS = """
class B(MS):
    @EP("/b/", name="bee")
    def b(self, comm):
        comm.respond(1)
    @EP("/c/")
    def c(self, comm):
        comm.respond(2)
"""


def analyse_files(folder: Path, **files: str) -> Application:
    """Write modules (``sub__name`` is ``sub/name.py``, ``sub____init__`` its package) and analyse the folder."""
    for name, text in files.items():
        file = folder / (re.sub("__(?=.)(?!init__$)", "/", name) + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")
    return analyse(folder)


def endpoint_source(body: str, *, members: str = "", module: str = "", define: str = "def") -> str:
    """Return a module with service A, whose only endpoint has the given body, and service B to call."""
    text = HEAD + dedent(module) + "class A(MS):\n" + indent(dedent(members), "    ")
    text += f'\n    @EP("/a/")\n    {define} a(self, comm):\n' + indent(dedent(body), "        ") + "\n"
    if define == "async def":
        text += '    runtime = "async"\n'
    return text + OTHERS


def outline_path(path: ExecutionPath) -> str:
    """Return a path as one line; a get or join shows the index of what it waits for."""
    words = []
    for operation in path.operations:
        if operation.bodies:
            bodies = " | ".join(outline_path(body) or "-" for body in operation.bodies)
            words.append(f"{operation.op}[{bodies}]")
        elif operation.op == "join":
            words.append(f"{operation.target or 'join'}:{operation.of}")
        elif operation.op == "get":
            words.append(f"get:{operation.of}")
        elif operation.target:
            words.append(f"{operation.op}:{operation.target}")
        else:
            words.append(operation.op)
    if path.ends == "raise":
        words.append("raise")
    return " ".join(words)


def outline(application: Application, label: str = "A/a/") -> list[str]:
    """Return the paths of an endpoint, sorted."""
    return sorted(outline_path(p) for p in application.endpoint(label).paths)


def codes(application: Application) -> list[str]:
    """Return the codes of all findings that are more than information."""
    return [d.code for d in application.diagnostics if d.severity != "info"]
