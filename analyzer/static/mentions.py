"""Which code of the source can make endpoints?

Code that mentions ``EP`` can, and so can code that mentions such code: a decorator around ``EP``, an object
of a class whose methods use it, a factory, a subclass. Told from names alone, and rather too much than too
little: it decides what is followed, and what is an error if it cannot be followed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from analyzer.static.names import Assigned, Binding, ClassInfo, Found, FunctionInfo, Names, mup_name
from analyzer.static.source import Module
from analyzer.static.values import ClassValue, External, Value, of_kind
from analyzer.static.walking import names_in, nodes_of

__all__ = ["Mentions"]

CLASS_MAKERS = {"builtins.type", "types.new_class"}


@dataclass(frozen=True, slots=True)
class _Item:
    """A definition of the source."""

    module: Module
    binding: FunctionInfo | ClassInfo | Assigned


class Mentions:
    """Tells which code mentions ``EP``, directly or through other code of the source.

    Args:
        names: Meaning of names in the source tree.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._mentioned: dict[_Item, tuple[bool, tuple[_Item, ...]]] = {}
        self._without: set[_Item] = set()

    def of(self, module: Module, *code: cst.CSTNode, owner: ClassInfo | None = None) -> bool:
        """Return whether a piece of code can make endpoints; it may be in the body of a class."""
        words = frozenset[str]().union(*map(names_in, code))
        inside = {} if owner is None else owner.bindings
        direct, waiting = self._looked_up(module, words, (), inside.items())
        return direct or self._reaches(waiting)

    def in_function(self, function: FunctionInfo) -> bool:
        """Return whether a function can make endpoints."""
        return self._reaches([_Item(function.module, function)])

    def makes_services(self, module: Module, code: cst.CSTNode) -> bool:
        """Return whether code makes a service class: it, or a function it mentions, has one inside it."""
        if self._makes_class(module, code):
            return True
        _, found = self._looked_up(module, names_in(code), (), ())
        bindings = (one.binding for one in self._reached(found))
        return any(map(self._has_service, of_kind(bindings, FunctionInfo)))

    def _has_service(self, function: FunctionInfo) -> bool:
        inside = nodes_of(function.node, (cst.ClassDef,))
        bases = (base.value for one in inside for base in one.bases)
        found = any(self._is_service(self._names.dotted(function.module, base)) for base in bases)
        return found or self._makes_class(function.module, function.node)

    def _is_service(self, value: Value) -> bool:
        match value:
            case ClassValue(info):
                return self._names.derives_from(info, "MS")
        return mup_name(value) == "MS"

    def _makes_class(self, module: Module, code: cst.CSTNode) -> bool:
        """Return whether code makes a service by a call: ``type("Name", (MS,), {...})``."""
        return any(
            self._is_service(self._names.dotted(module, node))
            for call in nodes_of(code, (cst.Call,))
            if len(call.args) > 1 and self._names.external(module, call.func) in CLASS_MAKERS
            for argument in call.args
            for node in nodes_of(argument, (cst.Name,))
        )

    def _reaches(self, start: Iterable[_Item]) -> bool:
        seen: set[_Item] = set()
        for item in self._reached(start, self._without):
            if self._of(item)[0]:
                return True
            seen.add(item)
        # All of it has been looked through.
        self._without |= seen
        return False

    def _reached(self, start: Iterable[_Item], skipped: Collection[_Item] = ()) -> Iterator[_Item]:
        """Yield some definitions and those that they mention, directly or not, each once."""
        seen: set[_Item] = set()
        waiting = list(start)
        while waiting:
            item = waiting.pop()
            if item not in seen and item not in skipped:
                seen.add(item)
                yield item
                waiting += self._of(item)[1]

    def _of(self, item: _Item) -> tuple[bool, tuple[_Item, ...]]:
        """Return whether a definition mentions ``EP`` itself, and the definitions it mentions."""
        if item not in self._mentioned:
            binding = item.binding
            node = binding.value if isinstance(binding, Assigned) else binding.node
            imported = self._names.imported_inside(binding).values()
            words = frozenset[str]() if node is None else names_in(node)
            direct, more = self._looked_up(item.module, words, imported, ())
            self._mentioned[item] = direct, tuple(more)
        return self._mentioned[item]

    def _looked_up(
        self,
        module: Module,
        words: frozenset[str],
        imported: Iterable[Found],
        inside: Iterable[tuple[str, Binding]],
    ) -> tuple[bool, list[_Item]]:
        """Return whether ``EP`` is among some names, and the definitions that are."""
        found: list[Found] = [self._names.find(module, word) for word in sorted(words)]
        found += imported
        found += [(module, binding) for name, binding in inside if name in words]
        direct = False
        items: list[_Item] = []
        for one in found:
            match one:
                case External(name):
                    direct |= mup_name(one) == "EP" or (name in ("mup", "mup.service") and "EP" in words)
                case Module():
                    items += self._of_module(one, words)
                case (where, binding):
                    items += self._item(where, binding)
        return direct, items

    def _of_module(self, module: Module, words: frozenset[str]) -> Iterator[_Item]:
        """Yield the definitions of a module that some names may mean as its attributes."""
        for word in sorted(words & self._names.scope(module).keys()):
            match self._names.find(module, word):
                case (where, binding):
                    yield from self._item(where, binding)

    def _item(self, module: Module, binding: Binding) -> Iterator[_Item]:
        match binding:
            # Services have endpoints, users call them; neither makes any for another class.
            case ClassInfo() if any(self._names.derives_from(binding, kind) for kind in ("MS", "Client")):
                pass
            case ClassInfo() | FunctionInfo() | Assigned():
                yield _Item(module, binding)
