"""Do services serve the endpoints that their source shows?

The analyzer reads source, and what libraries attach is not in it. So the two are compared where both are
known: what a replica says it serves, and what was found. For ``mup run`` a process of its own analyses,
behind the services: starting does not wait for it, and the libraries of the analyzer are not loaded beside
them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO

__all__ = ["SourceCheck", "differences"]

NICE = 10
"""How much less urgent the analysis is than what is served."""


def differences(found: Mapping[str, Collection[str]], served: Mapping[str, Collection[str]]) -> list[str]:
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
        project: Its folder.
    """

    def __init__(self, project: Path) -> None:
        self._project = project
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    def start(self) -> None:
        """Begin, anew if need be."""
        self.close()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `close`)
        try:
            self._process = subprocess.Popen(  # noqa: S603  (this program itself)
                [sys.executable, "-m", "mup", "paths", str(self._project), "--json"],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.DEVNULL,
                # Ctrl-C is for the services.
                start_new_session=True,
            )
            os.setpriority(os.PRIO_PROCESS, self._process.pid, NICE)
        except OSError:
            self.close()

    def look(self, served: Mapping[str, Collection[str]]) -> list[str]:
        """Return the differences when the analysis is there; nothing before, and after that."""
        if self._process is None or self._output is None or self._process.poll() is None:
            return []
        self._output.seek(0)
        text = self._output.read()
        self.close()
        try:
            services = json.loads(text)["services"]
        except (ValueError, KeyError):
            return []  # it cannot be analysed at all: 'mup paths' says why
        return differences({name: one["endpoints"] for name, one in services.items()}, served)

    def close(self) -> None:
        """End the analysis, if it is still going on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._output is not None:
            self._output.close()
        self._process = self._output = None
