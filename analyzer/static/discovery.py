"""Which services, endpoints and clients does the source define?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from analyzer.static.attached import Attached, Attachments, endpoint_decorator
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo, Names
from analyzer.static.source import Module
from analyzer.static.values import UNKNOWN, ClassValue, Const, ModuleValue, Value, of_kind
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
    """An endpoint as a class has it.

    Attributes:
        name: What a call may say instead of the path: as given, or the name of the method.
        explicit_name: As given to ``EP``, "" if it is not.
        function: Its code.
        attached: How it was attached.
        method: HTTP method it is for, "" = any.
        key: What logs and models call it: the path, with the method where several endpoints share the path.
    """

    path: str
    name: str
    explicit_name: str
    function: FunctionInfo
    attached: Attached
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
    names: Names, modules: Iterable[Module], diagnostics: Diagnostics, attachments: Attachments | None = None
) -> dict[str, ClassInfo]:
    """Return every class that derives from ``MS`` by its name.

    Classes whose name starts with an underscore and bases without endpoints of their own are not services.

    Args:
        names: Meaning of names in the source tree.
        modules: Where classes are looked for.
        diagnostics: Where two classes of one name are reported.
        attachments: Finds services that functions make; None = these are not looked for.
    """
    modules = list(modules)
    derived = names.deriving(modules, "MS")
    bases = {base for c in derived for base in names.line(c)[1:]}
    found: dict[str, ClassInfo] = {}
    for info in derived:
        name = info.node.name.value
        if not name.startswith("_") and (info not in bases or _has_endpoint(names, info, attachments)):
            _add_service(found, name, info, diagnostics)
    if attachments is not None:
        for module in modules:
            for name, info in attachments.made_services(module):
                if not name.startswith("_"):
                    _add_service(found, name, info, diagnostics)
    return found


def _add_service(found: dict[str, ClassInfo], name: str, info: ClassInfo, diagnostics: Diagnostics) -> None:
    if name in found:
        what = f"two services are called {name!r}; the other one is in {found[name].module.file}"
        hint = "rename one, or name the services in mup.toml"
        info.module.report(diagnostics, "MUP005", what, info.node.name, hint)
    else:
        found[name] = info


def report_strays(
    names: Names, modules: Iterable[Module], attached: Collection[FunctionInfo], diagnostics: Diagnostics
) -> None:
    """Report ``@EP`` on functions and methods that no service has.

    Args:
        names: Meaning of names in the source tree.
        modules: Where they are looked for.
        attached: Functions that are endpoints, wherever they are.
        diagnostics: Where they are reported.
    """
    modules = list(modules)
    services = {one for c in names.deriving(modules, "MS") for one in names.mro(c)}
    for module in modules:
        others = (info.bindings for info in names.classes(module) if info not in services)
        bound = (one for scope in (names.scope(module), *others) for one in scope.values())
        for function in of_kind(bound, FunctionInfo):
            decorator = endpoint_decorator(names, function.module, function.node)
            if decorator is not None and function not in attached:
                what = f"@EP on {function.qualname!r}, outside a class that derives from MS"
                hint = "move it into a service: class NAME(MS)"
                module.report(diagnostics, "MUP004", what, decorator, hint)


def client_classes(names: Names, modules: Iterable[Module]) -> dict[str, ClassInfo]:
    """Return every class that derives from ``Client`` and has a scenario."""
    return {
        info.node.name.value: info
        for info in names.deriving(modules, "Client")
        if not info.node.name.value.startswith("_") and names.attribute(info, "scenario") is not None
    }


def named_class(
    names: Names, target: str, kind: str, diagnostics: Diagnostics, attachments: Attachments | None = None
) -> ClassInfo | None:
    """Return the class a project names as ``module:Class``; report it if there is none of that kind.

    With ``attachments``, it may be a class that a function makes.
    """
    module_name, _, class_name = target.partition(":")
    module = names.tree.module(module_name)
    if module is None:
        file = "/".join(module_name.split(".")) + ".py"
        diagnostics.add("MUP007", f"{target!r}: no module {module_name!r} ({file}) in the source folder")
        return None
    info: ClassInfo | None = None
    match names.member(ModuleValue(module), class_name), names.find(module, class_name):
        case ClassValue(found), _:
            info = found
        case None, (there, Assigned() as bound) if attachments is not None:
            info = attachments.made_service(there, bound)
    if info is None:
        known = [c.node.name.value for c in names.deriving([module], kind)]
        what, hint = f"{target!r}: no class {class_name!r}", did_you_mean(class_name, known)
        diagnostics.add("MUP007", what, file=module.file, hint=hint)
        return None
    if not names.derives_from(info, kind):
        what, hint = f"{target!r} does not derive from {kind}", f"class {class_name}({kind})"
        info.module.report(diagnostics, "MUP007", what, info.node.name, hint)
        return None
    return info


def _has_endpoint(names: Names, info: ClassInfo, attachments: Attachments | None) -> bool:
    """Return whether a class has an endpoint: a method with ``@EP``, or one attached in another way."""
    lineage = names.line(info)
    for name in dict.fromkeys(name for owner in lineage for name in owner.bindings):
        method = names.method(info, name)
        if method is not None and endpoint_decorator(names, method.module, method.node):
            return True
    return attachments is not None and bool(attachments.of([info])[info])


def endpoint_methods(
    info: ClassInfo, walk: Walk, attached: Iterable[Attached] | None = None
) -> list[EndpointMethod]:
    """Return the endpoints of a service class; report paths that are not known, and duplicates.

    Args:
        info: The service class.
        walk: Follows code, and is where findings go.
        attached: Its endpoints, if they have been found already.
    """
    found: list[EndpointMethod] = []
    taken: dict[str, str] = {}
    for one in Attachments(walk).of([info])[info] if attached is None else attached:
        path, name, verb = (value.python()[1] for value in (one.mark.path, one.mark.name, one.mark.verb))
        function = one.function
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
            endpoint = EndpointMethod(path, name or one.attribute, name, function, one, verb)
            if _is_free(endpoint, taken, walk):
                taken[_matched(endpoint)] = taken[endpoint.name] = function.qualname
                found.append(endpoint)
            continue
        one.module.report(walk.diagnostics, "MUP006", problem, one.node, hint)
    routes = Routes(endpoint.address for endpoint in found).routes
    return [replace(endpoint, key=routes[endpoint.address].key) for endpoint in found]


def _matched(endpoint: EndpointMethod) -> str:
    """Return a text that endpoints share exactly if they serve the same requests."""
    segments = ("{}" if s.startswith("{") else s for s in endpoint.path.split("/"))
    return f"{'/'.join(segments)} {endpoint.method}"


def _is_free(endpoint: EndpointMethod, taken: Mapping[str, str], walk: Walk) -> bool:
    """Return whether nothing else serves what an endpoint serves, or has its name; report it otherwise."""
    serves = ("path", _matched(endpoint), endpoint.address)
    for what, key, shown in (serves, ("name", endpoint.name, endpoint.name)):
        if key in taken:
            problem = f"{what} {shown!r} is already taken by {taken[key]!r}"
            hint = "every endpoint of a service needs a name, and a path or HTTP method, of its own"
            attached = endpoint.attached
            attached.module.report(walk.diagnostics, "MUP005", problem, attached.node, hint)
            return False
    return True


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
    values: dict[str, Any] = {}
    for name, default in DEFAULTS.items():
        given = overridden.get(name)
        values[name] = type(default)(_setting(info, name, default, walk) if given is None else given)
    return Settings(**values)


def _setting(info: ClassInfo, name: str, default: int | str, walk: Walk) -> Any:
    found = walk.names.attribute(info, name)
    if found is None:
        return default
    owner, binding = found
    value: Value = UNKNOWN
    node: cst.CSTNode = owner.node.name
    if isinstance(binding, Assigned):
        value = walk.lookups.constant(owner.module, binding, owner)
        node = binding.value or node
    plain: Any = value.value if isinstance(value, Const) else None
    # Subclasses do not count: True is no number.
    fits = type(plain) is type(default)
    if fits and plain in KNOWN.get(name, (plain,)) and plain >= LOWEST.get(name, plain):
        return plain
    if fits and name in KNOWN:
        problem = f"must be one of {', '.join(KNOWN[name])}, got {plain!r}"
    elif fits:
        problem = f"must be >= {LOWEST[name]}, got {plain!r}"
    else:
        problem = "is not known from the source" if plain is None else f"cannot be {plain!r}"
    what = f"{name} of {info.node.name.value!r} {problem}"
    hint = f"give the class a constant, or set {name} in mup.toml"
    owner.module.report(walk.diagnostics, "MUP006", what, node, hint)
    return default
