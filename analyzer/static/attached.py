"""Which endpoints does a service class have, however they were attached?

Decorated methods are the plain case. Besides, code that runs while modules are imported attaches endpoints:
assignments in the body of a class, hooks of its bases, decorators of the class, and statements of modules.
Such code is followed (``attaching``) where it can make endpoints at all (``mentions``). What cannot be
followed is reported at its place: an endpoint that is not seen would be missing in the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from analyzer.static.attaching import class_context, code_in
from analyzer.static.fingerprints import MadeBy
from analyzer.static.making import acting_decorators
from analyzer.static.mentions import Mentions
from analyzer.static.names import Assigned, Binding, ClassInfo, FunctionInfo, Names, build_class, mup_name
from analyzer.static.registrations import defined
from analyzer.static.source import Module
from analyzer.static.state import Results
from analyzer.static.syntax import applied, keywords, last_name, name_of, simple_statements
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    External,
    FunctionValue,
    Mark,
    Marked,
    ModuleValue,
    Partial,
    SharedObject,
    Value,
    alternatives,
    join,
    mark_of,
    of_kind,
    unmarked,
)
from analyzer.static.walk import Context, Walk
from analyzer.static.walking import nodes_of, statements_in

__all__ = ["Attached", "Attachments", "endpoint_decorator", "import_time"]

DEFINITIONS = (cst.ClassDef, cst.FunctionDef)
FOLLOWED = (*DEFINITIONS, cst.Assign, cst.AnnAssign)
"""Statements in the body of a class that bind names, which are looked at one by one."""

MAY_BE_FUNCTIONS = (cst.Attribute, cst.BooleanOperation, cst.Call, cst.IfExp, cst.Name, cst.Subscript)
"""Expressions that are not obviously something else."""

HINT = (
    "attach it with @EP(...) above a method of the class, or by code of this source whose arguments are"
    " constants and that does not depend on conditions"
)


@dataclass(frozen=True, slots=True)
class Attached:
    """An endpoint of a service class.

    Attributes:
        attribute: What the class calls it.
        function: Its code.
        served: What runs for a request; None = the function with its decorators, as a method.
        mark: Its path, name and HTTP method.
        module, node: Where it is attached.
        made_by: Expressions besides the function that decide what it does, with their modules.
    """

    attribute: str
    function: FunctionInfo
    served: Value | None
    mark: Mark
    module: Module
    node: cst.CSTNode
    made_by: MadeBy = ()


@dataclass(frozen=True, slots=True)
class _Hook:
    """Code that attached something to a class: where it is, and what it consists of."""

    module: Module
    node: cst.CSTNode
    code: tuple[cst.BaseExpression, ...]


class Attachments:
    """Finds the endpoints of service classes.

    Args:
        walk: Follows code; its findings are about the source that is searched.
        modules: Whose statements may attach endpoints, besides those that a service's module imports.

    Attributes:
        functions: Code of the endpoints found so far.
    """

    def __init__(self, walk: Walk, modules: Sequence[Module] = ()) -> None:
        self._walk = walk
        self._names = walk.names
        self._modules = list(modules)
        self._mentions = Mentions(walk.names)
        self._prepared: set[ClassInfo] = set()
        self._run: set[Module] = set()
        self._later: dict[tuple[ClassInfo, str], _Hook] = {}
        self._attached: set[tuple[FunctionInfo, Value]] = set()
        self._lost: set[ClassInfo] = set()
        self.functions: set[FunctionInfo] = set()

    def of(self, services: Iterable[ClassInfo]) -> dict[ClassInfo, list[Attached]]:
        """Return the endpoints of some services: inherited ones first, each class in source order."""
        services = list(services)
        for info in services:
            for owner in self._lineage(info):
                self._prepare(owner)
        reached = self._reached(services)
        others = self._names.deriving(reached, "MS")
        for info in others:
            for owner in self._lineage(info):
                self._walk.attaching.watch(owner)
        for module in reached:
            self._run_statements(module)
        found = {info: list(self._of(info)) for info in services}
        for info in others:
            for value in (self._walk.attaching.assigned(info) or {}).values():
                mark = mark_of(value)
                self._attached |= {(one, mark) for one in code_in(value) if mark is not None}
        return found

    # Services.

    def check_bindings(self, modules: Iterable[Module]) -> None:
        """Report service classes whose names are bound to something else, too."""
        for module in modules:
            scope = self._names.scope(module)
            for node in nodes_of(module.tree, (cst.ClassDef,), DEFINITIONS):
                name = node.name.value
                if getattr(scope.get(name), "node", None) is node:
                    continue
                if self._names.derives_from(build_class(module, node, ""), "MS"):
                    what = f"the service {name!r} is bound in more than one way: it is not followed"
                    hint = "define it once, under one name; add to it with a decorator of the class"
                    self._report(module, node.name, what, hint)

    def made_services(self, module: Module) -> Iterator[tuple[str, ClassInfo]]:
        """Yield the services of a module that functions of the source make, by the names bound to them."""
        for name, binding in self._names.scope(module).items():
            match binding:
                case Assigned(value=cst.BaseExpression() as value):
                    info = self.made_service(module, binding)
                    if info is not None:
                        yield self._name_of(info), info
                    elif self._mentions.makes_services(module, value):
                        self._report(module, value, f"{name!r} may be a service that a function makes")

    def made_service(self, module: Module, binding: Assigned) -> ClassInfo | None:
        """Return the service a name is bound to, if a function of the source has made it."""
        made = binding.value
        if made is None or last_name(made) or not self._mentions.makes_services(module, made):
            return None
        known = self._walk.lookups.imported
        if binding not in known:
            code = partial(self._walk.expressions.evaluate, made)
            known[binding] = self._walk.attaching.run(Context(module), code) or UNKNOWN
        value = known[binding]
        return value.info if isinstance(value, ClassValue) else None

    def _name_of(self, info: ClassInfo) -> str:
        """Return the name a class has, which the function that made it may have given it."""
        named = (self._walk.attaching.assigned(info) or {}).get("__name__")
        text = None if named is None else named.python()[1]
        return text if isinstance(text, str) else info.node.name.value

    # What runs when modules are imported.

    def _lineage(self, info: ClassInfo) -> list[ClassInfo]:
        return self._names.line(info)[::-1]

    def _prepare(self, info: ClassInfo) -> None:
        """Run what runs when a class has been defined."""
        if info in self._prepared:
            return
        self._prepared.add(info)
        self._walk.attaching.watch(info)
        self._check_body(info)
        self._check_metaclass(info)
        hook = self._names.method(info, "__init_subclass__", after=info)
        if hook is not None and self._mentions.in_function(hook):
            code = partial(self._walk.attaching.subclassed, hook, info)
            where = _Hook(info.module, info.node.name, tuple(keywords(info.node.keywords).values()))
            self._hook(info, where, code, f"what {hook.qualname!r} adds to {info.qualname!r}")
        for decorator in acting_decorators(self._names, info):
            target = decorator.decorator
            if self._mentions.of(info.module, target):
                where = _Hook(info.module, decorator, (target,))
                code = partial(self._walk.attaching.decorated, info, target)
                self._hook(info, where, code, f"what a decorator adds to {info.qualname!r}")

    def _hook(self, info: ClassInfo, where: _Hook, code: partial[Results], what: str) -> None:
        before = self._walk.attaching.assigned(info) or {}
        value = self._walk.attaching.run(Context(info.module), code)
        self._note(info, before, where, what, followed=value in (ClassValue(info), NONE))

    def _note(
        self, info: ClassInfo, before: dict[str, Value], where: _Hook, what: str, *, followed: bool = True
    ) -> None:
        """Note what code has added to a class; report it if that is not known."""
        after = self._walk.attaching.assigned(info)
        if not followed or (after is None and info not in self._lost):
            self._lost.add(info)
            self._report(where.module, where.node, f"{what} is not known")
        for name, new in (after or {}).items():
            if before.get(name) != new:
                self._later[info, name] = where

    def _check_metaclass(self, info: ClassInfo) -> None:
        kind = keywords(info.node.keywords).get("metaclass")
        if kind and self._names.class_of(info.module, kind) and self._mentions.of(info.module, kind):
            self._report(info.module, kind, f"a metaclass may add endpoints to {info.qualname!r}")

    def _check_body(self, info: ClassInfo) -> None:
        """Report what the body of a class does besides defining and assigning, if it can make endpoints."""
        for statement in info.node.body.body:
            for part in simple_statements(statement):
                followed = isinstance(part, FOLLOWED)
                if not followed and self._mentions.of(info.module, *import_time(part), owner=info):
                    what = f"this statement in the body of {info.qualname!r} may add endpoints"
                    self._report(info.module, part, what)
        for function in nodes_of(info.node.body, (cst.FunctionDef,), DEFINITIONS):
            name = function.name.value
            decorator = endpoint_decorator(self._names, info.module, function)
            if decorator is not None and getattr(info.bindings.get(name), "node", None) is not function:
                what = f"{name!r} is bound in more than one way: which of them is an endpoint is not known"
                self._report(info.module, decorator, what)

    # Statements of modules.

    def _reached(self, services: Iterable[ClassInfo]) -> list[Module]:
        """Return the modules that a process has imported which serves one of these."""
        found = list(dict.fromkeys([*self._modules, *(info.module for info in services)]))
        for module in found:
            found += [one for one in self._names.modules_imported(module) if one not in found]
        return found

    def _run_statements(self, module: Module) -> None:
        if module in self._run:
            return
        self._run.add(module)
        for statement in module.tree.body:
            if type(statement) is cst.FunctionDef and statement.decorators:
                self._run_decorators(module, statement)
            for part in filter(_acts, simple_statements(statement)):
                makes = self._mentions.of(module, *import_time(part))
                if makes or self._changes_service(module, part):
                    before = {one: self._walk.attaching.assigned(one) or {} for one in self._prepared}
                    code = partial(self._walk.attaching.executed, part)
                    done = self._walk.attaching.run(Context(module), code)
                    if done is None and makes:
                        self._report(module, part, "this statement may attach endpoints, and is not followed")
                    where = _Hook(module, part, tuple(_expressions(import_time(part))))
                    for info, known in before.items():
                        self._note(info, known, where, f"what this statement adds to {info.qualname!r}")

    def _run_decorators(self, module: Module, definition: cst.FunctionDef) -> None:
        """Run the decorators of a function of a module: they may make it an endpoint of some service."""
        code = tuple(one.decorator for one in definition.decorators)
        if endpoint_decorator(self._names, module, definition) is not None or not self._mentions.of(
            module, *code
        ):
            return
        before = {one: self._walk.attaching.assigned(one) or {} for one in self._prepared}
        for function in defined(module, definition, self._names):
            if isinstance(function, FunctionInfo):
                self._walk.decorators.marked(function)
        for info, known in before.items():
            where = _Hook(module, definition.name, code)
            self._note(
                info,
                known,
                where,
                f"what the decorators of {name_of(definition.name)!r} add to {info.qualname!r}",
            )

    def _changes_service(self, module: Module, statement: cst.CSTNode) -> bool:
        """Return whether a statement assigns to an attribute of a service, maybe in place of an endpoint."""
        for target in statement.targets if type(statement) is cst.Assign else ():
            match target.target:
                case cst.Attribute(value=owner):
                    info = self._names.class_of(module, owner)
                    if info is not None and self._names.derives_from(info, "MS"):
                        return True
        return False

    # Endpoints.

    def _of(self, info: ClassInfo) -> Iterator[Attached]:
        lineage = self._lineage(info)
        later = {owner: self._walk.attaching.assigned(owner) or {} for owner in lineage}
        for name in dict.fromkeys(n for owner in lineage for n in (*owner.bindings, *later[owner])):
            owner = next(o for o in reversed(lineage) if name in o.bindings or name in later[o])
            found = self._later_attached(owner, name, later[owner][name]) if name in later[owner] else None
            if name not in later[owner]:
                found = self._bound(owner, name, owner.bindings[name])
            if found is not None:
                self.functions |= {found.function, *code_in(found.served or FunctionValue(found.function))}
                yield found

    def _bound(self, owner: ClassInfo, name: str, binding: Binding) -> Attached | None:
        """Return the endpoint an attribute is that the body of a class binds; None if it is none."""
        match binding:
            case FunctionInfo():
                return self._method(owner, name, binding)
            case Assigned(value=cst.BaseExpression() as value) if isinstance(value, MAY_BE_FUNCTIONS):
                if self._mentions.of(owner.module, value, owner=owner):
                    code = partial(self._walk.expressions.evaluate, value)
                    found = self._walk.attaching.run(class_context(owner, name), code) or UNKNOWN
                    return self._valued(name, found, _Hook(owner.module, value, (value,)))
        return None

    def _later_attached(self, owner: ClassInfo, name: str, value: Value) -> Attached | None:
        where = self._later.get((owner, name), _Hook(owner.module, owner.node.name, ()))
        return None if mark_of(value) is None else self._valued(name, value, where)

    def _valued(self, name: str, value: Value, where: _Hook) -> Attached | None:
        """Return the endpoint an attribute with a value is; None if it is none."""
        mark = mark_of(value)
        if mark is None and not any(one == UNKNOWN for one in alternatives(value)):
            return None
        marked = [one.function for one in of_kind(alternatives(value), Marked)]
        function = join(marked) if mark else value
        code = next(code_in(unmarked(function)), None)
        if not isinstance(mark, Mark) or code is None:
            what = f"whether {name!r} is an endpoint, and what it does, is not known"
            self._report(where.module, where.node, what)
            return None
        self._attached |= {(one, mark) for one in code_in(function)}
        made_by = tuple((where.module, part) for part in where.code)
        served = unmarked(function)
        plain = served == FunctionValue(code) and self._walk.decorators.decorated(code) is None
        return Attached(name, code, None if plain else served, mark, where.module, where.node, made_by)

    def _method(self, owner: ClassInfo, name: str, function: FunctionInfo) -> Attached | None:
        """Return the endpoint a method is; None if it is none."""
        decorator = endpoint_decorator(self._names, function.module, function.node)
        if decorator is None and not self._may_be_marked(owner, function):
            return None
        value = self._walk.decorators.marked(function)
        mark = mark_of(value)
        place = decorator or function.decorators[0]
        if mark is None and decorator is not None and (isinstance(value, Mark) or _is_open(value)):
            # What is above or below EP is not known, but for that it is there.
            mark = self._walk.decorators.mark(function, decorator)
        if isinstance(mark, Mark):
            self._attached |= {(one, mark) for one in (function, *code_in(value))}
            return Attached(name, function, None, mark, function.module, place)
        if decorator is not None and mark is None:
            what = f"{function.qualname!r} is no endpoint: a decorator above @EP replaces what it has marked"
            hint = "put @EP(...) on top, or functools.wraps(...) on the function that the decorator returns"
            self._report(function.module, decorator, what, hint)
        elif mark is not None or _is_open(value):
            what = f"whether a decorator makes an endpoint of {function.qualname!r} is not known"
            self._report(function.module, place, what)
        return None

    def _may_be_marked(self, owner: ClassInfo, function: FunctionInfo) -> bool:
        decorators = [one.decorator for one in function.decorators]
        return bool(decorators) and self._mentions.of(function.module, *decorators, owner=owner)

    # What is missing.

    def check_all_attached(self) -> None:
        """Report endpoints that were made while modules were imported and that no class has; call it last."""
        marks: dict[FunctionInfo, Mark] = {}
        for made in self._walk.attaching.made:
            if made.once is not None and marks.setdefault(made.once, made.mark) != made.mark:
                what = f"{made.once.qualname!r} is marked twice: wherever it is, the last mark counts"
                hint = "mark a function of its own for each endpoint"
                self._report(made.module, made.node, what, hint)
            if made.functions and not any((one, made.mark) in self._attached for one in made.functions):
                known, path = made.mark.path.python()
                what = f"the endpoint {path!r}" if known else "an endpoint"
                text = f"{what} is made here, and no service has it as far as can be followed"
                self._report(made.module, made.node, text)

    def _report(self, module: Module, node: cst.CSTNode, what: str, hint: str = HINT) -> None:
        module.report(self._walk.diagnostics, "MUP009", what, node, hint)


def endpoint_decorator(names: Names, module: Module, function: cst.CSTNode) -> cst.Decorator | None:
    """Return the ``@EP`` that stands above a function."""
    for decorator in function.decorators if type(function) is cst.FunctionDef else ():
        if mup_name(names.dotted(module, applied(decorator.decorator))) == "EP":
            return decorator
    return None


def _is_open(value: Value) -> bool:
    """Return whether nothing is known of a value, or of one that it may be."""
    known = Closure | ClassValue | External | FunctionValue | Marked | ModuleValue | Partial | SharedObject
    return not all(isinstance(one, known) for one in alternatives(value))


def _acts(statement: cst.CSTNode) -> bool:
    """Return whether a statement of a module may change what others have defined."""
    match statement:
        case cst.FunctionDef() | cst.ClassDef() | cst.Import() | cst.ImportFrom() | cst.AnnAssign():
            return False
        case cst.If(test=cst.Name(value="__name__") | cst.Comparison(left=cst.Name(value="__name__"))):
            return False
        case cst.Assign(targets=targets):
            return not all(name_of(target.target) for target in targets)
    return True


def _expressions(parts: Iterable[cst.CSTNode]) -> Iterator[cst.BaseExpression]:
    """Yield the values that parts of statements are about."""
    for part in parts:
        match part:
            case cst.BaseExpression():
                yield part
            case cst.Expr() | cst.Assign() | cst.AnnAssign() | cst.AugAssign():
                if part.value is not None:
                    yield part.value


def import_time(statement: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the parts of a statement that run when it is executed: no functions and classes inside it."""
    found: list[cst.CSTNode] = []
    for one in statements_in(statement, DEFINITIONS):
        match one:
            case cst.BaseSmallStatement():
                found.append(one)
            case cst.If() | cst.While():
                found.append(one.test)
            case cst.For():
                found.append(one.iter)
            case cst.With():
                found += [item.item for item in one.items]
    return found
