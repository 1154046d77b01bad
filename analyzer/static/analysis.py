"""What does an application do? Source folder in, ``Application`` out; nothing is imported or run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path as FilePath

from analyzer.static.analysis_cache import AnalysisCache
from analyzer.static.application import (
    Application,
    ClientClass,
    Definition,
    Endpoint,
    Operation,
    Path,
    Service,
)
from analyzer.static.attached import Attachments
from analyzer.static.catalogue import Catalogue
from analyzer.static.definitions import Definitions
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.discovery import (
    EndpointMethod,
    client_classes,
    endpoint_methods,
    named_class,
    report_strays,
    service_classes,
    settings,
)
from analyzer.static.execution import Execution
from analyzer.static.failures import report_failure, room
from analyzer.static.fingerprints import Fingerprints, MadeBy
from analyzer.static.ignoring import not_ignored, unknown_codes
from analyzer.static.names import ClassInfo, Declared, FunctionInfo, Names
from analyzer.static.responses import report_second_phase
from analyzer.static.source import Module, SourceTree
from analyzer.static.values import Value
from analyzer.static.walk import Role
from mup.errors import AnalysisError, did_you_mean
from mup.events.sites import Site

__all__ = ["analyse"]


def analyse(
    root: str | FilePath,
    *,
    services: Mapping[str, str] | None = None,
    clients: Collection[str] | None = None,
    databases: Collection[str] | None = None,
    overrides: Mapping[str, Mapping[str, int | str | None]] | None = None,
    skip: Collection[str] = (),
    declared: Declared | None = None,
    cache: AnalysisCache | None = None,
    with_code: bool = False,
) -> Application:
    """Analyse a source folder, or one file and what it imports from its folder.

    Args:
        root: The folder that is on ``sys.path`` when the services run, or a file in it.
        services: ``module:Class`` by service name; None = every ``MS`` subclass, named by its class.
        clients: ``module:Class`` of the clients; None = every ``Client`` subclass.
        databases: Names of the databases; None = not known, every name is fine.
        overrides: Per service, what replaces class attributes (``pool_size``, ``replicas``, ``port``,
            ``admission``).
        skip: Labels of endpoints that are not followed: they are measured as a whole.
        declared: What is known of libraries besides mup's own tables.
        cache: What is known of ``services`` from before, with equal arguments; renewed if there is no error.
        with_code: Also tell the definitions behind every endpoint and scenario; not together with ``cache``.

    Returns:
        What was found. Source that cannot be analysed is in ``diagnostics``, not an exception.

    Raises:
        AnalysisError: There is no such folder or file.
    """
    root = FilePath(root)
    if not root.exists():
        raise AnalysisError("no such file or folder", where=str(root), hint="name a folder of Python source")
    if not root.is_dir() and not root.is_file():
        raise AnalysisError("neither a file nor a folder", where=str(root))
    folder = (root if root.is_dir() else root.parent).resolve()
    diagnostics = Diagnostics()
    with room():
        try:
            tree = SourceTree(folder, diagnostics)
            modules: list[Module] = []
            if services is None or clients is None:
                if root.is_dir():
                    modules = tree.modules()
                else:
                    modules = [m for m in (tree.module_at(folder / root.name),) if m is not None]
            return _analyse(
                tree,
                modules,
                services,
                clients,
                databases,
                overrides or {},
                skip,
                declared or Declared(),
                diagnostics,
                cache if services is not None else None,
                with_code=with_code,
            )
        except Exception as error:  # noqa: BLE001  (any file has to be survived)
            report_failure(diagnostics, error, "this source")
    return Application(root=folder, services=(), clients=(), diagnostics=diagnostics.all())


def _analyse(
    tree: SourceTree,
    modules: list[Module],
    services: Mapping[str, str] | None,
    clients: Collection[str] | None,
    databases: Collection[str] | None,
    overrides: Mapping[str, Mapping[str, int | str | None]],
    skip: Collection[str],
    declared: Declared,
    diagnostics: Diagnostics,
    known: AnalysisCache | None,
    *,
    with_code: bool,
) -> Application:
    names = Names(tree, declared)
    addresses: dict[str, Mapping[str, str]] = {}
    execution = Execution(names, Catalogue(addresses, databases), diagnostics)
    attachments = Attachments(execution.walk, modules if services is None else ())
    if services is None:
        found = service_classes(names, modules, diagnostics, attachments)
        attachments.of(found.values())
        report_strays(names, modules, attachments.functions, diagnostics)
        attachments.check_bindings(modules)
        if not found and not diagnostics.all():
            hint = "a service is `from mup import MS; class NAME(MS)`"
            diagnostics.add("MUP003", "no class derives from MS", hint=hint)
    else:
        again = services if known is None else known.changed(services)
        found = _named(names, again, diagnostics, attachments)
    users = (
        client_classes(names, modules)
        if clients is None
        else {c.node.name.value: c for c in _named_clients(names, clients, diagnostics)}
    )

    def analysing() -> _Analysis:
        return _Analysis(
            names, diagnostics, found, execution, attachments, addresses, skip, with_code=with_code
        )

    analysis = analysing()
    if known is not None and services is not None:
        if not known.callable_as_before(analysis.addresses):
            # Others may call what has changed.
            known.unchanged = {}
            more = {name: target for name, target in services.items() if name not in found}
            found = {**found, **_named(names, more, diagnostics, attachments)}
            found = {name: found[name] for name in services if name in found}
            addresses.clear()
            analysis = analysing()
        analysis.addresses.update({name: one.addresses for name, one in known.unchanged.items()})
    fresh = {name: analysis.service(name, info, overrides.get(name, {})) for name, info in found.items()}
    order = fresh if services is None else services
    result = tuple(one for name in order if (one := fresh.get(name) or _remembered(known, name)) is not None)
    if services is not None:
        named = dict.fromkeys(info.module for info in found.values())
        report_strays(names, named, attachments.functions, diagnostics)
        attachments.check_bindings(named)
    attachments.check_all_attached()
    scenarios = tuple(c for info in users.values() if (c := analysis.client(info)) is not None)
    _report_circles(result, diagnostics)
    _report_missing(skip, result, diagnostics)
    for before in known.unchanged.values() if known is not None else ():
        diagnostics.extend(Diagnostics(before.diagnostics))
    files = {*tree.loaded(), *(e.file for one in result for e in one.endpoints)}
    diagnostics.extend(Diagnostics(unknown_codes(sorted(files), tree.root)))
    application = Application(
        root=tree.root,
        services=result,
        clients=scenarios,
        diagnostics=not_ignored(diagnostics.all(), tree.root),
        remembered=() if known is None else tuple(known.unchanged),
    )
    if known is not None:
        known.keep(application, analysis.addresses, {n: one.all() for n, one in analysis.findings.items()})
    return application


def _remembered(known: AnalysisCache | None, name: str) -> Service | None:
    one = None if known is None else known.unchanged.get(name)
    return None if one is None else one.service


def _named(
    names: Names, services: Mapping[str, str], diagnostics: Diagnostics, attachments: Attachments
) -> dict[str, ClassInfo]:
    found = {n: named_class(names, target, "MS", diagnostics, attachments) for n, target in services.items()}
    return {name: info for name, info in found.items() if info is not None}


def _named_clients(names: Names, clients: Collection[str], diagnostics: Diagnostics) -> list[ClassInfo]:
    found = [named_class(names, target, "Client", diagnostics) for target in clients]
    return [info for info in found if info is not None]


class _Analysis:
    """Analyses services and clients once it is known who there is to call."""

    def __init__(
        self,
        names: Names,
        diagnostics: Diagnostics,
        services: Mapping[str, ClassInfo],
        execution: Execution,
        attachments: Attachments,
        addresses: dict[str, Mapping[str, str]],
        skip: Collection[str],
        *,
        with_code: bool,
    ) -> None:
        self._names = names
        self._diagnostics = diagnostics
        self._fingerprints = Fingerprints(names)
        self._definitions = Definitions(names, self._fingerprints) if with_code else None
        self.addresses = addresses
        self._skip = skip
        self.findings: dict[str, Diagnostics] = {}
        self._execution = execution
        self._methods: dict[str, list[EndpointMethod]] = {}
        attached = attachments.of(services.values())
        for name, info in services.items():
            self._methods[name] = endpoint_methods(info, execution.walk, attached[info])
            self.addresses[name] = {m.name: m.address for m in self._methods[name]}

    def service(self, name: str, info: ClassInfo, overrides: Mapping[str, int | str | None]) -> Service:
        """Return one service; what is found about it is kept apart, too."""
        everything = self._diagnostics
        self._diagnostics = self._execution.walk.diagnostics = self.findings[name] = Diagnostics()
        try:
            return self._service(name, info, overrides)
        finally:
            everything.extend(self.findings[name])
            self._diagnostics = self._execution.walk.diagnostics = everything

    def _service(self, name: str, info: ClassInfo, overrides: Mapping[str, int | str | None]) -> Service:
        deployment = settings(info, overrides, self._execution.walk)
        self._execution.walk.sharing = deployment.runtime != "process"
        endpoints = tuple(self._endpoint(name, info, method) for method in self._methods[name])
        for method in self._methods[name]:
            if f"{name}{method.key}" not in self._skip:
                self._execution.walk.mistakes.check_runtime(info, method.function, deployment.runtime)
        if not endpoints:
            what, hint = f"service {name!r} has no endpoint", 'mark a method with @EP("/path/")'
            info.module.report(self._diagnostics, "MUP008", what, info.node.name, hint)
        return Service(
            name=name,
            class_name=info.qualname,
            file=info.module.file,
            line=info.line,
            pool_size=deployment.pool_size,
            replicas=deployment.replicas,
            port=deployment.port,
            runtime=deployment.runtime,
            pinned=deployment.pinned,
            admission="random" if deployment.admission == "random" else "fifo",
            endpoints=endpoints,
        )

    def _endpoint(self, service: str, info: ClassInfo, method: EndpointMethod) -> Endpoint:
        function = method.function
        whole = f"{service}{method.key}" in self._skip
        paths: tuple[Path, ...]
        if whole:
            paths = (self._unfollowed(service, method),)
        else:
            paths = self._paths(function, info, "endpoint", method.attached.served)
            self._check_responses(function, paths)
            report_second_phase(function, paths, self._diagnostics)
        return Endpoint(
            service=service,
            path=method.key,
            name=method.explicit_name,
            function=function.qualname,
            file=function.module.file,
            line=function.line,
            paths=paths,
            fingerprint=self._fingerprints.of(function, info, method.attached.made_by),
            code=self._code(function, info, method.attached.made_by),
            whole=whole,
        )

    def _unfollowed(self, service: str, method: EndpointMethod) -> Path:
        """Return the path of an endpoint that is measured as a whole, and say that it is."""
        function = method.function
        module, place = function.module, function.place
        what = f"{service}{method.key} is not analysed: its work and its calls are measured as a whole"
        hint = "take it out of [analysis] skip to have its branches in the model"
        module.report(self._diagnostics, "MUP070", what, place, hint)
        site = Site(module.file, function.qualname, 0, function.line, module.column(place))
        return Path((Operation("respond", site),), "return", 0, (function.line, 0))

    def _code(self, function: FunctionInfo, info: ClassInfo, made_by: MadeBy = ()) -> tuple[Definition, ...]:
        return () if self._definitions is None else self._definitions.of(function, info, made_by)

    def _paths(
        self, function: FunctionInfo, info: ClassInfo, role: Role, served: Value | None = None
    ) -> tuple[Path, ...]:
        """Return the paths of a method; a failure of the analyzer is a finding, and the others go on."""
        try:
            return self._execution.paths(function, info, role, served)
        except Exception as error:  # noqa: BLE001  (any source has to be survived)
            module, what = function.module, repr(function.qualname)
            span = module.span(function.place)
            report_failure(self._diagnostics, error, what, file=module.file, span=span)
            return ()

    def _check_responses(self, function: FunctionInfo, paths: Iterable[Path]) -> None:
        for path in paths:
            responses = list(_responses(path))
            for repeated in _repeated_responses(path):
                what = f"{function.qualname!r} can respond here in every iteration of a loop"
                self._diagnostics.at(repeated.site, "MUP021", what, "leave the loop after comm.respond(...)")
            if not responses and path.ends == "return":
                last = path.operations[-1] if path.operations else None
                after = f" after {_described(last)}" if last else ""
                what = f"{function.qualname!r} can end without a response{after}"
                hint = "call comm.respond(...) on every way through the method"
                function.module.report(self._diagnostics, "MUP020", what, function.place, hint)
            for second in responses[1:]:
                what = f"{function.qualname!r} can respond again here, after line {responses[0].site.line}"
                self._diagnostics.at(second.site, "MUP021", what, "return after the first comm.respond(...)")

    def client(self, info: ClassInfo) -> ClientClass | None:
        function = self._names.method(info, "scenario")
        if function is None:
            what = f"client {info.node.name.value!r} has no scenario"
            hint = "define `async def scenario(self, comm)`"
            info.module.report(self._diagnostics, "MUP007", what, info.node.name, hint)
            return None
        return ClientClass(
            name=info.node.name.value,
            file=info.module.file,
            line=info.line,
            function=function.qualname,
            scenario_line=function.line,
            paths=self._paths(function, info, "client"),
            fingerprint=self._fingerprints.of(function, info),
            without_think_times=self._fingerprints.without_think_times(function, info),
            code=self._code(function, info),
        )


def _responses(path: Path) -> Iterator[Operation]:
    """Yield the responses outside of loops and of tasks that may respond too late.

    All bodies of a choice have equally many.
    """
    joined = {o.of for o in path.operations if o.op == "join"}
    for index, operation in enumerate(path.operations):
        if operation.op == "respond":
            yield operation
        elif operation.op == "choice" or (operation.op == "task" and index in joined):
            yield from _responses(operation.bodies[0])


def _repeated_responses(path: Path) -> Iterator[Operation]:
    """Yield the responses inside of loops."""
    for operation in path.operations:
        for body in operation.bodies:
            if operation.op == "loop":
                yield from (o for o in body.walk() if o.op == "respond")
            else:
                yield from _repeated_responses(body)


def _described(operation: Operation) -> str:
    target = f" {operation.target}" if operation.target else ""
    return f"the {operation.op}{target} in line {operation.site.line}"


def _report_missing(skip: Iterable[str], services: Iterable[Service], diagnostics: Diagnostics) -> None:
    known = [e.label for s in services for e in s.endpoints]
    for label in skip:
        if label not in known:
            what = f"[analysis] skip names no endpoint: {label!r}"
            diagnostics.add("MUP071", what, hint=did_you_mean(label, known))


def _report_circles(services: Iterable[Service], diagnostics: Diagnostics) -> None:
    """Report every circle of calls once, at the endpoint where it is entered first."""
    endpoints = {e.label: e for s in services for e in s.endpoints}
    calls = {
        label: list(
            dict.fromkeys(
                o.target for p in e.paths for o in p.walk() if o.op == "call" and o.target in endpoints
            )
        )
        for label, e in endpoints.items()
    }
    finished: set[str] = set()

    def visit(label: str, trail: list[str]) -> None:
        if label in trail:
            ring = " -> ".join([*trail[trail.index(label) :], label])
            endpoint = endpoints[label]
            site = Site(endpoint.file, endpoint.function, 0, endpoint.line, 1)
            hint = "a request that waits for itself can hold all workers of a service for ever"
            diagnostics.at(site, "MUP033", f"endpoints call each other in a circle: {ring}", hint)
        elif label not in finished:
            for target in calls[label]:
                visit(target, [*trail, label])
            finished.add(label)

    for label in endpoints:
        visit(label, [])
