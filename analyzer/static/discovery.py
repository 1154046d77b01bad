"""Which services, endpoints and clients does the source define?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import libcst as cst

from analyzer.static.diagnostics import Diagnostics
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo, Names, mup_name
from analyzer.static.source import Module
from analyzer.static.values import UNKNOWN, Const, ModuleValue, Value
from analyzer.static.walk import Walk
from mup.errors import did_you_mean
from mup.routes import METHODS, Routes, template_problem
from mup.service import ADMISSIONS

__all__ = [
    "EndpointMethod",
    "Settings",
    "client_classes",
    "endpoint_methods",
    "named_class",
    "service_classes",
]


@dataclass(frozen=True, slots=True)
class EndpointMethod:
    """An ``@EP`` method as a class has it.

    Attributes:
        name: What a call may say instead of the path: as given, or the name of the method.
        explicit_name: As given in the decorator, "" if it is not.
        method: HTTP method it is for, "" = any.
        key: What logs and models call it: the path, with the method where several endpoints share the path.
    """

    path: str
    name: str
    explicit_name: str
    function: FunctionInfo
    method: str = ""
    key: str = ""

    @property
    def address(self) -> str:
        """What it serves, in one text."""
        return f"{self.path} {self.method}" if self.method else self.path


@dataclass(frozen=True, slots=True)
class Settings:
    """What a service class says about its deployment."""

    pool_size: int
    replicas: int
    port: int
    runtime: str
    admission: str
    pinned: bool


def service_classes(
    names: Names, modules: Iterable[Module], diagnostics: Diagnostics
) -> dict[str, ClassInfo]:
    """Return every class that derives from ``MS`` by its name, and report ``@EP`` outside of them.

    Classes whose name starts with an underscore and bases without endpoints of their own are not services.
    """
    modules = list(modules)
    derived = [c for module in modules for c in names.classes(module) if names.derives_from(c, "MS")]
    bases = {base for c in derived for base in names.mro(c)[1:] if isinstance(base, ClassInfo)}
    found: dict[str, ClassInfo] = {}
    for info in derived:
        name = info.node.name.value
        if name.startswith("_") or (info in bases and not any(_marked_methods(names, info))):
            continue
        if name in found:
            diagnostics.add(
                "MUP005",
                f"two services are called {name!r}; the other one is in {found[name].module.file}",
                file=info.module.file,
                **info.module.span(info.node.name),
                hint="rename one, or name the services in mup.toml",
            )
        else:
            found[name] = info
    report_strays(names, modules, {*derived, *bases}, diagnostics)
    return found


def report_strays(
    names: Names, modules: Iterable[Module], services: set[ClassInfo], diagnostics: Diagnostics
) -> None:
    """Report ``@EP`` on functions and on methods of classes that no service derives from."""
    for module in modules:
        candidates = list(names.scope(module).values())
        for info in names.classes(module):
            if info not in services:
                candidates += info.bindings.values()
        for function in candidates:
            decorator = _mark(names, function) if isinstance(function, FunctionInfo) else None
            if isinstance(function, FunctionInfo) and decorator is not None:
                diagnostics.add(
                    "MUP004",
                    f"@EP on {function.qualname!r}, outside a class that derives from MS",
                    file=module.file,
                    **module.span(decorator),
                    hint="move it into a service: class NAME(MS)",
                )


def client_classes(names: Names, modules: Iterable[Module]) -> dict[str, ClassInfo]:
    """Return every class that derives from ``Client`` and has a scenario."""
    return {
        info.node.name.value: info
        for module in modules
        for info in names.classes(module)
        if names.derives_from(info, "Client")
        and not info.node.name.value.startswith("_")
        and names.attribute(info, "scenario") is not None
    }


def named_class(names: Names, target: str, kind: str, diagnostics: Diagnostics) -> ClassInfo | None:
    """Return the class a project names as ``module:Class``; report it if there is none of that kind."""
    module_name, _, class_name = target.partition(":")
    module = names.tree.module(module_name)
    if module is None:
        file = "/".join(module_name.split(".")) + ".py"
        diagnostics.add("MUP007", f"{target!r}: no module {module_name!r} ({file}) in the source folder")
        return None
    found = names.member(ModuleValue(module), class_name)
    info = getattr(found, "info", None)
    if not isinstance(info, ClassInfo):
        known = [c.node.name.value for c in names.classes(module) if names.derives_from(c, kind)]
        diagnostics.add(
            "MUP007",
            f"{target!r}: no class {class_name!r}",
            file=module.file,
            hint=did_you_mean(class_name, known),
        )
        return None
    if not names.derives_from(info, kind):
        diagnostics.add(
            "MUP007",
            f"{target!r} does not derive from {kind}",
            file=info.module.file,
            **info.module.span(info.node.name),
            hint=f"class {class_name}({kind})",
        )
        return None
    return info


def _mark(names: Names, function: FunctionInfo) -> cst.Decorator | None:
    """Return the ``@EP`` of a function."""
    if isinstance(function.node, cst.FunctionDef):
        for decorator in function.node.decorators:
            target = decorator.decorator
            base = target.func if isinstance(target, cst.Call) else target
            if mup_name(names.dotted(function.module, base)) == "EP":
                return decorator
    return None


def _marked_methods(names: Names, info: ClassInfo) -> Iterator[tuple[FunctionInfo, cst.Decorator]]:
    """Yield the endpoint methods of a class: inherited ones first, each class in source order."""
    lineage = [c for c in reversed(names.mro(info)) if isinstance(c, ClassInfo)]
    for name in dict.fromkeys(name for owner in lineage for name in owner.bindings):
        found = names.attribute(info, name)
        if found is not None and isinstance(found[1], FunctionInfo):
            decorator = _mark(names, found[1])
            if decorator is not None:
                yield found[1], decorator


def endpoint_methods(info: ClassInfo, walk: Walk) -> list[EndpointMethod]:
    """Return the endpoints of a service class; report paths that are not known, and duplicates."""
    found: list[EndpointMethod] = []
    taken: dict[str, str] = {}
    for function, decorator in _marked_methods(walk.names, info):
        arguments = _arguments(decorator, function, walk)
        path, name, verb = arguments.get("path"), arguments.get("name", ""), arguments.get("method", "")
        method = function.qualname.rsplit(".", 1)[-1]
        if not isinstance(path, str) or not path.startswith("/") or not isinstance(name, str):
            problem = f"the path of endpoint {function.qualname!r} is not known from the source"
            hint = 'write @EP("/path/") with a text or constant that starts with /'
        elif template_problem(path):
            problem, hint = f"the path {path!r} cannot be served", template_problem(path)
        elif not isinstance(verb, str) or verb not in ("", *METHODS):
            problem = f"the HTTP method of endpoint {function.qualname!r} is not known from the source"
            hint = f"give one of {', '.join(METHODS)}"
        elif "/" in name:
            problem = f"the name {name!r} of endpoint {function.qualname!r} is a path"
            hint = "leave the '/' out: callers tell names and paths apart by it"
        else:
            endpoint = EndpointMethod(path, name or method, name, function, verb)
            if _is_free(endpoint, taken, decorator, walk):
                taken[_matched(endpoint)] = taken[endpoint.name] = function.qualname
                found.append(endpoint)
            continue
        module = function.module
        walk.diagnostics.add("MUP006", problem, hint=hint, file=module.file, **module.span(decorator))
    routes = Routes(endpoint.address for endpoint in found).routes
    return [replace(endpoint, key=routes[endpoint.address].key) for endpoint in found]


def _matched(endpoint: EndpointMethod) -> str:
    """Return a text that endpoints share exactly if they serve the same requests."""
    segments = ("{}" if s.startswith("{") else s for s in endpoint.path.split("/"))
    return f"{'/'.join(segments)} {endpoint.method}"


def _is_free(
    endpoint: EndpointMethod, taken: Mapping[str, str], decorator: cst.Decorator, walk: Walk
) -> bool:
    """Return whether nothing else serves what an endpoint serves, or has its name; report it otherwise."""
    module = endpoint.function.module
    for what, key, shown in (
        ("path", _matched(endpoint), endpoint.address),
        ("name", endpoint.name, endpoint.name),
    ):
        if key in taken:
            walk.diagnostics.add(
                "MUP005",
                f"{what} {shown!r} is already taken by {taken[key]!r}",
                hint="every endpoint of a service needs a name, and a path or HTTP method, of its own",
                file=module.file,
                **module.span(decorator),
            )
            return False
    return True


def _arguments(decorator: cst.Decorator, function: FunctionInfo, walk: Walk) -> Mapping[str, object]:
    call = decorator.decorator
    values: dict[str, object] = {}
    if isinstance(call, cst.Call):
        for index, argument in enumerate(call.args):
            key = argument.keyword.value if argument.keyword else ("path", "name")[min(index, 1)]
            value = walk.lookups.constant(function.module, Assigned(argument.value), function.owner)
            values[key] = value.value if isinstance(value, Const) else None
    return values


DEFAULTS: dict[str, int | str] = {
    "pool_size": 1,
    "replicas": 1,
    "port": 0,
    "runtime": "process",
    "admission": "fifo",
    "pinned": True,
}
LOWEST = {"pool_size": 1, "replicas": 1, "port": 0}
KNOWN = {"admission": ADMISSIONS}


def settings(info: ClassInfo, overridden: Mapping[str, int | str | None], walk: Walk) -> Settings:
    """Return what a class says about its deployment; report what is not known or out of range.

    Args:
        info: The service class.
        overridden: Settings that come from elsewhere; the class need not know them.
        walk: Evaluates constants.
    """
    values: dict[str, int | str] = {}
    for name, default in DEFAULTS.items():
        given = overridden.get(name)
        values[name] = _setting(info, name, default, walk) if given is None else given
    return Settings(
        int(values["pool_size"]),
        int(values["replicas"]),
        int(values["port"]),
        str(values["runtime"]),
        str(values["admission"]),
        bool(values["pinned"]),
    )


def _setting(info: ClassInfo, name: str, default: int | str, walk: Walk) -> int | str:
    found = walk.names.attribute(info, name)
    if found is None:
        return default
    owner, binding = found
    value: Value = UNKNOWN
    node: cst.CSTNode = owner.node.name
    if isinstance(binding, Assigned):
        value = walk.lookups.constant(owner.module, binding, owner)
        node = binding.value or node
    plain = value.value if isinstance(value, Const) else None
    if isinstance(default, str) and isinstance(plain, str):
        if plain in KNOWN.get(name, (plain,)):
            return plain
        problem = f"must be one of {', '.join(KNOWN[name])}, got {plain!r}"
    elif isinstance(default, bool):
        if isinstance(plain, bool):
            return plain
        problem = "is not known from the source" if plain is None else f"cannot be {plain!r}"
    elif isinstance(default, int) and isinstance(plain, int) and not isinstance(plain, bool):
        if plain >= LOWEST[name]:
            return plain
        problem = f"must be >= {LOWEST[name]}, got {plain!r}"
    else:
        problem = "is not known from the source" if plain is None else f"cannot be {plain!r}"
    walk.diagnostics.add(
        "MUP006",
        f"{name} of {info.node.name.value!r} {problem}",
        file=owner.module.file,
        **owner.module.span(node),
        hint=f"give the class a constant, or set {name} in mup.toml",
    )
    return default
