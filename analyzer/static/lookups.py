"""What is a name worth: of a variable, of a module or class, of an imported one?"""

from __future__ import annotations

from analyzer.static.names import Assigned, ClassInfo, FunctionInfo
from analyzer.static.source import Module
from analyzer.static.state import State
from analyzer.static.syntax import applied
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    FunctionValue,
    ModuleValue,
    SharedObject,
    Value,
    join,
    unmarked,
)
from analyzer.static.walk import Context, Part, TooManyPathsError, Walk

__all__ = ["Lookups"]


class Lookups(Part):
    """Looks names up.

    Attributes:
        constants: What constants are worth to requests.
        imported: What they are worth while modules are imported, when it matters which are endpoints.
    """

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self.constants: dict[Assigned, Value] = {}
        self.imported: dict[Assigned, Value] = {}
        self._busy: set[Assigned] = set()

    def constant(self, module: Module, binding: Assigned, owner: ClassInfo | None = None) -> Value:
        """Return what a module or class constant is worth; unknown if it is not one."""
        if binding.value is None or binding in self._busy:
            return self.walk.annotated.constant(module, binding, UNKNOWN)
        importing = self.walk.attaching.active
        filling = self.walk.tables.being_filled(binding) if importing else None
        if filling is not None:
            return filling
        known = self.imported if importing else self.constants
        if not importing and isinstance(self.imported.get(binding), ClassValue):
            return self.imported[binding]  # a class that a function has made is made once
        if binding not in known:
            self._busy.add(binding)
            around = () if owner is None else tuple(owner.captured.items())
            context = Context(module, owner=owner, captured=around)
            with self.walk.unhurried(), self.walk.apart(context):
                try:
                    results = self.walk.expressions.evaluate(binding.value, self.walk.attaching.start())
                except (TooManyPathsError, RecursionError):
                    results = []
                other_name = len(results) == 1 and self.walk.attaching.is_filling(results[0][1])
                value = join(self.freeze(v, s) for s, v in results if not other_name)
            self._busy.discard(binding)
            if other_name:
                return self.walk.attaching.unfrozen(results[0][1], results[0][0])
            value = self.walk.annotated.constant(module, binding, value if results else UNKNOWN)
            known[binding] = value if importing else unmarked(value)
            if not importing:
                known[binding] = self.walk.tables.with_contents(context, binding, known[binding])
        return known[binding]

    def lookup(self, name: str, state: State) -> Value:
        """Return what a name is worth."""
        if name in state.frames[-1]:
            return state.frames[-1][name]
        context = self.walk.contexts[-1]
        inner: Context | None = context
        while inner is not None:
            for captured, value in inner.captured:
                if captured == name:
                    return value
            depth = inner.closure
            if depth is None or depth >= len(state.frames):
                break
            if name in state.frames[depth]:
                return state.frames[depth][name]
            inner = self.walk.contexts[depth] if depth < len(self.walk.contexts) else None
        owner = context.owner
        if owner is not None and name in owner.bindings and name not in context.unbound:
            match owner.bindings[name]:
                case Assigned() as binding:
                    return self.constant(context.module, binding, owner)
                case FunctionInfo() as function if self.walk.attaching.active:
                    return self.walk.decorators.as_imported(function)
                case other:
                    return other.meaning() or UNKNOWN
        return self.global_value(context.module, name)

    def global_value(self, module: Module, name: str) -> Value:
        """Return what a name of a module is worth."""
        found = self.walk.names.find(module, name)
        match found:
            case (_, FunctionInfo() as function):
                return self.walk.decorators.read(function)
            case (there, Assigned() as binding):
                if self.walk.contexts and name in self.walk.names.changes(self.walk.module).attributes:
                    return UNKNOWN
                if there is module and self.walk.names.rebound(module, name):
                    return self._rebound(module, name)
                known = self.walk.tables.of_module(there, binding)
                if known is None and self.walk.names.changed(binding) is not None:
                    return self.constant(there, Assigned(None, binding.annotation))
                return known or self.constant(there, binding)
        return self.walk.names.value_of(found) or UNKNOWN

    def _rebound(self, module: Module, name: str) -> Value:
        """Return what a global name is worth that functions rebind: an object that is made when needed."""
        values = [self.constant(module, binding) for binding in self.walk.names.rebound(module, name)]
        made_once = all(value == NONE or isinstance(value, SharedObject) for value in values)
        return join(values) if made_once else UNKNOWN

    def member(self, owner: ModuleValue, name: str) -> Value:
        """Return a name of a module of the source tree."""
        value = self.walk.names.member(owner, name)
        if value is None or isinstance(value, FunctionValue):
            return self.global_value(owner.module, name)
        return value

    def decorators(self, function: FunctionInfo) -> list[str]:
        """Return the dotted names of a function's decorators; code for those that have none."""
        module, bases = function.module, [applied(one.decorator) for one in function.decorators]
        return [self.walk.names.library_name(module, b) or module.tree.code_for_node(b) for b in bases]

    def freeze(self, value: Value, state: State) -> Value:
        """Return a value that needs no heap."""
        return value.frozen(state, frozenset(), self.walk)
