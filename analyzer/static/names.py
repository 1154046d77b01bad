"""What does a name mean: which function, class, module or constant?

Scopes are tables of *bindings*, collected without evaluating anything; ``Names`` follows imports,
aliases, base classes and attributes from there. A name that is bound in more than one way is unknown,
never guessed.
"""

# ruff: noqa: N802  (visit_NODE is how libcst spells it)

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import libcst as cst

from analyzer.static.reflection import writes
from analyzer.static.source import Module, SourceTree
from analyzer.static.syntax import name_of
from analyzer.static.values import UNKNOWN, ClassValue, External, FunctionValue, ModuleValue, Value
from analyzer.static.walking import show, statements_in, walk

__all__ = ["Binding", "ClassInfo", "FunctionInfo", "Names", "assigned_names", "class_line", "mup_name"]


@dataclass(frozen=True, eq=False)
class FunctionInfo:
    """A function, method or lambda of the source tree.

    Attributes:
        qualname: As in ``__qualname__``.
        owner: The class it is a method of.
    """

    module: Module
    node: cst.FunctionDef | cst.Lambda
    qualname: str
    owner: ClassInfo | None = None

    @property
    def line(self) -> int:
        """Line of its ``def`` (not of its decorators)."""
        if isinstance(self.node, cst.FunctionDef):
            return self.module.line(self.node.name)
        return self.module.line(self.node)

    @property
    def is_async(self) -> bool:
        """Whether it is an ``async def``."""
        return isinstance(self.node, cst.FunctionDef) and self.node.asynchronous is not None

    def __repr__(self) -> str:
        # Values are sorted by what this says, and there may be two lambdas in a line.
        column = self.module.column(self.node) if isinstance(self.node, cst.Lambda) else 0
        return f"{self.module.file}:{self.line}:{column}:{self.qualname}"


@dataclass(frozen=True, slots=True, eq=False)
class Assigned:
    """A name bound by an assignment; ``value`` None means: in a way that is not followed."""

    value: cst.BaseExpression | None
    annotation: cst.BaseExpression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Imported:
    """A name bound by an import: a module, or ``attribute`` of it.

    Attributes:
        instead: What the name is bound to where the import fails, in the ``except`` behind it.
    """

    module: str
    attribute: str | None
    instead: FunctionInfo | Imported | None = None


Binding: TypeAlias = "FunctionInfo | ClassInfo | Assigned | Imported"


def annotation_of(binding: Binding | None) -> cst.BaseExpression | None:
    """Return the annotation a name was given where it was bound."""
    return binding.annotation if isinstance(binding, Assigned) else None


@dataclass(frozen=True, eq=False)
class ClassInfo:
    """A class of the source tree.

    Attributes:
        bindings: Methods and class attributes.
        annotated: Names that only have an annotation.
        set_by_methods: Attributes that some method assigns through ``self``, with these methods.
        set_by_name: Methods that set attributes of ``self`` whose names the text does not tell.
        setters: What assigning a property runs.
        captured: Values of the variables of the function around it, if it is inside one.
    """

    module: Module
    node: cst.ClassDef
    qualname: str
    bindings: dict[str, Binding] = field(default_factory=dict)
    annotated: set[str] = field(default_factory=set)
    set_by_methods: dict[str, list[FunctionInfo]] = field(default_factory=dict)
    set_by_name: list[FunctionInfo] = field(default_factory=list)
    setters: dict[str, FunctionInfo] = field(default_factory=dict)
    captured: dict[str, Value] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.module.file}:{self.qualname}"


def class_line(info: ClassInfo) -> int:
    """Return the line of the ``class`` keyword's name (decorators may stand above it)."""
    return info.module.line(info.node.name)


def mup_name(value: Value) -> str:
    """Return the bare name of something the framework exports (``MS``), else ""."""
    if isinstance(value, External) and value.name.split(".")[0] == "mup":
        return value.name.rsplit(".", 1)[-1]
    return ""


When = Literal["certain", "perhaps", "handling"]
"""Whether a statement certainly runs when its scope is executed, or only where something has failed."""


def _simple(body: Sequence[cst.CSTNode], when: When = "certain") -> Iterator[tuple[cst.CSTNode, When]]:
    """Yield the statements that run when the scope is executed, and whether each certainly does."""
    unsure: When = "perhaps" if when == "certain" else when
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine):
            yield from ((small, when) for small in statement.body)
        elif isinstance(statement, cst.If | cst.Else | cst.With | cst.For | cst.While | cst.Finally):
            yield statement, when
            yield from _simple(
                statement.body.body, when if isinstance(statement, cst.With | cst.Finally) else unsure
            )
            orelse = getattr(statement, "orelse", None)
            if orelse is not None:
                yield from _simple([orelse], unsure)
        elif isinstance(statement, cst.Try | cst.TryStar):
            yield from _simple(statement.body.body, unsure)
            for handler in statement.handlers:
                yield from _simple(handler.body.body, "handling")
            rest = [s for s in (statement.orelse, statement.finalbody) if s is not None]
            yield from _simple(rest, unsure)
        else:
            yield statement, when


class _TargetNames(cst.CSTVisitor):
    """Collect the names an assignment target binds. Read ``found`` after the visit."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Attribute(self, node: cst.Attribute) -> bool:  # noqa: ARG002
        return False

    def visit_Subscript(self, node: cst.Subscript) -> bool:  # noqa: ARG002
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)


def target_names(target: cst.CSTNode) -> set[str]:
    """Return the names an assignment target binds."""
    visitor = _TargetNames()
    show(target, visitor)
    return visitor.found


class _AssignedNames(cst.CSTVisitor):
    """Collect the local names a piece of code may bind, nested functions excluded."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.found.add(node.name.value)
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self.found.add(node.name.value)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: ARG002
        return False

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.found |= target_names(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self.found |= target_names(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self.found |= target_names(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self.found |= target_names(node.target)

    def visit_For(self, node: cst.For) -> None:
        self.found |= target_names(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self.found |= target_names(node.name)

    def visit_MatchAs(self, node: cst.MatchAs) -> None:
        if node.name is not None:
            self.found.add(node.name.value)

    def visit_MatchStar(self, node: cst.MatchStar) -> None:
        if node.name is not None:
            self.found.add(node.name.value)

    def visit_MatchMapping(self, node: cst.MatchMapping) -> None:
        if node.rest is not None:
            self.found.add(node.rest.value)

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        name = node.evaluated_alias or node.evaluated_name
        self.found.add(name.split(".")[0])


def assigned_names(*nodes: cst.CSTNode) -> set[str]:
    """Return the local names these pieces of code may bind."""
    visitor = _AssignedNames()
    for node in nodes:
        show(node, visitor)
    return visitor.found


class _ScopeBuilder:
    """Turns the statements of a module or class body into bindings."""

    def __init__(self, module: Module, prefix: str, owner: ClassInfo | None) -> None:
        self.module = module
        self.prefix = prefix
        self.owner = owner
        self.bindings: dict[str, Binding] = {}
        self.setters: dict[str, FunctionInfo] = {}
        self._when: When = "certain"
        self.annotated: set[str] = set()
        self.stars: list[str] = []

    def build(self, body: Sequence[cst.CSTNode]) -> None:
        for statement, self._when in _simple(body):
            if isinstance(statement, cst.FunctionDef):
                name = statement.name.value
                info = FunctionInfo(self.module, statement, self.prefix + name, self.owner)
                role = _property_role(statement)
                if not role:
                    self._bind(name, info)
                elif role == "setter":
                    self.setters[name] = info
            elif isinstance(statement, cst.ClassDef):
                self._bind(statement.name.value, build_class(self.module, statement, self.prefix))
            elif isinstance(statement, cst.Import | cst.ImportFrom):
                self._import(statement)
            elif isinstance(statement, cst.Assign):
                for target in statement.targets:
                    self._assign_target(target.target, statement.value)
            elif isinstance(statement, cst.AnnAssign):
                if isinstance(statement.target, cst.Name) and statement.value is not None:
                    annotation = statement.annotation.annotation
                    self._assign(statement.target.value, statement.value, annotation)
                elif isinstance(statement.target, cst.Name):
                    self.annotated.add(statement.target.value)
            elif isinstance(statement, cst.AugAssign | cst.For):
                self._unfollowed(statement.target)

    def _bind(self, name: str, binding: Binding) -> None:
        before = self.bindings.get(name)
        both_imports = isinstance(before, Imported) and isinstance(binding, Imported)
        if isinstance(before, Imported) and self._when == "handling":
            # Code for where the module is not installed.
            instead = binding if isinstance(binding, FunctionInfo | Imported) else None
            binding = replace(before, instead=before.instead or instead)
        elif before is not None and self._when != "certain" and not both_imports:
            # Which definition counts is decided when the module is imported.
            binding = Assigned(None)
        self.bindings[name] = binding

    def _assign(
        self, name: str, value: cst.BaseExpression, annotation: cst.BaseExpression | None = None
    ) -> None:
        if isinstance(self.bindings.get(name), Imported) and self._when != "certain":
            return  # what to do without an optional module
        # Two assignments: which one counts depends on when the name is read.
        known = annotation or annotation_of(self.bindings.get(name))
        self.bindings[name] = Assigned(None if name in self.bindings else value, known)

    def _assign_target(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        if isinstance(target, cst.Name):
            self._assign(target.value, value)
            return
        if isinstance(target, cst.Subscript):
            self._changed(target)
        pairs = _pairwise(target, value)
        for one, part in pairs:
            self._assign_target(one, part)
        if not pairs:
            self._unfollowed(target)

    def _changed(self, target: cst.BaseExpression) -> None:
        """Forget what a name of a class body holds whose contents the body changes."""
        while isinstance(target, cst.Subscript):
            target = target.value
        name = name_of(target)
        if self.owner is not None and name in self.bindings:
            self.bindings[name] = Assigned(None, annotation_of(self.bindings[name]))

    def _unfollowed(self, target: cst.CSTNode) -> None:
        for name in target_names(target):
            self.bindings[name] = Assigned(None)

    def _import(self, statement: cst.Import | cst.ImportFrom) -> None:
        for name, binding in imports(self.module, statement):
            if name == "*":
                self.stars.append(binding.module)
            else:
                self._bind(name, binding)


def _pairwise(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Return what ``A, B = 1, 2`` assigns to what; nothing if it is no such assignment."""
    if not isinstance(target, cst.Tuple | cst.List) or not isinstance(value, cst.Tuple | cst.List):
        return []
    parts = (*target.elements, *value.elements)
    if len(target.elements) != len(value.elements) or any(isinstance(p, cst.StarredElement) for p in parts):
        return []
    return [(t.value, v.value) for t, v in zip(target.elements, value.elements, strict=True)]


def imports(module: Module, statement: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, Imported]]:
    """Yield the names an import statement binds; ``*`` for a star import."""
    if isinstance(statement, cst.Import):
        for alias in statement.names:
            full = alias.evaluated_name
            if alias.evaluated_alias:
                yield alias.evaluated_alias, Imported(full, None)
            else:
                head = full.split(".")[0]
                yield head, Imported(head, None)
        return
    base = "" if statement.module is None else _dotted(statement.module)
    if statement.relative:
        package = module.name.split(".") if module.name else []
        up = len(statement.relative) - (1 if module.is_package else 0)
        package = package[: len(package) - up] if up else package
        base = ".".join([*package, *([base] if base else [])])
    if isinstance(statement.names, cst.ImportStar):
        yield "*", Imported(base, None)
        return
    for alias in statement.names:
        yield alias.evaluated_alias or alias.evaluated_name, Imported(base, alias.evaluated_name)


def _dotted(node: cst.BaseExpression) -> str:
    """Return the name of a module in an import statement."""
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return name_of(node)


def _self_attributes(body: cst.CSTNode, name: str) -> set[str]:
    """Return the attributes a method assigns through its first parameter, which has this name."""
    found: set[str] = set()
    for statement in statements_in(body):
        targets: list[cst.CSTNode] = []
        if type(statement) is cst.Assign:
            targets += (target.target for target in statement.targets)
        elif isinstance(statement, cst.AnnAssign | cst.AugAssign | cst.For):
            targets.append(statement.target)
        elif type(statement) is cst.With:
            targets += (item.asname.name for item in statement.items if item.asname is not None)
        while targets:
            target = targets.pop()
            if isinstance(target, cst.Tuple | cst.List):
                targets += (element.value for element in target.elements)
            elif (
                isinstance(target, cst.Attribute)
                and isinstance(target.value, cst.Name)
                and target.value.value == name
            ):
                found.add(target.attr.value)
    return found


def build_class(module: Module, node: cst.ClassDef, prefix: str) -> ClassInfo:
    """Collect what a class body binds."""
    info = ClassInfo(module, node, prefix + node.name.value)
    builder = _ScopeBuilder(module, f"{info.qualname}.", info)
    builder.build(node.body.body)
    info.bindings.update(builder.bindings)
    info.setters.update(builder.setters)
    info.annotated.update(builder.annotated)
    for binding in (*builder.bindings.values(), *builder.setters.values()):
        if isinstance(binding, FunctionInfo) and isinstance(binding.node, cst.FunctionDef):
            parameters = binding.node.params
            first = (*parameters.posonly_params, *parameters.params)[:1]
            if first:
                for name in _self_attributes(binding.node.body, first[0].name.value):
                    info.set_by_methods.setdefault(name, []).append(binding)
                if module.reflects:
                    _note_reflection(info, binding, first[0].name.value)
    return info


def _note_reflection(info: ClassInfo, method: FunctionInfo, me: str) -> None:
    """Note the attributes that a method sets of its first parameter, which has this name, by reflection."""
    for write in writes(method.node):
        if _is_me(write.owner, me):
            if write.name is not None:
                info.set_by_methods.setdefault(write.name, []).append(method)
            elif method not in info.set_by_name:
                info.set_by_name.append(method)


def _is_me(owner: cst.BaseExpression, me: str) -> bool:
    """Return whether an expression is ``super()``, or a method's first parameter, which has this name."""
    if isinstance(owner, cst.Call):
        return name_of(owner.func) == "super"
    return name_of(owner) == me


def _property_role(function: cst.FunctionDef) -> str:
    """Return "setter", "deleter" or "getter" if the function adds to a property of its own name, else ""."""
    for decorator in function.decorators:
        target = decorator.decorator
        if not isinstance(target, cst.Attribute) or not isinstance(target.value, cst.Name):
            continue
        if target.value.value == function.name.value:
            return target.attr.value
    return ""


class _GlobalStatements(cst.CSTVisitor):
    """Collect names that functions rebind through ``global``, and what they bind them to."""

    def __init__(self) -> None:
        self.found: dict[str, list[Assigned]] = {}

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        statements = (part for part in statements_in(node.body) if isinstance(part, cst.Global))
        declared = {item.name.value for statement in statements for item in statement.names}
        for name in declared:
            self.found.setdefault(name, [])
        if declared & assigned_names(node.body):
            parameters = (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
            local = {p.name.value for p in parameters} | (assigned_names(node.body) - declared)
            visitor = _GlobalBindings(declared, local, self.found)
            node.body.visit(visitor)


class _GlobalBindings(cst.CSTVisitor):
    """Collect what a function binds global names to."""

    def __init__(self, declared: set[str], local: set[str], found: dict[str, list[Assigned]]) -> None:
        self._declared = declared
        self._local = local
        self._found = found

    def visit_Assign(self, node: cst.Assign) -> bool:
        # What depends on local variables cannot be told here.
        known = not target_names(node.value) & self._local
        for target in node.targets:
            plain = known and isinstance(target.target, cst.Name)
            for name in target_names(target.target) & self._declared:
                self._found[name].append(Assigned(node.value if plain else None))
        return False

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.AnnAssign | cst.AugAssign | cst.NamedExpr | cst.For | cst.AsName | cst.Del):
            for name in assigned_names(node) & self._declared:
                self._found[name].append(Assigned(None))
        return super().on_visit(node)


MUTATORS = {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
}


class Changes:
    """What a module changes after it was bound.

    Attributes:
        names: Global names whose contents change (``ROUTES["x"] = ...``, ``ROUTES.append(...)``).
        attributes: Names of attributes that are assigned or whose contents change (``A.ROUTES = ...``),
            except through ``self``, which `ClassInfo.set_by_methods` knows better.
        assigned: Those of ``attributes`` that are assigned.
        by_owner: The same with what they are assigned to, if that has a name.
        anything: Whether attributes are set whose names the text does not tell, likewise.
    """

    def __init__(self, module: Module) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.assigned: set[str] = set()
        self.by_owner: list[tuple[cst.BaseExpression, str]] = []
        self.anything = False
        if module.reflects:
            self._reflective(module)
        for node in module.nodes:
            kind = type(node)
            if kind is cst.Call:
                self._called(node.func)  # type: ignore[attr-defined]
            elif kind is cst.Assign:
                for target in node.targets:  # type: ignore[attr-defined]
                    self._target(target.target)
            elif kind in (cst.AugAssign, cst.AnnAssign, cst.Del):
                self._target(node.target)  # type: ignore[attr-defined]

    def _reflective(self, module: Module) -> None:
        for write in writes(module.tree):
            if _is_me(write.owner, "self"):
                continue
            if write.name is None:
                self.anything = True
            else:
                self.attributes.add(write.name)
                self.assigned.add(write.name)

    def _called(self, function: cst.BaseExpression) -> None:
        if isinstance(function, cst.Attribute) and function.attr.value in MUTATORS:
            self._contents(function.value)

    def _target(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Subscript):
            self._contents(target.value)
        elif isinstance(target, cst.Attribute):
            if name_of(target.value) != "self":
                self.attributes.add(target.attr.value)
                self.assigned.add(target.attr.value)
                if isinstance(target.value, cst.Name | cst.Attribute):
                    self.by_owner.append((target.value, target.attr.value))
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._target(element.value)

    def _contents(self, owner: cst.CSTNode) -> None:
        while isinstance(owner, cst.Subscript):
            owner = owner.value
        if isinstance(owner, cst.Name):
            self.names.add(owner.value)
        elif isinstance(owner, cst.Attribute):
            self.attributes.add(owner.attr.value)


MAX_ALIASES = 50
"""No chain of ``Base = Other`` is longer."""


class Declared(NamedTuple):
    """What a project says of libraries (``[analysis]`` of ``mup.toml``), by dotted names.

    Attributes:
        transparent: Decorators that leave what a function does alone.
        swallowing: Context managers that may swallow any exception.
    """

    transparent: frozenset[str] = frozenset()
    swallowing: frozenset[str] = frozenset()


class Names:
    """Looks names up in modules and attributes up in classes, across files.

    Attributes:
        tree: Where modules are found.
        declared: What the project says of libraries.
    """

    def __init__(self, tree: SourceTree, declared: Declared = Declared()) -> None:  # noqa: B008 (immutable)
        self.tree = tree
        self.declared = declared
        self._scopes: dict[Module, tuple[dict[str, Binding], list[str]]] = {}
        self._changes: dict[Module, Changes] = {}
        self._rebound: dict[tuple[Module, str], list[Assigned]] = {}
        self._changed: dict[Assigned, tuple[str, Assigned]] = {}
        self._mro: dict[ClassInfo, tuple[ClassInfo | External, ...]] = {}
        self._of_classes: tuple[int, frozenset[tuple[ClassInfo, str]]] = (0, frozenset())

    def scope(self, module: Module) -> dict[str, Binding]:
        """Return the bindings of a module, star imports excluded."""
        return self._scope(module)[0]

    def _scope(self, module: Module) -> tuple[dict[str, Binding], list[str]]:
        if module not in self._scopes:
            builder = _ScopeBuilder(module, "", None)
            builder.build(module.tree.body)
            rebound = _GlobalStatements()
            if cst.Global in module.kinds:
                show(module.tree, rebound)
            self._scopes[module] = (builder.bindings, builder.stars)
            changed = {
                name
                for name in self.changes(module).names
                if isinstance(binding := builder.bindings.get(name), Assigned)
                # `repo.add(...)` is a method like any other if `repo` is an object of the source tree.
                and not self._makes_object(module, binding.value)
            }
            for name, values in rebound.found.items():
                before = builder.bindings.get(name)
                self._rebound[module, name] = [*values, *([before] if isinstance(before, Assigned) else [])]
            for name in rebound.found.keys() | changed:
                binding = builder.bindings.get(name)
                builder.bindings[name] = unknown = Assigned(None, annotation_of(binding))
                if name not in rebound.found and isinstance(binding, Assigned):
                    self._changed[unknown] = (name, binding)
        return self._scopes[module]

    def _makes_object(self, module: Module, value: cst.BaseExpression | None) -> bool:
        return isinstance(value, cst.Call) and isinstance(self.dotted(module, value.func), ClassValue)

    def rebound(self, module: Module, name: str) -> list[Assigned]:
        """Return everything a global name may be bound to, if functions rebind it."""
        return self._rebound.get((module, name), [])

    def changed(self, binding: Assigned) -> tuple[str, Assigned] | None:
        """Return the global name whose contents change that a binding is about, and what it begins with."""
        return self._changed.get(binding)

    def modules_read(self) -> list[Module]:
        """Return the modules whose names have been looked up so far."""
        return list(self._changes)

    def attributes_assigned(self) -> set[str]:
        """Return the attributes that some module read so far assigns, except through ``self``."""
        return set[str]().union(*(changes.assigned for changes in self._changes.values()))

    def attributes_changed(self) -> set[str]:
        """Return the attributes that some module read so far assigns, or whose contents it changes."""
        return set[str]().union(*(changes.attributes for changes in self._changes.values()))

    def sets_anything(self) -> bool:
        """Return whether some module read so far sets attributes whose names its text does not tell."""
        return any(changes.anything for changes in self._changes.values())

    def is_replaced(self, info: ClassInfo, name: str) -> bool:
        """Return whether some module read so far gives a class itself another value of an attribute."""
        read = len(self._changes)
        if self._of_classes[0] != read:
            found = set()
            for module, changes in list(self._changes.items()):
                for owner, attribute in changes.by_owner:
                    meaning = self.dotted(module, owner)
                    if isinstance(meaning, ClassValue):
                        found.add((meaning.info, attribute))
            self._of_classes = (read, frozenset(found))
        return any((owner, name) in self._of_classes[1] for owner in self.mro(info))

    def changes(self, module: Module) -> Changes:
        """Return what a module changes after it was bound."""
        if module not in self._changes:
            self._changes[module] = Changes(module)
        return self._changes[module]

    def modules_imported(self, module: Module) -> Iterator[Module]:
        """Yield the modules of the tree that a module imports and that may use the framework."""
        names: dict[str, None] = {}
        for node in module.nodes:
            if isinstance(node, cst.Import):
                names |= dict.fromkeys(alias.evaluated_name for alias in node.names)
            elif isinstance(node, cst.ImportFrom):
                for name, binding in imports(module, node):
                    names[binding.module] = None
                    if name != "*":
                        names[f"{binding.module}.{binding.attribute}".lstrip(".")] = None
        for name in names:
            found = self._tree_module(name) if self.tree.may_use_framework(name) else None
            if found is not None and found is not module:
                yield found

    def classes(self, module: Module) -> Iterator[ClassInfo]:
        """Yield the classes of a module in source order, nested ones included."""
        stack = [b for b in self.scope(module).values() if isinstance(b, ClassInfo)]
        while stack:
            info = stack.pop(0)
            yield info
            stack = [b for b in info.bindings.values() if isinstance(b, ClassInfo)] + stack

    def find(
        self, module: Module, name: str, seen: set[tuple[Module, str]] | None = None
    ) -> tuple[Module, Binding] | External | Module | None:
        """Return what a global name of a module refers to, imports followed; ``seen`` has led here already.

        Returns:
            A binding with the module it is in; a module; something outside the tree; or None if nothing of
            that name is known.
        """
        # Modules may import everything from each other in a circle.
        seen = set() if seen is None else seen
        while (module, name) not in seen:
            seen.add((module, name))
            bindings, stars = self._scope(module)
            binding = bindings.get(name)
            if binding is None:
                return self._find_star(stars, name, seen)
            if not isinstance(binding, Imported):
                return module, binding
            target = self._import(binding, module)
            if isinstance(target, External) and binding.instead is not None:
                if isinstance(binding.instead, FunctionInfo):
                    return module, binding.instead
                target = self._import(binding.instead, module)
            if not isinstance(target, tuple):
                return target
            module, name = target
        return None

    def _find_star(
        self, stars: Sequence[str], name: str, seen: set[tuple[Module, str]]
    ) -> tuple[Module, Binding] | External | Module | None:
        for star in stars:
            target = self._tree_module(star)
            if target is not None and (target, name) not in seen:
                found = self.find(target, name, seen)
                if found is not None:
                    return found
            elif target is None and star == "mup" and name in ("MS", "EP", "Client", "Communication"):
                return External(f"mup.{name}")
        return External(f"builtins.{name}") if hasattr(builtins, name) else None

    def _tree_module(self, name: str) -> Module | None:
        # The framework is known by its contract; its own source is never part of the application.
        return None if name.split(".", maxsplit=1)[0] == "mup" else self.tree.module(name)

    def _import(self, binding: Imported, importer: Module) -> Module | External | tuple[Module, str]:
        module = self._tree_module(binding.module)
        if binding.attribute is None:
            return module if module is not None else External(binding.module)
        submodule = self._tree_module(f"{binding.module}.{binding.attribute}".lstrip("."))
        if module is not None and module is not importer and binding.attribute in self.scope(module):
            return module, binding.attribute
        if submodule is not None:
            return submodule
        if module is not None:
            return module, binding.attribute
        return External(f"{binding.module}.{binding.attribute}")

    def imported(
        self, module: Module, statement: cst.Import | cst.ImportFrom
    ) -> Iterator[tuple[str, Value | tuple[Module, str]]]:
        """Yield the names an import inside a function binds: to a value, or to a name of a module."""
        for name, binding in imports(module, statement):
            target = self._import(binding, module)
            yield name, ModuleValue(target) if isinstance(target, Module) else target

    def imported_inside(
        self, owner: FunctionInfo | ClassInfo
    ) -> dict[str, tuple[Module, Binding] | External | Module | None]:
        """Return what the import statements inside a function or class bind names to."""
        found: dict[str, tuple[Module, Binding] | External | Module | None] = {}
        if not owner.module.imports_inside:
            return found
        for node in walk(owner.node):
            if isinstance(node, cst.Import | cst.ImportFrom):
                for name, binding in imports(owner.module, node):
                    target = self._import(binding, owner.module)
                    found[name] = self.find(*target) if isinstance(target, tuple) else target
        return found

    def value_of(self, found: tuple[Module, Binding] | External | Module | None) -> Value | None:
        """Return the value of a function, class or module; None for assignments and unknown names."""
        if isinstance(found, Module):
            return ModuleValue(found)
        if isinstance(found, External):
            return found
        if found is None:
            return None
        return self.binding_value(found[1])

    def binding_value(self, binding: Binding) -> Value | None:
        """Return the value of a binding that is not an assignment; None if it is one."""
        if isinstance(binding, FunctionInfo):
            return FunctionValue(binding)
        if isinstance(binding, ClassInfo):
            return ClassValue(binding)
        return None

    def dotted(self, module: Module, node: cst.BaseExpression, depth: int = 0) -> Value:
        """Return what a name or dotted name at module level means: a base class, a decorator.

        ``depth`` is the number of aliases that led here: they may refer to each other in a circle.
        """
        if isinstance(node, cst.Name):
            found = self.find(module, node.value)
            value = self.value_of(found)
            if value is None and isinstance(found, tuple) and isinstance(found[1], Assigned):
                alias = found[1].value
                # `Base = MS` is an alias worth following; anything computed is not.
                if isinstance(alias, cst.Name | cst.Attribute) and depth < MAX_ALIASES:
                    return self.dotted(found[0], alias, depth + 1)
            return value or UNKNOWN
        if isinstance(node, cst.Attribute):
            return self.member(self.dotted(module, node.value, depth), node.attr.value) or UNKNOWN
        if isinstance(node, cst.Subscript):  # Generic[T]
            return self.dotted(module, node.value, depth)
        return UNKNOWN

    def library_name(self, module: Module, node: cst.BaseExpression, depth: int = 0) -> str:
        """Return the dotted name of something of a library, "" if it is none.

        A method of an object has the name of what has made the object, without its arguments.
        """
        value = self.dotted(module, node)
        if isinstance(value, External):
            return value.name
        if isinstance(node, cst.Call):
            return self.library_name(module, node.func, depth)
        if isinstance(node, cst.Attribute):
            owner = self.library_name(module, node.value, depth)
            return f"{owner}.{node.attr.value}" if owner else ""
        if isinstance(node, cst.Name) and depth < MAX_ALIASES:
            found = self.find(module, node.value)
            if isinstance(found, tuple) and isinstance(found[1], Assigned):
                made = found[1].value
                return self.library_name(found[0], made, depth + 1) if isinstance(made, cst.Call) else ""
        return ""

    def member(self, owner: Value, name: str) -> Value | None:
        """Return an attribute of a module or outside name that is not an assignment."""
        if isinstance(owner, External):
            return External(f"{owner.name}.{name}")
        if isinstance(owner, ModuleValue):
            submodule = self._tree_module(f"{owner.module.name}.{name}")
            if name not in self.scope(owner.module) and submodule is not None:
                return ModuleValue(submodule)
            return self.value_of(self.find(owner.module, name))
        if isinstance(owner, ClassValue):
            found = self.attribute(owner.info, name)
            return self.binding_value(found[1]) if found else None
        return None

    def mro(self, info: ClassInfo) -> tuple[ClassInfo | External, ...]:
        """Return the class and its bases in the order attributes are looked up."""
        if info not in self._mro:
            self._mro[info] = (info,)  # a class that inherits from itself ends here
            lines: list[list[ClassInfo | External]] = []
            for argument in info.node.bases:
                base = self.dotted(info.module, argument.value)
                if isinstance(base, ClassValue):
                    lines.append(list(self.mro(base.info)))
                elif isinstance(base, External):
                    lines.append([base])
            lines.append([line[0] for line in lines])
            self._mro[info] = (info, *(base for base in _linearised(lines) if base is not info))
        return self._mro[info]

    def line(self, info: ClassInfo) -> list[ClassInfo]:
        """Return the class and those of its bases that the source has, in the order of lookups."""
        return [one for one in self.mro(info) if isinstance(one, ClassInfo)]

    def outside(self, info: ClassInfo) -> frozenset[str]:
        """Return the dotted names of the bases of a class that the source does not have."""
        return frozenset(one.name for one in self.mro(info) if isinstance(one, External))

    def declare(self, info: ClassInfo, bases: Sequence[External]) -> None:
        """Give a class that no ``class`` statement makes its bases."""
        self._mro[info] = (info, *bases)

    def derives_from(self, info: ClassInfo, name: str) -> bool:
        """Return whether a class derives from the framework's class of this name (``MS``, ``Client``)."""
        return any(mup_name(base) == name for base in self.mro(info) if isinstance(base, External))

    def attribute(
        self, info: ClassInfo, name: str, after: ClassInfo | None = None
    ) -> tuple[ClassInfo, Binding] | None:
        """Return the class that provides an attribute, and its binding; ``after`` starts behind a class."""
        line = self.line(info)
        if after is not None:
            line = line[line.index(after) + 1 :] if after in line else []
        for owner in line:
            if name in owner.bindings:
                return owner, owner.bindings[name]
        return None

    def assigned_by_methods(self, info: ClassInfo, name: str) -> list[FunctionInfo]:
        """Return the methods that assign ``self.name``."""
        owners = self.line(info)
        return [method for owner in owners for method in owner.set_by_methods.get(name, [])]

    def set_by_name(self, info: ClassInfo) -> list[FunctionInfo]:
        """Return the methods that set attributes of ``self`` whose names their text does not tell."""
        owners = self.line(info)
        return [method for owner in owners for method in owner.set_by_name]

    def annotating(self, info: ClassInfo, name: str) -> list[ClassInfo]:
        """Return the class and those of its bases whose body annotates an attribute without binding it."""
        owners = self.line(info)
        return [owner for owner in owners if name in owner.annotated]


def _linearised(lines: Sequence[Sequence[ClassInfo | External]]) -> Iterator[ClassInfo | External]:
    """Merge the orders of several bases as Python does (C3)."""
    waiting = [list(line) for line in lines if line]
    while waiting:
        heads = [line[0] for line in waiting]
        # Without a candidate Python refuses the class; any order will do.
        chosen = next((h for h in heads if all(h not in line[1:] for line in waiting)), heads[0])
        yield chosen
        waiting = [rest for line in waiting if (rest := [base for base in line if base != chosen])]
