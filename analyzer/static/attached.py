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
from analyzer.static.making import CLASS_DECORATORS, external_name
from analyzer.static.mentions import Mentions
from analyzer.static.names import (
    Assigned,
    Binding,
    ClassInfo,
    FunctionInfo,
    Names,
    build_class,
    mup_name,
)
from analyzer.static.source import Module
from analyzer.static.state import Results
from analyzer.static.syntax import applied, name_of, simple_statements
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
    unmarked,
)
from analyzer.static.walk import Context, Walk
from analyzer.static.walking import statements_in

__all__ = ["Attached", "Attachments", "endpoint_decorator", "import_time"]

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
        others = [
            c for module in reached for c in self._names.classes(module) if self._names.derives_from(c, "MS")
        ]
        for info in others:
            for owner in self._lineage(info):
                self._walk.attaching.watch(owner)
        for module in reached:
            self._run_statements(module)
        found = {info: list(self._of(info)) for info in services}
        for info in others:
            for value in (self._walk.attaching.assigned(info) or {}).values():
                self._attached |= {
                    (one, mark) for one in code_in(value) if (mark := mark_of(value)) is not None
                }
        return found

    # Services.

    def check_bindings(self, modules: Iterable[Module]) -> None:
        """Report service classes whose names are bound to something else, too."""
        for module in modules:
            scope = self._names.scope(module)
            for node in statements_in(module.tree, (cst.FunctionDef, cst.ClassDef)):
                if not isinstance(node, cst.ClassDef):
                    continue
                bound = scope.get(node.name.value)
                if isinstance(bound, ClassInfo) and bound.node is node:
                    continue
                if self._names.derives_from(build_class(module, node, ""), "MS"):
                    what = (
                        f"the service {node.name.value!r} is bound in more than one way: it is not followed"
                    )
                    hint = "define it once, under one name; add to it with a decorator of the class"
                    self._report(module, node.name, what, hint)

    def made_services(self, module: Module) -> Iterator[tuple[str, ClassInfo]]:
        """Yield the services of a module that functions of the source make, by the names bound to them."""
        for name, binding in self._names.scope(module).items():
            if isinstance(binding, Assigned) and binding.value is not None:
                info = self.made_service(module, binding)
                if info is not None:
                    yield self._name_of(info), info
                elif self._mentions.makes_services(module, binding.value):
                    self._report(module, binding.value, f"{name!r} may be a service that a function makes")

    def made_service(self, module: Module, binding: Assigned) -> ClassInfo | None:
        """Return the service a name is bound to, if a function of the source has made it."""
        if binding.value is None or isinstance(binding.value, cst.Name | cst.Attribute):
            return None
        if not self._mentions.makes_services(module, binding.value):
            return None
        known = self._walk.lookups.imported
        if binding not in known:
            code = partial(self._walk.expressions.evaluate, binding.value)
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
        hook = self._names.attribute(info, "__init_subclass__", after=info)
        if hook is not None and isinstance(hook[1], FunctionInfo) and self._mentions.in_function(hook[1]):
            code = partial(self._walk.attaching.subclassed, hook[1], info)
            given = tuple(k.value for k in info.node.keywords if k.keyword is not None)
            where = _Hook(info.module, info.node.name, given)
            self._hook(info, where, code, f"what {hook[1].qualname!r} adds to {info.qualname!r}")
        for decorator in reversed(info.node.decorators):
            target = decorator.decorator
            base = applied(target)
            known = external_name(self._names.dotted(info.module, base)) in CLASS_DECORATORS
            if not known and self._mentions.of(info.module, target):
                where = _Hook(info.module, decorator, (target,))
                code = partial(self._walk.attaching.decorated, info, target)
                self._hook(info, where, code, f"what a decorator adds to {info.qualname!r}")

    def _hook(self, info: ClassInfo, where: _Hook, code: partial[Results], what: str) -> None:
        before = self._walk.attaching.assigned(info) or {}
        value = self._walk.attaching.run(Context(info.module), code)
        after = self._walk.attaching.assigned(info)
        if value not in (ClassValue(info), NONE) or (after is None and info not in self._lost):
            self._lost.add(info)
            self._report(where.module, where.node, f"{what} is not known")
        for name, new in (after or {}).items():
            if before.get(name) != new:
                self._later[info, name] = where

    def _check_metaclass(self, info: ClassInfo) -> None:
        for keyword in info.node.keywords:
            if keyword.keyword is not None and keyword.keyword.value == "metaclass":
                kind = self._names.dotted(info.module, keyword.value)
                if isinstance(kind, ClassValue) and self._mentions.of(info.module, keyword.value):
                    self._report(
                        info.module, keyword.value, f"a metaclass may add endpoints to {info.qualname!r}"
                    )

    def _check_body(self, info: ClassInfo) -> None:
        """Report what the body of a class does besides defining and assigning, if it can make endpoints."""
        for statement in info.node.body.body:
            parts = simple_statements(statement)
            for part in parts:
                followed = isinstance(part, cst.FunctionDef | cst.ClassDef | cst.Assign | cst.AnnAssign)
                if not followed and self._mentions.of(info.module, *import_time(part), owner=info):
                    what = f"this statement in the body of {info.qualname!r} may add endpoints"
                    self._report(info.module, part, what)
        for function in statements_in(info.node.body, (cst.FunctionDef, cst.ClassDef)):
            if not isinstance(function, cst.FunctionDef):
                continue
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
            parts = simple_statements(statement)
            for part in parts:
                if not _acts(part):
                    continue
                makes = self._mentions.of(module, *import_time(part))
                if makes or self._changes_service(module, part):
                    before = {one: self._walk.attaching.assigned(one) or {} for one in self._prepared}
                    done = self._walk.attaching.run(
                        Context(module), partial(self._walk.attaching.executed, part)
                    )
                    if done is None and makes:
                        self._report(module, part, "this statement may attach endpoints, and is not followed")
                    self._note_changes(module, part, before)

    def _changes_service(self, module: Module, statement: cst.CSTNode) -> bool:
        """Return whether a statement assigns to an attribute of a service, maybe in place of an endpoint."""
        targets = [one.target for one in statement.targets] if isinstance(statement, cst.Assign) else []
        owners = (self._names.dotted(module, t.value) for t in targets if isinstance(t, cst.Attribute))
        return any(isinstance(one, ClassValue) and self._names.derives_from(one.info, "MS") for one in owners)

    def _note_changes(
        self, module: Module, node: cst.CSTNode, before: dict[ClassInfo, dict[str, Value]]
    ) -> None:
        code = tuple(_expressions(import_time(node)))
        for info, known in before.items():
            after = self._walk.attaching.assigned(info)
            if after is None and info not in self._lost:
                self._lost.add(info)
                self._report(module, node, f"what this statement adds to {info.qualname!r} is not known")
            for name, value in (after or {}).items():
                if known.get(name) != value:
                    self._later[info, name] = _Hook(module, node, code)

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
        if isinstance(binding, FunctionInfo):
            return self._method(owner, name, binding)
        if not isinstance(binding, Assigned) or binding.value is None:
            return None
        expression = binding.value
        if not _may_be_function(expression) or not self._mentions.of(owner.module, expression, owner=owner):
            return None
        code = partial(self._walk.expressions.evaluate, expression)
        context = class_context(owner, name)
        value = self._walk.attaching.run(context, code)
        return self._valued(
            name, UNKNOWN if value is None else value, _Hook(owner.module, expression, (expression,))
        )

    def _later_attached(self, owner: ClassInfo, name: str, value: Value) -> Attached | None:
        where = self._later.get((owner, name), _Hook(owner.module, owner.node.name, ()))
        if mark_of(value) is None:
            return None
        return self._valued(name, value, where)

    def _valued(self, name: str, value: Value, where: _Hook) -> Attached | None:
        """Return the endpoint an attribute with a value is; None if it is none."""
        mark = mark_of(value)
        if mark is None and not any(one == UNKNOWN for one in alternatives(value)):
            return None
        function = (
            join(one.function for one in alternatives(value) if isinstance(one, Marked)) if mark else value
        )
        code = next(iter(code_in(unmarked(function))), None)
        if not isinstance(mark, Mark) or code is None:
            self._report(
                where.module, where.node, f"whether {name!r} is an endpoint, and what it does, is not known"
            )
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
        place = decorator or _first_decorator(function)
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
        if not isinstance(function.node, cst.FunctionDef):
            return False
        decorators = [one.decorator for one in function.node.decorators]
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
        self._walk.diagnostics.add("MUP009", what, file=module.file, hint=hint, **module.span(node))


def endpoint_decorator(names: Names, module: Module, function: cst.CSTNode) -> cst.Decorator | None:
    """Return the ``@EP`` that stands above a function."""
    if isinstance(function, cst.FunctionDef):
        for decorator in function.decorators:
            target = decorator.decorator
            base = applied(target)
            if mup_name(names.dotted(module, base)) == "EP":
                return decorator
    return None


def _first_decorator(function: FunctionInfo) -> cst.CSTNode:
    assert isinstance(function.node, cst.FunctionDef)  # noqa: S101  (only these are decorated)
    return function.node.decorators[0]


def _is_open(value: Value) -> bool:
    """Return whether nothing is known of a value, or of one that it may be."""
    known = Closure | ClassValue | External | FunctionValue | Marked | ModuleValue | Partial | SharedObject
    return not all(isinstance(one, known) for one in alternatives(value))


def _may_be_function(expression: cst.BaseExpression) -> bool:
    """Return whether an expression is not obviously something else."""
    return isinstance(
        expression, cst.Call | cst.Name | cst.Attribute | cst.Subscript | cst.IfExp | cst.BooleanOperation
    )


def _acts(statement: cst.CSTNode) -> bool:
    """Return whether a statement of a module may change what others have defined."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom | cst.AnnAssign):
        return False
    if isinstance(statement, cst.Assign):
        return not all(isinstance(target.target, cst.Name) for target in statement.targets)
    if isinstance(statement, cst.If):
        return not any(name_of(one) == "__name__" for one in _parts_of(statement.test))
    return True


def _parts_of(test: cst.BaseExpression) -> Iterator[cst.CSTNode]:
    yield test
    if isinstance(test, cst.Comparison):
        yield test.left


def _expressions(parts: Iterable[cst.CSTNode]) -> Iterator[cst.BaseExpression]:
    """Yield the values that parts of statements are about."""
    for part in parts:
        value = (
            part.value if isinstance(part, cst.Expr | cst.Assign | cst.AnnAssign | cst.AugAssign) else part
        )
        if isinstance(value, cst.BaseExpression):
            yield value


def import_time(statement: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the parts of a statement that run when it is executed: no functions and classes inside it."""
    if isinstance(statement, cst.BaseSmallStatement):
        return [statement]
    found: list[cst.CSTNode] = []
    for one in statements_in(statement, (cst.FunctionDef, cst.ClassDef)):
        if isinstance(one, cst.BaseSmallStatement):
            found.append(one)
        elif isinstance(one, cst.If | cst.While):
            found.append(one.test)
        elif isinstance(one, cst.For):
            found.append(one.iter)
        elif isinstance(one, cst.With):
            found += [item.item for item in one.items]
    return found
