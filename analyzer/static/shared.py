"""What do requests share: what a service or client got before its first request?

It is what it was when it was made; an attribute that anything else assigns is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer.static.diagnostics import Diagnostics
from analyzer.static.names import ClassInfo, FunctionInfo
from analyzer.static.setting_up import PREPARING, SettingUp
from analyzer.static.state import Flow, State
from analyzer.static.values import UNKNOWN, MapValue, ObjectRef, TupleValue, Value, join, of_kind
from analyzer.static.walk import Context, Part, TooManyPathsError, Walk

__all__ = ["Shared"]


class Shared(Part):
    """Walks ``__init__`` and ``setup``."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._shared: dict[ClassInfo, dict[str, Value]] = {}
        self._services: dict[int, ClassInfo] = {}
        self._setting_up = SettingUp(walk.names)

    def of_service(self, info: ClassInfo, name: str) -> Value | None:
        """Return an attribute that the service or client got before its first request."""
        methods = self.walk.names.assigned_by_methods(info, name)
        if not methods:
            return None
        making = self._setting_up.methods(info)
        shared = self._made_by_setup(info) if _only_making(methods, making) else {}
        value = shared.get(name)
        return UNKNOWN if value is None or not self.is_made_once(info, name, value, making) else value

    def _made_by_setup(self, info: ClassInfo) -> dict[str, Value]:
        if info not in self._shared:
            self._shared[info] = {}
            self._shared[info] = self._run_setup(info)
        return self._shared[info]

    def _run_setup(self, info: ClassInfo) -> dict[str, Value]:
        """Walk ``__init__`` and ``setup``; what they report is not about any request."""
        me = ObjectRef(self.walk.allocate(), info)
        self._services[me.number] = info
        states = [State((), heap={me.number: self.walk.making.initial(me)})]
        try:
            for name in ("__init__", "setup"):
                function = self.walk.names.method(info, name)
                if function is not None:
                    states = self._run_alone(function, me, states)
        except TooManyPathsError:
            return {}
        frozen: dict[str, list[Value]] = {}
        for state in states:
            for name, value in me.attributes(state.heap).items():
                frozen.setdefault(name, []).append(self.walk.lookups.freeze(value, state))
        return {name: join(values) for name, values in frozen.items()}

    def _run_alone(self, function: FunctionInfo, me: ObjectRef, states: Sequence[State]) -> list[State]:
        flows: list[Flow] = []
        with self.walk.apart(Context(function.module, function), Diagnostics()):
            frame = self.walk.functions.first_frame(function, (me,))
            for state in states:
                flows += self.walk.statements.run_body(function, State((frame,), heap=state.heap))
        return [State((), heap=f.state.heap) for f in flows if f.kind in ("next", "return")]

    def is_made_once(
        self, info: ClassInfo, name: str, value: Value, making: Iterable[str] = (), *, filled: bool = False
    ) -> bool:
        """Return whether nothing but ``__init__`` and ``setup`` gives this attribute a value.

        Args:
            info: The class of the object.
            name: What the attribute is called.
            value: What it got there.
            making: Other methods that run once, before the object is used.
            filled: It is a container that only imports change.
        """
        names = self.walk.names
        if names.sets_anything() or name in names.attributes_assigned():
            return False
        if not _only_making([*names.assigned_by_methods(info, name), *names.set_by_name(info)], making):
            return False
        if isinstance(value, TupleValue | MapValue) and not filled:
            # A container that starts empty is there to be filled.
            return bool(value.parts()) and name not in self.walk.names.attributes_changed()
        return True

    def is_service(self, number: int) -> bool:
        """Return whether an object is the service or client itself, while it is set up."""
        return number in self._services

    def sets_up(self, function: FunctionInfo, given: Iterable[Value]) -> bool:
        """Return whether a function is given a service that is set up, and runs at no other time."""
        services = (one for one in of_kind(given, ObjectRef) if self.is_service(one.number))
        return any(_only_making([function], self._setting_up.methods(one.info)) for one in services)


def _only_making(methods: Sequence[FunctionInfo], more: Iterable[str] = ()) -> bool:
    return all(method.qualname.rsplit(".", 1)[-1] in {*PREPARING, *more} for method in methods)
