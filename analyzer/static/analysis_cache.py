"""What of a project is unchanged since it was analysed last: some services, or everything.

The cache is a file in the project's ``.mup``. An entry is used only if nothing that could change the result
has changed: the analyzer itself, Python and libcst; the project's settings; every file of the source folder
that the module of a service or client can reach through imports, found by name in the text and so rather too
many than too few; and what the other services can be called by. Anything else, and anything unexpected in the
file, is analysed again. Nothing here loads what parses source: where nothing has changed, a command has only
to read the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from analyzer.static import application as application_module
from analyzer.static.application import Application, ClientClass, Service
from analyzer.static.diagnostics import Diagnostic
from analyzer.static.relevance import facts
from analyzer.static.source_files import content, entered
from mup import errors
from mup.errors import UsageError
from mup.events import sites
from mup.events.sites import Site
from mup.lqn import distributions
from mup.lqn.distribution_json import distribution_from_json
from mup.lqn.distributions import Distribution
from mup.lqn.refs import EndpointRef, QueryRef
from mup.whole_file import write_whole

__all__ = ["AnalysisCache", "Dependencies", "Remembered"]

FORMAT = "mup-analysis/2"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known about one service.

    Attributes:
        key: Of everything in the source folder it can depend on.
        addresses: Every way to address one of its endpoints, with the endpoint's path.
        diagnostics: Findings about it; none is an error.
    """

    key: str
    addresses: Mapping[str, str]
    service: Service
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _Whole:
    """What is known beside the services.

    Attributes:
        key: Of everything in the source folder that a service or client can depend on.
        clients: In the order of the project.
        diagnostics: All findings, also those about services, without what comments take back.
    """

    key: str
    clients: tuple[ClientClass, ...]
    diagnostics: tuple[Diagnostic, ...]


class AnalysisCache:
    """The application of one project as it was analysed last.

    Args:
        file: Where it is kept.
        settings: Everything besides the source that decides about the result, as JSON.
        root: The source folder.
        services: ``module:Class`` by service name.
        clients: ``module:Class`` of the clients.

    Attributes:
        unchanged: Services that need not be analysed again.
    """

    def __init__(
        self, file: Path, settings: object, root: Path, services: Mapping[str, str], clients: Collection[str]
    ) -> None:
        self._file = file
        self._stamp = _digest([FORMAT, _tools(), settings])
        self._root = root.resolve()
        dependencies = Dependencies(self._root)
        self._keys = {name: dependencies.key(target) for name, target in services.items()}
        self._clients = [dependencies.key(target) for target in clients]
        self._whole: _Whole | None = None
        self._services: dict[str, Remembered] = {}
        self._read()
        found = {name: (self._services.get(name), key) for name, key in self._keys.items()}
        self.unchanged = {
            name: one for name, (one, key) in found.items() if one is not None and one.key == key
        }

    def changed(self, services: Mapping[str, str]) -> dict[str, str]:
        """Return those of some services that have to be analysed again."""
        return {name: target for name, target in services.items() if name not in self.unchanged}

    def callable_as_before(self, addresses: Mapping[str, Mapping[str, str]]) -> bool:
        """Return whether services that have changed can be called by the same names as before."""
        before = {name: one.addresses for name, one in self._services.items() if name in addresses}
        missing = self._keys.keys() - self.unchanged.keys() - addresses.keys()
        return not self.unchanged or (not missing and before == dict(addresses))

    def application(self) -> Application | None:
        """Return the application if nothing that it depends on has changed."""
        whole = self._whole
        if whole is None or len(self.unchanged) < len(self._keys) or whole.key != self._key():
            return None
        return Application(
            root=self._root,
            services=tuple(one.service for one in self.unchanged.values()),
            clients=whole.clients,
            diagnostics=whole.diagnostics,
            remembered=tuple(self.unchanged),
        )

    def _key(self) -> str:
        return _digest([list(self._keys.values()), self._clients])

    def _read(self) -> None:
        try:
            data = json.loads(self._file.read_bytes())
            if data["stamp"] == self._stamp:
                nodes = _decoded(data["nodes"])
                services = {name: nodes[index] for name, index in data["services"].items()}
                whole = nodes[data["whole"]]
                if type(whole) is _Whole and {type(one) for one in services.values()} <= {Remembered}:
                    self._services, self._whole = services, whole
        except Exception:  # noqa: BLE001  (whatever is wrong with it, it can be made again)
            return

    def keep(
        self,
        application: Application,
        addresses: Mapping[str, Mapping[str, str]],
        found: Mapping[str, tuple[Diagnostic, ...]],
    ) -> None:
        """Keep what is known now, if nothing is wrong with it.

        A place that cannot be written is no reason to fail.

        Args:
            application: Everything.
            addresses: By service, every way to address one of its endpoints, with the endpoint's path.
            found: By service that was analysed, the findings about it.
        """
        if application.errors or len(application.services) < len(self._keys):
            return
        fresh = {
            one.name: Remembered(self._keys[one.name] or "", addresses[one.name], one, found[one.name])
            for one in application.services
            if one.name in found
        }
        key = "" if None in (*self._keys.values(), *self._clients) else self._key()
        table = _Table()
        try:
            services = {name: table.add(one) for name, one in {**self.unchanged, **fresh}.items()}
            whole = table.add(_Whole(key, application.clients, application.diagnostics))
            document = {"stamp": self._stamp, "services": services, "whole": whole, "nodes": table.nodes}
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, json.dumps(document))
        except (OSError, ValueError, TypeError, RecursionError, UsageError):
            return


@cache
def _tools() -> list[str]:
    """Return the analyzer's own source, and the versions of what it is built on."""
    others = (application_module, sites, distributions, errors)
    sources = [*sorted(Path(__file__).parent.rglob("*.py")), *(Path(m.__file__ or "") for m in others)]
    return [
        sys.version,
        version("libcst"),
        *(_hash(file.read_bytes()) for file in sources),
    ]


def _digest(value: object) -> str:
    return _hash(json.dumps(value, sort_keys=True, default=str).encode())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Dependencies:
    """What the modules of a source folder can reach through imports.

    Args:
        root: The source folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._closed: set[str] = set()
        self._texts = {file: content(file) for file in self._files(root)}
        self._facts = {file: facts(text) for file, text in self._texts.items()}
        self._named: dict[str, list[Path]] = {}
        for file in self._texts:
            for part in {*file.relative_to(self._root).parts[:-1], file.stem}:
                self._named.setdefault(part, []).append(file)

    def _files(self, folder: Path) -> Iterator[Path]:
        """Yield all Python files; note the folders that an import can reach and a search does not enter."""
        for path, folders, files in os.walk(folder):
            inside = Path(path)
            closed = [name for name in folders if not entered(inside / name)]
            self._closed.update(closed)
            folders[:] = sorted(set(folders) - set(closed))
            yield from (inside / name for name in sorted(files) if name.endswith(".py"))

    def key(self, target: str) -> str | None:
        """Return a key of all files ``module:Class`` can depend on; it is another one if one of them is.

        None if that cannot be told.
        """
        reached = self._reached(target.partition(":")[0])
        if reached is None:
            return None
        names = sorted((str(file.relative_to(self._root)), file) for file in reached)
        return _digest([target, [(name, _hash(self._texts[file] or b"")) for name, file in names]])

    def _reached(self, module: str) -> set[Path] | None:
        pending = [module.split(".")]
        reached: set[Path] = set()
        while pending:
            words = pending.pop()
            if not self._closed.isdisjoint(words):
                return None
            for file in self._meant(words) - reached:
                known = self._facts[file]
                if known is None:
                    return None
                reached.add(file)
                pending.append([word.decode("utf-8", "replace") for word in known.words])
                # The packages a module is in are imported first.
                pending.append(list(file.relative_to(self._root).parts[:-1]))
        return reached

    def _meant(self, words: Iterable[str]) -> set[Path]:
        """Return the files that one of these names can mean: modules, and all there is in packages."""
        found = {file for word in words for file in self._named.get(word, ())}
        # How a name that is not ASCII is written depends on the encoding.
        return found.union(*(files for name, files in self._named.items() if not name.isascii()))


# Files hold a table of nodes, each after its parts: what is shared stays shared, and nothing is ever run.


def _known_classes() -> dict[str, type]:
    found = [c for c in vars(application_module).values() if isinstance(c, type) and is_dataclass(c)]
    given = (*found, Site, Diagnostic, Remembered, _Whole, EndpointRef, QueryRef)
    return {c.__name__: c for c in given if c is not Application}


class _Table:
    """Turns frozen dataclasses and named tuples into JSON. Read ``nodes`` after adding."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._classes = _known_classes()
        self._indices: dict[int, tuple[int, object]] = {}

    def add(self, value: Any) -> int:
        """Add a value with everything in it; return its index.

        Raises:
            TypeError: It holds something that is none of the analyzer's own data.
        """
        known = self._indices.get(id(value))
        if known is not None:
            return known[0]
        node = self._node(value)
        self.nodes.append(node)
        # The value is kept so that no other one gets its id.
        self._indices[id(value)] = (len(self.nodes) - 1, value)
        return len(self.nodes) - 1

    def _node(self, value: Any) -> Any:
        if value is None or isinstance(value, str | int | float):
            return {"plain": value}
        kind: Any = type(value)
        if kind is tuple:
            return {"tuple": [self.add(item) for item in value]}
        if isinstance(value, Mapping):
            return {"map": [[self.add(k), self.add(v)] for k, v in value.items()]}
        if isinstance(value, Distribution):
            return {"distribution": value.to_json()}
        if self._classes.get(kind.__name__) is not type(value):
            raise TypeError(kind.__name__)
        names = kind._fields if issubclass(kind, tuple) else [f.name for f in fields(kind) if f.init]
        return {"class": kind.__name__, "fields": {name: self.add(getattr(value, name)) for name in names}}


def _decoded(nodes: list[Any]) -> list[Any]:
    """Return the values of a table.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: It is none.
    """
    classes = _known_classes()
    values: list[Any] = []
    for node in nodes:
        if "plain" in node:
            values.append(node["plain"])
        elif "tuple" in node:
            values.append(tuple(values[i] for i in node["tuple"]))
        elif "map" in node:
            values.append({values[k]: values[v] for k, v in node["map"]})
        elif "distribution" in node:
            values.append(distribution_from_json(node["distribution"]))
        else:
            given = {name: values[i] for name, i in node["fields"].items()}
            values.append(classes[node["class"]](**given))
    return values
