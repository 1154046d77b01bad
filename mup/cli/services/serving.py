"""Do services serve the endpoints that their source shows?

The analyzer reads source, and what libraries attach is not in it. So the two are compared where both are
known: what a replica says it serves, and what was found. For ``mup run`` a process of its own analyses,
behind the services: starting does not wait for it, and the libraries of the analyzer are not loaded beside
them. What it found is kept in the project's ``.mup`` for as long as no file changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import mup
from mup.cli.stopping import uninterrupted
from mup.errors import UsageError
from mup.runtime.deployment.watching import stamps_of
from mup.whole_file import write_whole

if TYPE_CHECKING:
    from mup.project import Project

__all__ = ["SourceCheck", "differences"]

NICE = 19
"""How much less urgent the analysis is than what is served: as little urgent as can be."""
KEPT = "endpoints.json"
PROGRAM = (
    "import sys; from mup.runtime.process.lifetime import die_with; die_with(int(sys.argv.pop(1)));"
    " from mup.cli.main import main; main()"
)
"""``mup``, but it ends with the process that started it, also where that is killed."""
ANALYZER = Path(mup.__file__).resolve().parents[1] / "analyzer" / "static"

Endpoints = Mapping[str, Collection[str]]
"""By service, what the model calls its endpoints."""


def differences(found: Endpoints, served: Endpoints) -> list[str]:
    """Return in words where services serve other endpoints than their source shows.

    Args:
        found: By service, what the model calls the endpoints that the source shows.
        served: The same of what is served; services that do not run are not compared.
    """
    lines = []
    for service in sorted(served.keys() & found.keys()):
        more = sorted(set(served[service]) - set(found[service]))
        less = sorted(set(found[service]) - set(served[service]))
        if more:
            what = "is an endpoint" if len(more) == 1 else "are endpoints"
            lines.append(
                f"{service} serves {_listed(more)}, which {what} that the analysis of its source"
                " does not find: models do not have it ('mup paths' may say why)"
            )
        if less:
            lines.append(
                f"{service} does not serve {_listed(less)}, which the analysis of its source finds:"
                " whatever code is imported here attaches its endpoints in another way"
            )
    return lines


def _listed(endpoints: Collection[str]) -> str:
    return ", ".join(repr(endpoint) for endpoint in endpoints)


class SourceCheck:
    """Analyses a project in the background, and compares what it finds with what is served, once.

    Args:
        named: The project's folder or file, as the user names it.
        project: What is in it.
    """

    def __init__(self, named: Path, project: Project) -> None:
        self._named = named
        self._source = project.source
        self._file = project.state / KEPT
        self._stamp = ""
        self._found: Endpoints | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    def start(self) -> None:
        """Begin, anew if need be; without a process if nothing has changed since the last analysis."""
        self.close()
        # Before the analysis: what changes meanwhile makes another stamp.
        self._stamp = _stamp(self._source, self._named)
        self._found = _kept(self._file, self._stamp)
        if self._found is not None:
            return
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `close`)
        # A signal between the start of a process and the assignment would leave it behind.
        with uninterrupted():
            self._begin()

    def _begin(self) -> None:
        """Start the process."""
        try:
            self._process = subprocess.Popen(  # noqa: S603  (this program itself)
                [sys.executable, "-c", PROGRAM, str(os.getpid()), "paths", str(self._named), "--json"],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.DEVNULL,
                # Ctrl-C is for the services. Not a session of its own: Linux shares cores among sessions
                # first (autogroup), and within one only does the priority count.
                process_group=0,
            )
            os.setpriority(os.PRIO_PROCESS, self._process.pid, NICE)
        except OSError:
            self.close()

    def look(self, served: Endpoints) -> list[str]:
        """Return the differences when the analysis is there; nothing before, and after that."""
        if self._process is not None and self._process.poll() is not None:
            self._take()
        found, self._found = self._found, None
        return [] if found is None else differences(found, served)

    def _take(self) -> None:
        """Read what the process has found, and keep it."""
        assert self._output is not None  # noqa: S101  (there is one wherever there is a process)
        self._output.seek(0)
        text = self._output.read()
        self.close()
        try:
            services = json.loads(text)["services"]
        except (ValueError, KeyError):
            return  # it cannot be analysed at all: 'mup paths' says why
        self._found = {name: list(one["endpoints"]) for name, one in services.items()}
        kept = json.dumps({"stamp": self._stamp, "endpoints": self._found})
        with suppress(OSError, UsageError):  # it is analysed again the next time
            self._file.parent.mkdir(exist_ok=True)
            write_whole(self._file, kept)

    def close(self) -> None:
        """End the analysis, if it is still going on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._output is not None:
            self._output.close()
        self._process = self._output = self._found = None


def _stamp(source: Path, named: Path) -> str:
    """Return another text whenever the project, its source, the analyzer or Python is another one."""
    files = {**stamps_of(source), **stamps_of(ANALYZER)}
    settings = named / "mup.toml" if named.is_dir() else named
    with suppress(OSError):  # it may have gone while the services run
        status = settings.stat()
        files[settings.resolve()] = status.st_mtime_ns, status.st_size
    return hashlib.sha256(repr((sys.version, sorted(files.items()))).encode()).hexdigest()


def _kept(file: Path, stamp: str) -> Endpoints | None:
    """Return what was found with the same stamp; None if nothing was."""
    try:
        data = json.loads(file.read_bytes())
        return data["endpoints"] if data["stamp"] == stamp else None
    except (OSError, ValueError, LookupError, TypeError):
        return None  # it is analysed again
