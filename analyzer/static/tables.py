"""What do containers of modules and classes hold that are filled while modules are imported?

A registry: decorators, hooks of base classes and statements of modules put functions and classes into it, and
requests look them up. What fills it (``registrations``) is walked once, in the order of the imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from analyzer.static.making import acting_decorators
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo
from analyzer.static.registrations import HOOK, Registration, Registrations, Step, defined
from analyzer.static.source import Module
from analyzer.static.values import (
    UNKNOWN,
    ClassValue,
    MapValue,
    SharedObject,
    TupleValue,
    Value,
    of_kind,
)
from analyzer.static.walk import Context, Part, TooManyPathsError, Walk, changed

__all__ = ["Tables"]


class Tables(Part):
    """Walks what fills containers while modules are imported."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._registrations = Registrations(walk.names)
        self._contents: dict[Assigned, Value] = {}
        self._objects: dict[Assigned, Value] = {}
        self._settled: tuple[Registration, ...] = ()

    def of_module(self, module: Module, binding: Assigned) -> Value | None:
        """Return what a global name is worth whose contents change; None if that is not known."""
        changed = self.walk.names.changed(binding)
        return None if changed is None else self._of(module, None, *changed)

    def of_class(self, owner: ClassInfo, name: str, binding: Assigned) -> Value | None:
        """Return what an attribute of a class is worth whose contents change; None if that is not known."""
        return self._of(owner.module, owner, name, binding)

    def being_filled(self, binding: Assigned) -> Value | None:
        """Return a constant while what imports put into its objects is put there; None at any other time."""
        return self._objects.get(binding)

    def filled(self, info: ClassInfo, names: Iterable[str]) -> frozenset[str]:
        """Return which containers of an object hold what imports, and nothing else, put into them."""
        if not self._settled:
            return frozenset()
        return frozenset(n for n in names if self._registrations.of_objects(info, n) in self._settled)

    def with_contents(self, context: Context, binding: Assigned, value: Value) -> Value:
        """Return a constant with what imports put into containers of its objects, as far as that is known."""
        places = dict.fromkeys(self._unsettled(value)) if binding.value is not None else {}
        found = [self._registrations.of_objects(info, name) for info, name in places]
        registrations = tuple(dict.fromkeys(filter(None, found)))
        if binding.value is None or not registrations:
            return value
        steps = self._registrations.ordered([step for one in registrations for step in one.steps])
        fillers = frozenset(name for one in registrations for name in one.fillers)
        attaching, lookups = self.walk.attaching, self.walk.lookups
        # What constants are worth that have been looked at before is not what they are now.
        classes = {one: known for one, known in lookups.imported.items() if isinstance(known, ClassValue)}
        with (
            changed(lookups, imported=classes),
            changed(attaching, fillers=fillers),
            attaching.filled(context, binding.value) as made,
        ):
            if made is None:
                return value
            self._objects[binding] = made
            try:
                if not all(one for step in steps for one in self._run(step)) or attaching.copied:
                    return value
                with changed(self, _settled=registrations):
                    return attaching.content(made)
            except (TooManyPathsError, RecursionError):
                return value
            finally:
                del self._objects[binding]

    def _unsettled(self, value: Value) -> Iterator[tuple[ClassInfo, str]]:
        """Yield the containers of objects in a constant that may change after the objects were made."""
        match value:
            case SharedObject(info=info, own=own) as value:
                for name, held in own:
                    if not self.walk.shared.is_made_once(info, name, held, filled=name in value.filled):
                        yield info, name
                    yield from self._unsettled(held)
            case TupleValue() | MapValue():
                for one in value.parts():
                    yield from self._unsettled(one)

    def _of(self, module: Module, owner: ClassInfo | None, name: str, binding: Assigned) -> Value | None:
        if binding not in self._contents:
            registration = self._registrations.of(module, owner, name, binding)
            if registration is None:
                return None
            self._contents[binding] = UNKNOWN
            self._contents[binding] = self._filled(registration)
        return self._contents[binding]

    def _filled(self, registration: Registration) -> Value:
        """Return what a container holds when all is imported; unknown if a step cannot be followed."""
        binding, owner = registration.binding, registration.owner
        if binding.value is None:
            return UNKNOWN
        attaching = self.walk.attaching
        with attaching.filled(Context(registration.module, owner=owner), binding.value) as container:
            if container is None:
                return UNKNOWN
            self._contents[binding] = container
            try:
                for step in registration.steps:
                    if not all(self._run(step)):
                        return UNKNOWN
            except (TooManyPathsError, RecursionError):
                return UNKNOWN
            return attaching.content(container)

    def _run(self, step: Step) -> Iterator[bool]:
        """Run a statement, and yield for each part of it whether it could be followed."""
        module, statement = step
        attaching, names, context = self.walk.attaching, self.walk.names, Context(module)
        found = defined(module, statement, names)
        if not found:
            yield attaching.run(context, partial(attaching.executed, statement)) is not None
        for info in found:
            if isinstance(info, FunctionInfo):
                yield self._decorated(info)
                continue
            yield from map(self._decorated, of_kind(info.bindings.values(), FunctionInfo))
            code = [partial(attaching.decorated, info, d.decorator) for d in acting_decorators(names, info)]
            hook = names.method(info, HOOK, after=info)
            if hook is not None:
                code.insert(0, partial(attaching.subclassed, hook, info))
            yield from (attaching.run(context, one) is not None for one in code)

    def _decorated(self, function: FunctionInfo) -> bool:
        """Run the decorators of a function, and return whether they could be followed."""
        return not function.decorators or self.walk.decorators.decorate(function) != UNKNOWN
