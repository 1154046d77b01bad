"""What does a name mean: which function, class, module or constant?

Scopes are tables of *bindings*, collected without evaluating anything; ``Names`` follows imports,
aliases, base classes and attributes from there. A name that is bound in more than one way is unknown,
never guessed.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import libcst as cst
from libcst.helpers import get_full_name_for_node_or_raise

from analyzer.static.items import containers_changed
from analyzer.static.reflection import LOOKING_METHODS, MUTATORS, literal_text, writes
from analyzer.static.source import Module, SourceTree
from analyzer.static.star_imports import exported
from analyzer.static.syntax import (
    applied,
    container_of,
    last_name,
    name_of,
    named_parameters,
    positional_parameters,
    stars,
    target_names,
    targets_in,
)
from analyzer.static.values import UNKNOWN, ClassValue, External, FunctionValue, ModuleValue, Value, of_kind
from analyzer.static.walking import nodes_of, of_types, statements_in

__all__ = [
    "Binding",
    "ClassInfo",
    "Found",
    "FunctionInfo",
    "Names",
    "assigned_names",
    "imported_name",
    "mup_name",
]


class Bound:
    """What a name can be bound to.

    Attributes:
        annotation: What it was given where it was bound.
    """

    __slots__ = ()
    annotation: cst.BaseExpression | None = None

    def meaning(self) -> Value | None:
        """Return it as a value; None if that has to be evaluated, or looked up elsewhere."""
        return None


@dataclass(frozen=True, eq=False)
class FunctionInfo(Bound):
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
    def definition(self) -> cst.FunctionDef | None:
        """Its ``def``; None of a lambda."""
        return self.node if type(self.node) is cst.FunctionDef else None

    @property
    def place(self) -> cst.CSTNode:
        """Where it is for people: its name, or the lambda."""
        return self.definition.name if self.definition else self.node

    @property
    def line(self) -> int:
        """Line of its ``def`` (not of its decorators)."""
        return self.module.line(self.place)

    @property
    def is_async(self) -> bool:
        """Whether it is an ``async def``."""
        return self.definition is not None and self.definition.asynchronous is not None

    @property
    def decorators(self) -> Sequence[cst.Decorator]:
        """What stands above its ``def``."""
        return self.definition.decorators if self.definition else ()

    @property
    def me(self) -> str:
        """Its first parameter, which is the object if it is a method; "" if it has none."""
        return next((one.name.value for one in positional_parameters(self.node.params)), "")

    def meaning(self) -> Value:
        """Return it as a value."""
        return FunctionValue(self)

    def __repr__(self) -> str:
        # Values are sorted by what this says, and there may be two lambdas in a line.
        column = 0 if self.definition else self.module.column(self.node)
        return f"{self.module.file}:{self.line}:{column}:{self.qualname}"


@dataclass(frozen=True, slots=True, eq=False)
class Assigned(Bound):
    """A name bound by an assignment; ``value`` None means: in a way that is not followed."""

    value: cst.BaseExpression | None
    annotation: cst.BaseExpression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Imported(Bound):
    """A name bound by an import: a module, or ``attribute`` of it.

    Attributes:
        instead: What the name is bound to where the import fails, in the ``except`` behind it.
    """

    module: str
    attribute: str | None
    instead: FunctionInfo | Imported | None = None


Binding: TypeAlias = "FunctionInfo | ClassInfo | Assigned | Imported"


@dataclass(frozen=True, eq=False)
class ClassInfo(Bound):
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

    @property
    def line(self) -> int:
        """Line of its name (decorators may stand above it)."""
        return self.module.line(self.node.name)

    def meaning(self) -> Value:
        """Return it as a value."""
        return ClassValue(self)

    def __repr__(self) -> str:
        return f"{self.module.file}:{self.qualname}"


Found: TypeAlias = "tuple[Module, Binding] | External | Module | None"
"""What a name refers to: a binding, and its module; a module; something outside the tree; nothing known."""


def mup_name(value: Value | ClassInfo) -> str:
    """Return the bare name of something the framework exports (``MS``), else ""."""
    match value:
        case External(name=name) if name.split(".")[0] == "mup":
            return name.rsplit(".", 1)[-1]
    return ""


When = Literal["certain", "perhaps", "handling"]
"""Whether a statement certainly runs when its scope is executed, or only where something has failed."""


def _simple(body: Sequence[cst.CSTNode], when: When = "certain") -> Iterator[tuple[cst.CSTNode, When]]:
    """Yield the statements that run when the scope is executed, and whether each certainly does."""
    unsure: When = "perhaps" if when == "certain" else when
    for statement in body:
        match statement:
            case cst.SimpleStatementLine():
                yield from ((small, when) for small in statement.body)
            case cst.With() | cst.Finally():
                yield statement, when
                yield from _simple(statement.body.body, when)
            case cst.If() | cst.Else() | cst.For() | cst.While():
                yield statement, when
                yield from _simple(statement.body.body, unsure)
                orelse = getattr(statement, "orelse", None)
                yield from _simple([] if orelse is None else [orelse], unsure)
            case cst.Try() | cst.TryStar():
                yield from _simple(statement.body.body, unsure)
                for handler in statement.handlers:
                    yield from _simple(handler.body.body, "handling")
                rest = [s for s in (statement.orelse, statement.finalbody) if s is not None]
                yield from _simple(rest, unsure)
            case _:
                yield statement, when


TARGETING = (cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr)
NESTED = (cst.ClassDef, cst.FunctionDef, cst.Lambda)
BINDING: frozenset[type[cst.CSTNode]] = frozenset(
    {*TARGETING, *NESTED, cst.AsName, cst.AssignTarget, cst.ImportAlias}
)
BINDING |= {cst.MatchAs, cst.MatchMapping, cst.MatchStar}


def imported_name(node: cst.ImportAlias) -> str:
    """Return the variable that an import binds."""
    return (node.evaluated_alias or node.evaluated_name).split(".")[0]


def assigned_names(*nodes: cst.CSTNode) -> set[str]:
    """Return the local names these pieces of code may bind, nested functions excluded."""
    found: set[str] = set()
    for node in (one for root in nodes for one in nodes_of(root, BINDING, NESTED)):
        match node:
            case cst.FunctionDef(name=cst.Name(value=name)) | cst.ClassDef(name=cst.Name(value=name)):
                found.add(name)
            case cst.MatchAs(name=cst.Name(value=name)) | cst.MatchStar(name=cst.Name(value=name)):
                found.add(name)
            case cst.MatchMapping(rest=cst.Name(value=name)):
                found.add(name)
            case cst.ImportAlias():
                found.add(imported_name(node))
            case cst.AsName(name=target):
                found |= target_names(target)
            case cst.AnnAssign() | cst.AssignTarget() | cst.AugAssign() | cst.For() | cst.NamedExpr():
                found |= target_names(node.target)
    return found


class _ScopeBuilder:
    """Turns the statements of a module, or of the body of a class, into bindings."""

    def __init__(self, module: Module, owner: ClassInfo | None = None) -> None:
        self.module = module
        self.owner = owner
        self.bindings: dict[str, Binding] = {} if owner is None else owner.bindings
        self.stars: list[str] = []
        self._prefix = "" if owner is None else f"{owner.qualname}."
        self._when: When = "certain"

    def build(self, body: Sequence[cst.CSTNode]) -> None:
        for statement, self._when in _simple(body):
            match statement:
                case cst.FunctionDef(name=cst.Name(value=name)):
                    info = FunctionInfo(self.module, statement, self._prefix + name, self.owner)
                    role = _property_role(statement)
                    if not role:
                        self._bind(name, info)
                    elif role == "setter" and self.owner is not None:
                        self.owner.setters[name] = info
                case cst.ClassDef(name=cst.Name(value=name)):
                    self._bind(name, build_class(self.module, statement, self._prefix))
                case cst.Import() | cst.ImportFrom():
                    for name, binding in imports(self.module, statement):
                        if name == "*":
                            self.stars.append(binding.module)
                        else:
                            self._bind(name, binding)
                case cst.Assign(targets=targets, value=value):
                    for target in targets:
                        self._assign_target(target.target, value)
                case cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as value):
                    self._assign(name, value, statement.annotation.annotation)
                case cst.AnnAssign(target=cst.Name(value=name)) if self.owner is not None:
                    self.owner.annotated.add(name)
                case cst.AugAssign(target=changed) | cst.For(target=changed):
                    self._unfollowed(changed)

    def _bind(self, name: str, binding: Binding) -> None:
        match self.bindings.get(name), binding:
            case Imported() as before, _ if self._when == "handling":
                # Code for where the module is not installed.
                instead = binding if isinstance(binding, FunctionInfo | Imported) else None
                binding = replace(before, instead=before.instead or instead)
            case (None, _) | (Imported(), Imported()):
                pass
            case _ if self._when != "certain":
                # Which definition counts is decided when the module is imported.
                binding = Assigned(None)
        self.bindings[name] = binding

    def _assign(
        self, name: str, value: cst.BaseExpression, annotation: cst.BaseExpression | None = None
    ) -> None:
        before = self.bindings.get(name)
        if isinstance(before, Imported) and self._when != "certain":
            return  # what to do without an optional module
        # Two assignments: which one counts depends on when the name is read.
        known = annotation or (before.annotation if before else None)
        self.bindings[name] = Assigned(None if before else value, known)

    def _assign_target(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        match target:
            case cst.Name(value=name):
                self._assign(name, value)
            case cst.Subscript() if self.owner is not None:
                # The body of a class changes what a name of it holds.
                name = name_of(container_of(target))
                if name in self.bindings:
                    self.bindings[name] = Assigned(None, self.bindings[name].annotation)
            case _:
                pairs = _pairwise(target, value)
                for one, part in pairs:
                    self._assign_target(one, part)
                if not pairs:
                    self._unfollowed(target)

    def _unfollowed(self, target: cst.CSTNode) -> None:
        self.bindings |= {name: Assigned(None) for name in target_names(target)}


def _pairwise(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Return what ``A, B = 1, 2`` assigns to what; nothing if it is no such assignment."""
    match target, value:
        case (cst.Tuple() | cst.List()) as left, (cst.Tuple() | cst.List()) as right:
            parts = (*left.elements, *right.elements)
            if len(left.elements) == len(right.elements) and not stars(parts):
                return [(t.value, v.value) for t, v in zip(left.elements, right.elements, strict=True)]
    return []


IMPORTS: tuple[type[cst.Import | cst.ImportFrom], ...] = (cst.Import, cst.ImportFrom)


def imports(module: Module, statement: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, Imported]]:
    """Yield the names an import statement binds; ``*`` for a star import."""
    if isinstance(statement, cst.Import):
        for alias in statement.names:
            head = alias.evaluated_name.split(".")[0]
            full = alias.evaluated_name if alias.evaluated_alias else head
            yield alias.evaluated_alias or head, Imported(full, None)
        return
    base = "" if statement.module is None else get_full_name_for_node_or_raise(statement.module)
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


def _set_by(method: FunctionInfo) -> Iterator[str | None]:
    """Yield the attributes a method sets of its first parameter; None for what its text does not tell."""
    found: set[str] = set()
    assigning = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.For, cst.With)
    for statement in of_types(statements_in(method.node.body), *assigning):
        targets: list[cst.CSTNode] = []
        match statement:
            case cst.Assign():
                targets += (target.target for target in statement.targets)
            case cst.AnnAssign() | cst.AugAssign() | cst.For():
                targets.append(statement.target)
            case cst.With():
                targets += (item.asname.name for item in statement.items if item.asname is not None)
        for target in targets:
            for one in targets_in(target):
                match one:
                    case cst.Attribute(value=cst.Name(value=owner), attr=name) if owner == method.me:
                        found.add(name.value)
    yield from found
    yield from (target.attr.value for target in _set_by_new(method.node))
    if method.module.reflects:
        yield from (write.name for write in writes(method.node) if _is_me(write.owner, method.me))


def _set_by_new(function: cst.FunctionDef | cst.Lambda) -> Iterator[cst.Attribute]:
    """Yield what ``__new__`` sets of the object it makes: ``made = object.__new__(cls); made.x = ...``."""
    if type(function) is not cst.FunctionDef or function.name.value != "__new__":
        return
    kind = next((one.name.value for one in positional_parameters(function.params)), "")
    assigned = nodes_of(function.body, (cst.Assign,), NESTED)
    others = nodes_of(function.body, (*TARGETING, cst.AsName, cst.Del, cst.Global, cst.Nonlocal), NESTED)
    targets = [target.target for one in assigned for target in one.targets]
    made = ""
    for one in assigned:
        match one:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Name(value=name))],
                value=cst.Call(
                    func=cst.Attribute(attr=cst.Name(value="__new__")),
                    args=[cst.Arg(value=cst.Name(value=given)), *_],
                ),
            ) if given == kind:
                made = name
    bound = [
        name for target in targets for name in nodes_of(target, (cst.Name,), (cst.Attribute, cst.Subscript))
    ]
    again = [name for one in others for name in assigned_names(one)]
    if made and sum(name.value == made for name in bound) == 1 and made not in again:
        for target in targets:
            match target:
                case cst.Attribute(value=cst.Name(value=owner)) if owner == made:
                    yield target


def build_class(module: Module, node: cst.ClassDef, prefix: str) -> ClassInfo:
    """Collect what a class body binds."""
    info = ClassInfo(module, node, prefix + node.name.value)
    _ScopeBuilder(module, info).build(node.body.body)
    for method in of_kind((*info.bindings.values(), *info.setters.values()), FunctionInfo):
        for name in _set_by(method) if method.me else ():
            if name is not None:
                info.set_by_methods.setdefault(name, []).append(method)
            elif method not in info.set_by_name:
                info.set_by_name.append(method)
    return info


def _is_me(owner: cst.BaseExpression, me: str) -> bool:
    """Return whether an expression is ``super()``, or a method's first parameter, which has this name."""
    match owner:
        case cst.Call(func=function):
            return name_of(function) == "super"
    return name_of(owner) == me


def _property_role(function: cst.FunctionDef) -> str:
    """Return "setter", "deleter" or "getter" if the function adds to a property of its own name, else ""."""
    for decorator in function.decorators:
        match decorator.decorator:
            case cst.Attribute(value=cst.Name(value=name), attr=role) if name == function.name.value:
                return role.value
    return ""


def _rebound(tree: cst.Module) -> dict[str, list[Assigned]]:
    """Return the names that functions rebind through ``global``, and what they bind them to."""
    found: dict[str, list[Assigned]] = {}
    for function in nodes_of(tree, (cst.FunctionDef,)):
        statements = nodes_of(function.body, (cst.Global,))
        declared = {item.name.value for statement in statements for item in statement.names}
        found |= {name: [] for name in declared - found.keys()}
        assigned = assigned_names(function.body)
        if not declared & assigned:
            continue
        local = {p.name.value for p in named_parameters(function.params)} | (assigned - declared)
        for node in nodes_of(function.body, (*TARGETING, cst.Assign, cst.AsName, cst.Del), (cst.Assign,)):
            match node:
                case cst.Assign(targets=targets, value=value):
                    # What depends on local variables cannot be told here.
                    known = not target_names(value) & local
                    for target in targets:
                        plain = known and name_of(target.target)
                        for name in target_names(target) & declared:
                            found[name].append(Assigned(value if plain else None))
                case _:
                    for name in assigned_names(node) & declared:
                        found[name].append(Assigned(None))
    return found


def _by_globals(module: Module, names: Iterable[str]) -> set[str]:
    """Return the names that ``globals()`` may rebind: all of ``names`` if the code does not say which."""
    calls = {node for node in module.nodes if type(node) is cst.Call and name_of(node.func) == "globals"}
    if not calls:
        return set()
    found: set[str] = set()
    written: set[cst.CSTNode] = set()
    for node in nodes_of(module.tree, (cst.AssignTarget, cst.AugAssign, cst.Del)):
        match node:
            case cst.AssignTarget(target=one) | cst.AugAssign(target=one) | cst.Del(target=one):
                written.update(targets_in(one))
    for node in nodes_of(module.tree, (cst.Attribute, cst.Comparison, cst.Subscript)):
        match node:
            case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                if owner in calls and node in written:
                    name = literal_text(key)
                    found |= set(names) if name is None else {name}
                calls -= {owner}
            case cst.Attribute(value=owner, attr=cst.Name(value=method)) if method in LOOKING_METHODS:
                calls -= {owner}
            case cst.Comparison(comparisons=comparisons):
                calls -= {one.comparator for one in comparisons}
    return found | set(names) if calls else found


CHANGING = (cst.Call, cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Del)
"""Code that may change what is in a container."""

TARGETED = (cst.For, cst.WithItem, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
"""Other code that assigns something to a target."""


class Changes:
    """What a module changes after it was bound.

    Attributes:
        names: Global names whose contents change (``ROUTES["x"] = ...``, ``ROUTES.append(...)``).
        attributes: Names of attributes that are assigned or whose contents change (``A.ROUTES = ...``),
            except through ``self``, which `ClassInfo.set_by_methods` knows better.
        assigned: Those of ``attributes`` that are assigned.
        by_owner: The same with what they are assigned to, if that has a name.
        filled: Attributes whose contents change, with what they belong to, likewise.
        of_classes: Those that are assigned to the class of an object: ``type(self).x``, ``self.__class__.x``.
        anything: Whether attributes are set whose names the text does not tell, likewise.
    """

    def __init__(self, module: Module) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.assigned: set[str] = set()
        self.by_owner: list[tuple[cst.BaseExpression, str]] = []
        self.filled: list[tuple[cst.BaseExpression, str]] = []
        self.of_classes: set[str] = set()
        self.anything = False
        made = (set_ for node in of_types(module.nodes, cst.FunctionDef) for set_ in _set_by_new(node))
        self._made: set[cst.CSTNode] = set(made)
        for write in writes(module.tree) if module.reflects else ():
            if _is_me(write.owner, "self"):
                continue
            if write.name is None:
                self.anything = True
            else:
                self.assigned.add(write.name)
        for node in of_types(module.nodes, *CHANGING, *TARGETED):
            self._note(node)
        for function in of_types(module.nodes, cst.FunctionDef):
            if any(parameter.default for parameter in named_parameters(function.params)):
                self._defaults(function)
        for container in containers_changed(module):
            self._contents(container)
        self.attributes |= self.assigned

    def _note(self, node: cst.CSTNode) -> None:
        match node:
            case cst.Call(func=cst.Attribute(value=owner, attr=method)) if method.value in MUTATORS:
                self._contents(owner)
            case cst.Assign(targets=targets):
                for target in targets:
                    self._target(target.target)
            case cst.AugAssign(target=one) | cst.AnnAssign(target=one) | cst.Del(target=one):
                self._target(one)
            case cst.For(target=one) | cst.WithItem(asname=cst.AsName(name=one)):
                self._target(one)
            case cst.ListComp() | cst.SetComp() | cst.DictComp() | cst.GeneratorExp():
                clause: cst.CompFor | None = node.for_in
                while clause is not None:
                    self._target(clause.target)
                    clause = clause.inner_for_in

    def _defaults(self, function: cst.FunctionDef) -> None:
        """Note what a function changes that is the default of a parameter.

        ``def on(event, handlers=handlers): handlers[event] = ...`` in a class: that of the class is meant.
        """
        defaults = {p.name.value: p.default for p in named_parameters(function.params) if p.default}
        if not defaults.keys() & self.names:
            return
        around, self.names = self.names, set()
        for node in nodes_of(function.body, CHANGING):
            self._note(node)
        changed, self.names = self.names, around
        for parameter in defaults.keys() & changed:
            default = defaults[parameter]
            if last_name(default):
                self._contents(default)
                self.attributes.add(last_name(default))

    def _target(self, target: cst.CSTNode) -> None:
        for one in targets_in(target):
            match one:
                case cst.Subscript(value=owner):
                    self._contents(owner)
                case cst.Attribute(value=owner, attr=cst.Name(value=name)) if (
                    name_of(owner) != "self" and one not in self._made
                ):
                    self.assigned.add(name)
                    if last_name(owner):
                        self.by_owner.append((owner, name))
                    if last_name(applied(owner)) in ("__class__", "type"):
                        self.of_classes.add(name)

    def _contents(self, owner: cst.CSTNode) -> None:
        match container_of(owner):
            case cst.Name(value=name):
                self.names.add(name)
            case cst.Attribute(value=whose, attr=cst.Name(value=name)):
                self.attributes.add(name)
                if last_name(whose) and name_of(whose) != "self":
                    self.filled.append((whose, name))


CLASS_METHODS = {"__class_getitem__", "__init_subclass__", "__new__"}
"""Methods that get the class without being declared a ``classmethod``."""

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
        self._changed: dict[Binding | None, tuple[str, Assigned]] = {}
        self._mro: dict[ClassInfo, tuple[ClassInfo | External, ...]] = {}
        self._of_classes: tuple[int, frozenset[tuple[ClassInfo | None, str]]] = (0, frozenset())
        self._elsewhere: dict[Binding | None, tuple[str, Assigned]] = {}
        self._compared = 0

    def scope(self, module: Module) -> dict[str, Binding]:
        """Return the bindings of a module, star imports excluded."""
        return self._scope(module)[0]

    def _scope(self, module: Module) -> tuple[dict[str, Binding], list[str]]:
        if module not in self._scopes:
            builder = _ScopeBuilder(module)
            builder.build(module.tree.body)
            bindings = builder.bindings
            self._scopes[module] = (bindings, builder.stars)
            assigned = {name: one for name, one in bindings.items() if isinstance(one, Assigned)}
            names = self.changes(module).names & assigned.keys()
            changed = {name for name in names if not _is_object(self, module, name)}
            rebound = _rebound(module.tree) if cst.Global in module.kinds else {}
            rebound |= {name: [Assigned(None)] for name in _by_globals(module, assigned)}
            for name, values in rebound.items():
                first = [assigned[name]] if name in assigned else []
                self._rebound[module, name] = [*values, *first]
                bindings[name] = Assigned(None, first[0].annotation if first else None)
            for name in changed - rebound.keys():
                bindings[name] = unknown = Assigned(None, assigned[name].annotation)
                self._changed[unknown] = (name, assigned[name])
        return self._scopes[module]

    def rebound(self, module: Module, name: str) -> list[Assigned]:
        """Return everything a global name may be bound to, if functions rebind it."""
        return self._rebound.get((module, name), [])

    def changed(self, binding: Binding | None) -> tuple[str, Assigned] | None:
        """Return the global name whose contents change that a binding is about, and what it begins with."""
        return self._changed.get(binding) or self._changed_elsewhere().get(binding)

    def _changed_elsewhere(self) -> Mapping[Binding | None, tuple[str, Assigned]]:
        """Return the global names that other modules read so far rebind or change, likewise."""
        while self._compared < len(self._changes):  # finding names may read more modules
            module, changes = list(self._changes.items())[self._compared]
            self._compared += 1
            for there, name in _changed_by(self, module, changes):
                known = self.scope(there).get(name)
                if isinstance(known, Assigned) and there is not module:
                    self._elsewhere[known] = (name, known)
        return self._elsewhere

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
            found = {
                (self.class_of(module, owner), attribute)
                for module, changes in list(self._changes.items())
                for owner, attribute in changes.by_owner
            }
            self._of_classes = (read, frozenset(found))
        by_object = any(name in changes.of_classes for changes in self._changes.values())
        by_class = any(_is_of_class(self, one) for one in self.assigned_by_methods(info, name))
        by_name = any((owner, name) in self._of_classes[1] for owner in self.mro(info))
        return by_object or by_class or by_name or self._is_filled(info, name)

    def _is_filled(self, info: ClassInfo, name: str) -> bool:
        """Return whether some module read so far changes what an attribute of a class holds.

        It may do so through the class, one that inherits the container, or in a method of a base of it.
        """
        found = self.attribute(info, name)
        return found is not None and any(
            found[0] in self.line(one) or one in self.line(info)
            for module, changes in list(self._changes.items())
            for owner, attribute in changes.filled
            if attribute == name
            for one in self._classes_meant(module, owner)
        )

    def _classes_meant(self, module: Module, node: cst.BaseExpression) -> list[ClassInfo]:
        """Return the classes that an expression means by their names, or as the ``cls`` of a method."""
        named = self.class_of(module, node)
        if named is not None:
            return [named]
        return [
            one
            for one in self.classes(module)
            for method in of_kind(one.bindings.values(), FunctionInfo)
            if method.me == name_of(node) and _is_of_class(self, method)
            if node in nodes_of(method.node, (cst.Name,))
        ]

    def changes(self, module: Module) -> Changes:
        """Return what a module changes after it was bound."""
        if module not in self._changes:
            self._changes[module] = Changes(module)
        return self._changes[module]

    def modules_imported(self, module: Module) -> Iterator[Module]:
        """Yield the modules of the tree that a module imports and that may use the framework."""
        names: dict[str, None] = {}
        for node in of_types(module.nodes, *IMPORTS):
            match node:
                case cst.Import():
                    names |= dict.fromkeys(alias.evaluated_name for alias in node.names)
                case cst.ImportFrom():
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
        return _classes(self.scope(module))

    def find(self, module: Module, name: str, seen: set[tuple[Module, str]] | None = None) -> Found:
        """Return what a global name of a module refers to, imports followed; ``seen`` has led here."""
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
            match target, binding.instead:
                case External(), FunctionInfo() as function:
                    return module, function
                case External(), Imported() as instead:
                    target = self._import(instead, module)
            if not isinstance(target, tuple):
                return target
            module, name = target
        return None

    def _find_star(self, stars: Sequence[str], name: str, seen: set[tuple[Module, str]]) -> Found:
        for star in reversed(stars):  # the later one counts
            target = self._tree_module(star)
            if target is not None and (target, name) not in seen:
                found = self.find(target, name, seen)
                if found is not None:
                    return found
            elif target is None and name in exported(star):
                return External(f"{star}.{name}")
        return External(f"builtins.{name}") if hasattr(builtins, name) else None

    def _tree_module(self, name: str) -> Module | None:
        # The framework is known by its contract; its own source is never part of the application.
        return None if name.split(".", maxsplit=1)[0] == "mup" else self.tree.module(name)

    def _import(self, binding: Imported, importer: Module) -> Module | External | tuple[Module, str]:
        module = self._tree_module(binding.module)
        if binding.attribute is None:
            return module if module is not None else External(binding.module)
        submodule = self._tree_module(f"{binding.module}.{binding.attribute}".lstrip("."))
        bound = module not in (None, importer) and binding.attribute in self.scope(module)
        if module is not None and (bound or submodule is None):
            return module, binding.attribute
        return submodule or External(f"{binding.module}.{binding.attribute}")

    def imported(
        self, module: Module, statement: cst.Import | cst.ImportFrom
    ) -> Iterator[tuple[str, Value | tuple[Module, str]]]:
        """Yield the names an import inside a function binds: to a value, or to a name of a module."""
        for name, binding in imports(module, statement):
            target = self._import(binding, module)
            yield name, ModuleValue(target) if isinstance(target, Module) else target

    def imported_inside(self, owner: Binding | None) -> Mapping[str, Found]:
        """Return what the import statements inside a function or class bind names to."""
        found: dict[str, Found] = {}
        match owner:
            case FunctionInfo(module=module, node=node) | ClassInfo(module=module, node=node):
                for statement in nodes_of(node, IMPORTS) if module.imports_inside else ():
                    for name, binding in imports(module, statement):
                        target = self._import(binding, module)
                        found[name] = self.find(*target) if isinstance(target, tuple) else target
        return found

    def value_of(self, found: Found) -> Value | None:
        """Return the value of a function, class or module; None for assignments and unknown names."""
        match found:
            case Module():
                return ModuleValue(found)
            case (_, binding):
                return binding.meaning()
        return found

    def dotted(self, module: Module, node: cst.BaseExpression, depth: int = 0) -> Value:
        """Return what a name or dotted name at module level means: a base class, a decorator.

        ``depth`` is the number of aliases that led here: they may refer to each other in a circle.
        """
        match node:
            case cst.Name(value=name):
                found = self.find(module, name)
                match found:
                    # `Base = MS` is an alias worth following; anything computed is not.
                    case (there, Assigned(value=cst.Name() | cst.Attribute() as alias)) if (
                        depth < MAX_ALIASES
                    ):
                        return self.dotted(there, alias, depth + 1)
                return self.value_of(found) or UNKNOWN
            case cst.Attribute(value=owner, attr=cst.Name(value=name)):
                return self.member(self.dotted(module, owner, depth), name) or UNKNOWN
            case cst.Subscript(value=generic):  # Generic[T]
                return self.dotted(module, generic, depth)
        return UNKNOWN

    def class_of(self, module: Module, node: cst.BaseExpression) -> ClassInfo | None:
        """Return the class of the source tree that a dotted name at module level means."""
        match self.dotted(module, node):
            case ClassValue(info):
                return info
        return None

    def external(self, module: Module, node: cst.BaseExpression) -> str:
        """Return the name of what a dotted name means outside the source tree; "" if it is inside."""
        match self.dotted(module, node):
            case External(name):
                return name
        return ""

    def library_name(self, module: Module, node: cst.BaseExpression, depth: int = 0) -> str:
        """Return the dotted name of something of a library, "" if it is none.

        A method of an object has the name of what has made the object, without its arguments.
        """
        known = self.external(module, node)
        if known:
            return known
        match node:
            case cst.Call(func=func):
                return self.library_name(module, func, depth)
            case cst.Attribute(value=owner, attr=cst.Name(value=name)):
                outer = self.library_name(module, owner, depth)
                return f"{outer}.{name}" if outer else ""
            case cst.Name(value=name) if depth < MAX_ALIASES:
                match self.find(module, name):
                    case (there, Assigned(value=cst.Call() as made)):
                        return self.library_name(there, made, depth + 1)
        return ""

    def member(self, owner: Value, name: str) -> Value | None:
        """Return an attribute of a module or outside name that is not an assignment."""
        match owner:
            case External(outer):
                return External(f"{outer}.{name}")
            case ModuleValue(module):
                submodule = self._tree_module(f"{module.name}.{name}")
                if name not in self.scope(module) and submodule is not None:
                    return ModuleValue(submodule)
                return self.value_of(self.find(module, name))
            case ClassValue(info):
                found = self.attribute(info, name)
                return found[1].meaning() if found else None
        return None

    def mro(self, info: ClassInfo) -> tuple[ClassInfo | External, ...]:
        """Return the class and its bases in the order attributes are looked up."""
        if info not in self._mro:
            self._mro[info] = (info,)  # a class that inherits from itself ends here
            lines: list[list[ClassInfo | External]] = []
            for argument in info.node.bases:
                match self.dotted(info.module, argument.value):
                    case ClassValue(base):
                        lines.append(list(self.mro(base)))
                    case External() as outside:
                        lines.append([outside])
            lines.append([line[0] for line in lines])
            self._mro[info] = (info, *(base for base in _linearised(lines) if base is not info))
        return self._mro[info]

    def line(self, info: ClassInfo) -> list[ClassInfo]:
        """Return the class and those of its bases that the source has, in the order of lookups."""
        return of_kind(self.mro(info), ClassInfo)

    def outside(self, info: ClassInfo) -> frozenset[str]:
        """Return the dotted names of the bases of a class that the source does not have."""
        return frozenset(one.name for one in of_kind(self.mro(info), External))

    def declare(self, info: ClassInfo, bases: Sequence[External]) -> None:
        """Give a class that no ``class`` statement makes its bases."""
        self._mro[info] = (info, *bases)

    def derives_from(self, info: ClassInfo, name: str) -> bool:
        """Return whether a class derives from the framework's class of this name (``MS``, ``Client``)."""
        return any(mup_name(base) == name for base in self.mro(info))

    def class_decorators(self, info: ClassInfo) -> list[str]:
        """Return what each decorator of a class is called outside the source tree; "" if it is inside."""
        return [self.external(info.module, applied(one.decorator)) for one in info.node.decorators]

    def deriving(self, modules: Iterable[Module], name: str) -> list[ClassInfo]:
        """Return the classes of some modules that derive from the framework's class of this name."""
        return [one for module in modules for one in self.classes(module) if self.derives_from(one, name)]

    def attribute(
        self, info: ClassInfo, name: str, after: ClassInfo | None = None
    ) -> tuple[ClassInfo, Binding] | None:
        """Return the class that provides an attribute, and its binding; ``after`` starts behind a class."""
        line = self.line(info)
        if after is not None:
            line = line[line.index(after) + 1 :] if after in line else []
        return next(((owner, owner.bindings[name]) for owner in line if name in owner.bindings), None)

    def method(self, info: ClassInfo, name: str, after: ClassInfo | None = None) -> FunctionInfo | None:
        """Return the function that an attribute of a class is bound to, likewise."""
        match self.attribute(info, name, after):
            case (_, FunctionInfo() as function):
                return function
        return None

    def assigned_by_methods(self, info: ClassInfo, name: str) -> list[FunctionInfo]:
        """Return the methods that assign ``self.name``."""
        return [method for owner in self.line(info) for method in owner.set_by_methods.get(name, [])]

    def set_by_name(self, info: ClassInfo) -> list[FunctionInfo]:
        """Return the methods that set attributes of ``self`` whose names their text does not tell."""
        return [method for owner in self.line(info) for method in owner.set_by_name]

    def annotating(self, info: ClassInfo, name: str) -> list[ClassInfo]:
        """Return the class and those of its bases whose body annotates an attribute without binding it."""
        return [owner for owner in self.line(info) if name in owner.annotated]


def _classes(bindings: Mapping[str, Binding]) -> Iterator[ClassInfo]:
    """Yield the classes among some bindings, each before those inside it."""
    for one in of_kind(bindings.values(), ClassInfo):
        yield one
        yield from _classes(one.bindings)


def _linearised(lines: Sequence[Sequence[ClassInfo | External]]) -> Iterator[ClassInfo | External]:
    """Merge the orders of several bases as Python does (C3)."""
    waiting = [list(line) for line in lines if line]
    while waiting:
        heads = [line[0] for line in waiting]
        # Without a candidate Python refuses the class; any order will do.
        chosen = next((h for h in heads if all(h not in line[1:] for line in waiting)), heads[0])
        yield chosen
        waiting = [rest for line in waiting if (rest := [base for base in line if base != chosen])]


def _changed_by(names: Names, module: Module, changes: Changes) -> Iterator[tuple[Module, str]]:
    """Yield the global names of other modules that a module rebinds, or whose contents it changes."""
    for name in changes.names:
        place = _place(names, module, name)
        if place is not None and not _is_object(names, *place):
            yield place
    for several, rebinds in ((changes.by_owner, True), (changes.filled, False)):
        for owner, name in several:
            match names.dotted(module, owner):
                case ModuleValue(module=other):
                    place = _place(names, other, name)
                    if place is not None and (rebinds or not _is_object(names, *place)):
                        yield place


def _place(names: Names, module: Module, name: str) -> tuple[Module, str] | None:
    """Return the module that binds a global name of another one, and what it is called there."""
    match names.find(module, name):
        case (there, Assigned() as binding):
            called = (one for one, known in names.scope(there).items() if known is binding)
            return there, next(called, name)
    return None


def _is_object(names: Names, module: Module, name: str) -> bool:
    """Return whether a name is an object of the source tree: its ``add`` is a method like any other."""
    binding = names.scope(module).get(name)
    made = binding.value if isinstance(binding, Assigned) else None
    return type(made) is cst.Call and names.class_of(module, made.func) is not None


def _is_of_class(names: Names, method: FunctionInfo) -> bool:
    """Return whether the first parameter of a method is the class (``cls``), not an object."""
    decorators = (names.external(method.module, one.decorator) for one in method.decorators)
    return method.qualname.rsplit(".", 1)[-1] in CLASS_METHODS or "builtins.classmethod" in decorators
