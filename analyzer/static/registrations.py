"""Which code fills a container of a module or class while modules are imported?

Registries are common: a decorator, a hook of a base class, or statements behind the definitions put functions
and classes into a dict or list, and requests look them up. Nothing but the text tells that only imports fill
it: every mention of the container, and of the functions that change it, must be at such a place. What may be
a mention counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import libcst as cst

from analyzer.static.items import containers_changed, taken_from
from analyzer.static.names import (
    Assigned,
    Binding,
    ClassInfo,
    FunctionInfo,
    Names,
    assigned_names,
    imported_name,
)
from analyzer.static.reflection import MUTATORS, Mentions, literal_text, mentions_of
from analyzer.static.source import Module
from analyzer.static.source_files import content
from analyzer.static.syntax import is_name, last_name, name_of, simple_statements, target_names
from analyzer.static.values import ClassValue, External, ModuleValue, of_kind
from analyzer.static.walking import nodes_of, walk

__all__ = ["Registration", "Registrations"]

HOOK = "__init_subclass__"

IMPORTING = "import_module"
"""In the text of a module: variables may be modules."""

MAKERS = {"OrderedDict", "defaultdict", "dict", "list"}
"""What makes a container that is to be filled."""

OBJECT_MAKING = {"__init__", "__post_init__"}
"""Methods in which an object gets the containers that are filled later."""

ASKING = {"attrgetter", "getattr", "methodcaller"}
"""Functions that get attributes by their names."""

SCOPES = (cst.ClassDef, cst.FunctionDef, cst.Lambda)
NOTED: tuple[type[cst.CSTNode], ...] = (*SCOPES, cst.AnnAssign, cst.Arg, cst.Assign, cst.AssignTarget)
NOTED += (cst.Attribute, cst.Call, cst.ImportAlias, cst.Name, cst.Param, cst.Subscript)
NOTED += (cst.DictComp, cst.GeneratorExp, cst.ListComp, cst.SetComp)


@dataclass(frozen=True)
class Registration:
    """How a container gets its contents.

    Attributes:
        module: Where it is.
        owner: The class whose attribute it is; None for a global name.
        name: What it is called.
        binding: What it begins with.
        steps: The statements that fill it, with their modules, those of imported modules first.
        fillers: What the functions are called that change it.
    """

    module: Module
    owner: ClassInfo | None
    name: str
    binding: Assigned
    steps: tuple[tuple[Module, cst.CSTNode], ...]
    fillers: frozenset[str] = frozenset()

    def definitions(self, names: Names) -> Iterator[FunctionInfo | ClassInfo]:
        """Yield what is registered: the functions and classes that the statements define."""
        for module, step in self.steps:
            yield from defined(module, step, names)

    def modules(self) -> dict[Module, None]:
        """Return where the statements are, each module once."""
        return dict.fromkeys(module for module, _ in self.steps)


def defined(module: Module, step: cst.CSTNode, names: Names) -> list[FunctionInfo | ClassInfo]:
    """Return what a statement of a module defines."""
    match step:
        case cst.FunctionDef(name=cst.Name(value=name)):
            known = names.scope(module).get(name)
            # Several functions may have one name: `def _(...)`.
            mine = known if isinstance(known, FunctionInfo) and known.node is step else None
            return [mine or FunctionInfo(module, step, name)]
        case cst.ClassDef():
            return [info for info in names.classes(module) if info.node is step]
    return []


class Registrations:
    """Finds the containers that imports fill.

    Args:
        names: Meaning of names in the source tree.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._found: dict[Assigned, Registration | None] = {}
        self._of_objects: dict[tuple[ClassInfo, str], Registration | None] = {}
        self._outlines: dict[Module, _Outline] = {}
        self._texts: list[tuple[Path, bytes]] | None = None

    def of(
        self, module: Module, owner: ClassInfo | None, name: str, binding: Assigned
    ) -> Registration | None:
        """Return how a container is filled; None if more than imports may change it, or that is not known.

        Args:
            module: Where it is.
            owner: The class whose attribute it is; None for a global name.
            name: What it is called there.
            binding: What it begins with.
        """
        if binding not in self._found:
            self._found[binding] = None
            if _is_container(binding.value):
                self._found[binding] = self._filled(_Named(module, owner, name), binding)
        return self._found[binding]

    def of_objects(self, info: ClassInfo, name: str) -> Registration | None:
        """Return how a container is filled that objects of a class get where they are made, likewise.

        Args:
            info: The class.
            name: The attribute.
        """
        # A base may fill what it is not seen to have.
        owner = next((one for one in reversed(self._names.line(info)) if _has_container(one, name)), None)
        if owner is None:
            return None
        if (owner, name) not in self._of_objects:
            self._of_objects[owner, name] = None
            container = _Named(owner.module, owner, name)
            self._of_objects[owner, name] = self._filled(container, Assigned(None))
        return self._of_objects[owner, name]

    def about(self, binding: Binding | None, module: Module, name: str) -> Iterator[Registration]:
        """Yield how the containers of a definition are filled: the attributes of a class, a global name.

        Args:
            binding: The definition; None = the name is not bound just once, or its contents change.
            module: Where it is.
            name: What it is called.
        """
        found: list[Registration | None] = []
        match binding:
            case ClassInfo(bindings=bindings, set_by_methods=made):
                changed = self._names.attributes_changed()
                names = dict.fromkeys([*made, *bindings])
                found += (self.of_objects(binding, name) for name in names if name in changed)
                for attribute, one in bindings.items():
                    if attribute in changed and isinstance(one, Assigned):
                        found.append(self.of(binding.module, binding, attribute, one))
            case None:
                known = self._names.changed(self._names.scope(module).get(name))
                found.append(None if known is None else self.of(module, None, *known))
        yield from filter(None, found)

    def _filled(self, container: _Named, binding: Assigned) -> Registration | None:
        """Return how a container is filled; None if something else may change it, or nothing does."""
        steps: list[Step] = []
        changing: list[_Named] = []
        for module in self._mentioning(container.name):
            outline = self._outline(module)
            for mention in outline.mentions(container.name):
                if not self._may_be(mention, container, module) or outline.only_looks(mention.node):
                    continue
                if _is_in_making(mention, outline):
                    continue
                if mention.node not in outline.changed:
                    return None
                if mention.place.function is None and mention.node in outline.indirect:
                    return None
                if mention.place.function is None:
                    steps.append((module, mention.place.step))
                elif mention.place.function not in changing:
                    changing.append(mention.place.function)
        if any(function.owner is not None for function in changing) and self._is_asked_anything():
            return None
        for function in changing:  # grows while it is gone through
            found = self._run_by(function)
            if found is None and self._is_left_alone(function, container):
                continue
            if found is None:
                return None
            steps += found[0]
            changing += [one for one in found[1] if one not in changing]
        if not steps and not (changing and container.owner is not None):
            return None
        fillers = frozenset(function.name for function in changing)
        return Registration(*container, binding, tuple(self.ordered(steps)), fillers)

    def _run_by(self, function: _Named) -> tuple[list[Step], list[_Named]] | None:
        """Return the statements and functions that run a function; None if requests may, too."""
        if function.owner is not None and function.name == HOOK:
            steps = self._subclassing(function.owner)
            return None if steps is None else (steps, [])
        steps, functions = [], []
        for module in self._mentioning(function.name):
            outline = self._outline(module)
            for mention in outline.mentions(function.name):
                if mention.place.function == function or not self._may_be(mention, function, module):
                    continue
                if mention.place.function is None:
                    steps.append((module, mention.place.step))
                    functions += self._aliases(mention, function, module)
                else:
                    functions.append(mention.place.function)
        return (steps, functions) if steps or functions else None

    def _is_left_alone(self, function: _Named, container: _Named) -> bool:
        """Return whether a function that no code mentions is a plain method of what has the container."""
        owner = container.owner
        if owner is None or function.owner is None or function.name.startswith("__"):
            return False
        framework = any(self._names.derives_from(function.owner, kind) for kind in ("MS", "Client"))
        method = self._names.method(function.owner, function.name)
        return (
            self._related(owner, function.owner)
            and not framework
            and method is not None
            and not method.decorators
        )

    def _aliases(self, mention: _Mention, function: _Named, module: Module) -> list[_Named]:
        """Return the names that a statement gives to what may fill a container later."""
        step = mention.place.step
        match step:
            case cst.Assign(value=value) | cst.AnnAssign(value=cst.BaseExpression() as value):
                pass
            case _:
                return []
        match value:
            case cst.Call(func=cst.Call(func=called)) if called is mention.node:
                return []
            case cst.Call(func=called) if called is mention.node and not self._hands_out(function):
                return []
        return [_Named(module, None, name) for name in sorted(assigned_names(step))]

    def _hands_out(self, function: _Named) -> bool:
        """Return whether a function may return something that fills the container later."""
        bindings = self._names.scope(function.module) if function.owner is None else function.owner.bindings
        found = bindings.get(function.name)
        node = found.definition if isinstance(found, FunctionInfo) else None
        if node is None:
            return True
        harmless = {"None", *(one.name.value for one in nodes_of(node.params, (cst.Param,)))}
        returns = nodes_of(node.body, (cst.Return,), SCOPES)
        return any(one.value is not None and name_of(one.value) not in harmless for one in returns)

    def _is_asked_anything(self) -> bool:
        """Return whether imports ask an object for an attribute by a computed name: it may be any method."""
        return any(
            not isinstance(self._names.dotted(module, owner), ModuleValue | External)
            for module in self._names.modules_read()
            for owner in self._outline(module).asked
        )

    def _subclassing(self, owner: ClassInfo) -> list[Step] | None:
        """Return the classes that derive from another; None if functions may make some."""
        steps: list[Step] = []
        for module in self._mentioning(owner.node.name.value):
            steps += [
                (module, info.node)
                for info in self._names.classes(module)
                if info is not owner and owner in self._names.mro(info)
            ]
            for node in self._outline(module).inner_classes:
                bases = (self._names.class_of(module, base.value) for base in node.bases)
                if any(base is not None and owner in self._names.mro(base) for base in bases):
                    return None
        return steps

    def _may_be(self, mention: _Mention, meant: _Named, module: Module) -> bool:
        """Return whether a name or attribute may be this container or function."""
        node, inside = mention.node, mention.place.owner
        if isinstance(node, cst.SimpleString):
            return meant.owner is not None
        if isinstance(node, cst.Name):
            if meant.owner is not None:
                return inside is meant.owner and mention.place.function is None
            found = self._names.find(module, node.value)
            return isinstance(found, tuple) and found[0] is meant.module
        if is_name(node.value, "self", "cls"):  # the object or class of a method, by their usual names
            return meant.owner is not None and (inside is None or self._related(meant.owner, inside))
        match self._names.dotted(module, node.value):
            case ModuleValue(owner):
                return meant.owner is None and owner is meant.module
            case ClassValue(info):
                return meant.owner in self._names.mro(info)
            case External():
                return False
        known = self._kind_of(module, node.value) if mention.place.function is None else None
        if known is not None and meant.owner is not None:
            return isinstance(known, ClassInfo) and self._related(meant.owner, known)
        # A variable is an object rather than a module, unless a function imports one.
        return meant.owner is not None or module.imports_inside or IMPORTING in "\n".join(module.lines)

    def _related(self, owner: ClassInfo, other: ClassInfo) -> bool:
        """Return whether objects of one of two classes may be objects of both."""
        return owner in self._names.mro(other) or other in self._names.mro(owner)

    def _kind_of(self, module: Module, node: cst.BaseExpression) -> ClassInfo | External | None:
        """Return the class of the object that a global name is; None if that is not known."""
        match self._names.find(module, name_of(node)):
            case (there, Assigned(value=cst.Call(func=maker))):
                match self._names.dotted(there, maker):
                    case ClassValue(info):
                        return info
                    case External() as outside if outside.class_name[:1].isupper():
                        return outside
        return None

    def _mentioning(self, word: str) -> list[Module]:
        """Return the modules in whose text a word is, also those that only others import."""
        tree = self._names.tree
        if self._texts is None:
            self._texts = [(file, content(file) or b"") for file in tree.files()]
        read = (module for module in self._names.modules_read() if word in "\n".join(module.lines))
        named = (tree.module_at(file) for file, text in self._texts if word.encode() in text)
        return list(dict.fromkeys(module for module in (*read, *named) if module is not None))

    def ordered(self, steps: list[Step]) -> list[Step]:
        """Return steps in the order in which they run, as far as imports tell it."""
        order: dict[Module, None] = {}
        seen: set[Module] = set()

        def visit(module: Module) -> None:
            if module not in seen:
                seen.add(module)
                for one in self._names.modules_imported(module):
                    visit(one)
                order[module] = None

        filling = dict.fromkeys(module for module, _ in steps)
        if len(filling) > 1:
            # Which of two modules comes first that know nothing of each other is said by who imports both.
            read = dict.fromkeys([*self._names.modules_read(), *filling])
            imported = {one for module in read for one in self._names.modules_imported(module)}
            filling = dict.fromkeys(sorted(read, key=lambda module: module in imported))
        for module in filling:
            visit(module)
        places = {module: place for place, module in enumerate(order)}
        return sorted(dict.fromkeys(steps), key=lambda step: (places[step[0]], step[0].line(step[1])))

    def _outline(self, module: Module) -> _Outline:
        if module not in self._outlines:
            self._outlines[module] = _Outline(module, self._names)
        return self._outlines[module]


Step = tuple[Module, cst.CSTNode]


class _Named(NamedTuple):
    """A container or function of a module or class; what is inside a function belongs to it."""

    module: Module
    owner: ClassInfo | None
    name: str


class _Place(NamedTuple):
    """Where in a module something is.

    Attributes:
        step: The statement of the module it is in.
        owner: The class it is in.
        function: The function it is in, if that has to be called before it is reached.
        nested: Whether it is in a function inside that one.
        local: Names that are variables of the functions around it.
    """

    step: cst.CSTNode
    owner: ClassInfo | None = None
    function: _Named | None = None
    nested: bool = False
    local: frozenset[str] = frozenset()


class _Mention(NamedTuple):
    """A name or attribute in the source, also one that is asked for by its text."""

    node: cst.Name | cst.Attribute | cst.SimpleString
    place: _Place


class _Outline:
    """Where a module mentions what, and what it changes.

    Attributes:
        changed: Names and attributes whose contents are changed where they stand.
        indirect: Those of which items are changed under other names.
        made: Attributes of ``self`` that are set to a new container.
        inner_classes: Classes inside of functions.
        asked: What is asked for attributes, outside of functions, whose names are computed.
    """

    def __init__(self, module: Module, names: Names) -> None:
        self._module = module
        self._mentions: dict[str, list[_Mention]] = {}
        self.inner_classes: list[cst.ClassDef] = []
        self._aliases: dict[str, list[str]] = {}
        self._uses = Mentions.of(mentions_of(module.tree))
        self.changed: set[cst.CSTNode] = set(self._uses.changed)
        self._bound: set[cst.CSTNode] = set()
        self.made: set[cst.CSTNode] = set()
        self.asked: list[cst.BaseExpression] = []
        self._classes = {info.node: info for info in names.classes(module)}
        for statement in module.tree.body:
            for step in simple_statements(statement):
                self._note(step, _Place(step))
        self.indirect: set[cst.CSTNode] = set(containers_changed(module))
        self.changed |= self.indirect

    def mentions(self, word: str) -> list[_Mention]:
        """Return the names and attributes that are this word, or what it was imported as."""
        return [one for name in (word, *self._aliases.get(word, ())) for one in self._mentions.get(name, ())]

    def only_looks(self, node: cst.CSTNode) -> bool:
        """Return whether a container is made where it is mentioned, or not changed there, nor kept."""
        return node in self._bound or (node not in self.changed and self._uses.only_looks(node))

    def _note(self, root: cst.CSTNode, place: _Place) -> None:
        skipped: set[int] = set()
        for node in nodes_of(root, NOTED, SCOPES):
            match node:
                case cst.Name(value=name):
                    if id(node) not in skipped and name not in place.local:
                        self._mentions.setdefault(name, []).append(_Mention(node, place))
                case cst.Param(name=name):
                    skipped.add(id(name))
                case cst.DictComp() | cst.GeneratorExp() | cst.ListComp() | cst.SetComp():
                    skipped |= set(map(id, _variables_of(node)))
                case cst.Attribute(attr=name):
                    skipped.add(id(name))
                    self._mentions.setdefault(name.value, []).append(_Mention(node, place))
                case cst.Arg(keyword=cst.Name() as name):
                    skipped.add(id(name))
                case cst.ImportAlias():
                    skipped |= {id(part) for part in walk(node)}
                    if node.evaluated_alias:
                        self._aliases.setdefault(node.evaluated_name, []).append(node.evaluated_alias)
                case cst.Call(func=cst.Attribute(value=changed, attr=name)) if name.value in MUTATORS:
                    # The container it belongs to, or the one that is an item of.
                    self.changed.add(taken_from(changed))
                case cst.Call(func=function, args=arguments) if last_name(function) in ASKING:
                    names = [one.value for one in arguments]
                    self._asked(names, place)
                    if place.function is None and not of_kind(names, cst.SimpleString):
                        self.asked += names[:1]
                case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                    named = owner.func if isinstance(owner, cst.Call) else owner
                    self._asked([key] if last_name(named) in ("__dict__", "vars") else [], place)
                case (
                    cst.AssignTarget(target=cst.Name() as bound) | cst.AnnAssign(target=cst.Name() as bound)
                ) if place.function is None:
                    self._bound.add(bound)
                case cst.Lambda() | cst.FunctionDef() | cst.ClassDef():
                    self._scope(node, place)
            match node:
                case (
                    cst.Assign(targets=[cst.AssignTarget(target=made)], value=value)
                    | cst.AnnAssign(target=made, value=value)
                ) if _is_container(value):
                    self.made.add(made)

    def _asked(self, names: Iterable[cst.BaseExpression], place: _Place) -> None:
        """Note attributes that are asked for by their names."""
        for name in names:
            if isinstance(name, cst.SimpleString):
                self._mentions.setdefault(literal_text(name) or "", []).append(_Mention(name, place))

    def _scope(self, node: cst.Lambda | cst.FunctionDef | cst.ClassDef, place: _Place) -> None:
        """Note a function or class: what stands above its body runs where it is defined."""
        if isinstance(node, cst.ClassDef):
            above: Sequence[cst.CSTNode] = (*node.decorators, *node.bases, *node.keywords)
            inside = place._replace(owner=self._classes.get(node, place.owner))
            self.inner_classes += [node] if place.function else []
        else:
            above = (*getattr(node, "decorators", ()), node.params)
            name = node.name.value if type(node) is cst.FunctionDef else "<lambda>"
            function = place.function or _Named(self._module, place.owner, name)
            local = place.local | _local_names(node)
            inside = place._replace(function=function, nested=place.function is not None, local=local)
        for part in above:
            self._note(part, place)
        self._note(node.body, inside)


def _local_names(node: cst.Lambda | cst.FunctionDef) -> frozenset[str]:
    """Return the names that are variables of a function, and nothing of a module."""
    parameters = {one.name.value for one in nodes_of(node.params, (cst.Param,))}
    outside = {item.name.value for item in nodes_of(node.body, (cst.NameItem,))}
    imported = set(map(imported_name, nodes_of(node.body, (cst.ImportAlias,))))
    return frozenset(parameters | (assigned_names(node.body) - outside - imported))


def _variables_of(
    node: cst.DictComp | cst.GeneratorExp | cst.ListComp | cst.SetComp,
) -> Iterator[cst.Name]:
    """Yield the names in a comprehension that are its own variables."""
    loop: cst.CompFor | None = node.for_in
    own: set[str] = set()
    while loop is not None:
        own |= target_names(loop.target)
        loop = loop.inner_for_in
    # What it is over is looked up outside.
    outside = set(map(id, nodes_of(node.for_in.iter, (cst.Name,))))
    yield from (name for name in nodes_of(node, (cst.Name,)) if name.value in own and id(name) not in outside)


def _is_container(value: cst.BaseExpression | None) -> bool:
    """Return whether an expression makes a dict or list."""
    match value:
        case cst.Call(func=maker):
            return last_name(maker) in MAKERS
        case cst.Dict() | cst.List():
            return True
    return False


def _has_container(info: ClassInfo, name: str) -> bool:
    """Return whether the objects of a class get a container of this name where they are made."""
    makers = (one.definition for one in info.set_by_methods.get(name, ()))
    made = any(one is not None and one.name.value in OBJECT_MAKING for one in makers)
    return made or isinstance(info.bindings.get(name), Assigned)


def _is_in_making(mention: _Mention, outline: _Outline) -> bool:
    """Return whether a container of an object is made or filled by what makes the object."""
    node, place = mention.node, mention.place
    if (
        place.nested
        or place.function is None
        or place.owner is None
        or place.function.name not in OBJECT_MAKING
    ):
        return False
    if type(node) is not cst.Attribute or not is_name(node.value, "self"):
        return False
    return node in outline.made or node in outline.changed
