"""What can the analyzer know about the value of an expression?

Abstract values: constants are known exactly, futures by the operation that created them, functions and
classes by their definition; everything else is ``UNKNOWN``. All values are immutable and hashable, so
that two ways through a program that end up the same can be recognised; contents of lists and dicts live
in the heap of a state and are referred to by number.
"""

from __future__ import annotations

import operator
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.control import Block
    from analyzer.static.evaluation import Context, Failure
    from analyzer.static.names import ClassInfo, FunctionInfo
    from analyzer.static.source import Module
    from analyzer.static.state import FlowKind

__all__ = [
    "COMM",
    "LOST",
    "NONE",
    "SIMPLE",
    "UNKNOWN",
    "Awaitable",
    "ClassValue",
    "Closure",
    "Const",
    "Coroutine",
    "DictRef",
    "EnumMember",
    "External",
    "FunctionValue",
    "Future",
    "Generator",
    "Group",
    "Instance",
    "Leaving",
    "ListRef",
    "MapValue",
    "Method",
    "ModuleValue",
    "ObjectRef",
    "OneOf",
    "Partial",
    "SharedObject",
    "Slot",
    "Super",
    "TupleValue",
    "Unknown",
    "Value",
    "alternatives",
    "binary",
    "compare",
    "from_python",
    "futures",
    "join",
    "mapped",
    "parts",
    "text_method",
    "tracked",
    "truth",
    "tuple_of",
    "unary",
]

MAX_ALTERNATIVES = 16
"""More possible values than this are as good as unknown."""

MAX_TEXT = 10_000
"""Longer constants are not computed: no destination is that long."""

MAX_BITS = 4_000
"""Larger numbers are not computed; the interpreter refuses to write them as text."""


@dataclass(frozen=True, slots=True)
class Value:
    """Base of all abstract values."""


@dataclass(frozen=True, slots=True)
class Unknown(Value):
    """Anything that is neither communication nor a future.

    Attributes:
        holds: What a condition has already told about its truth, None if nothing has.
    """

    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class Lost(Value):
    """May hold a future the analyzer has lost track of."""


@dataclass(frozen=True, slots=True)
class Comm(Value):
    """The ``Communication`` of the running request or scenario."""


UNKNOWN = Unknown()
LOST = Lost()
COMM = Comm()


@dataclass(frozen=True, slots=True)
class Const(Value):
    """A str, bytes, int, float, bool or None that is the same in every execution."""

    value: Any
    kind: type

    @staticmethod
    def of(value: object) -> Const:
        """Return the constant; its type takes part in equality, so that 1 is not True."""
        return Const(value, type(value))


NONE = Const.of(None)


@dataclass(frozen=True, slots=True)
class Future(Value):
    """The future of the ``index``-th operation of the path: of a call or query, or a concurrent task."""

    index: int


@dataclass(frozen=True, slots=True)
class TupleValue(Value):
    """A tuple, range or other immutable sequence of known length.

    Attributes:
        plain: It holds constants and unknown values only, nothing to keep track of.
    """

    items: tuple[Value, ...]
    plain: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Long ranges are asked for this in every iteration of a loop over them.
        plain = all(
            one.plain if isinstance(one, TupleValue) else isinstance(one, Const | Unknown)
            for one in self.items
        )
        object.__setattr__(self, "plain", plain)


@dataclass(frozen=True, slots=True)
class MapValue(Value):
    """A mapping that never changes, as pairs of key and value: a module or class constant."""

    items: tuple[tuple[Value, Value], ...]


@dataclass(frozen=True, slots=True)
class ListRef(Value):
    """A list or set whose items are in the heap."""

    number: int


@dataclass(frozen=True, slots=True)
class DictRef(Value):
    """A dict whose items are in the heap, as pairs of key and value."""

    number: int


@dataclass(frozen=True, slots=True)
class Slot(Value):
    """The key of an attribute among the contents of an object."""

    name: str


@dataclass(frozen=True, slots=True)
class ObjectRef(Value):
    """An object of a class of the source tree, whose attributes are in the heap by ``Slot``."""

    number: int
    info: ClassInfo


@dataclass(frozen=True, slots=True)
class SharedObject(Value):
    """An object that all requests share: a module or class constant, or an attribute of the service.

    Attributes:
        attributes: As they were when the object was made.
    """

    info: ClassInfo
    attributes: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class EnumMember(Value):
    """A member of an enumeration of the source tree.

    Attributes:
        textual: Whether it can be used like its value, as members of a ``StrEnum`` can.
        prints_as_value: Whether it is also printed like its value.
    """

    info: ClassInfo
    name: str
    value: Value
    textual: bool
    prints_as_value: bool


@dataclass(frozen=True, slots=True)
class ModuleValue(Value):
    """An imported module of the source tree."""

    module: Module


@dataclass(frozen=True, slots=True)
class External(Value):
    """Something outside the source tree, by its dotted name (``mup.MS``, ``builtins.range``)."""

    name: str


@dataclass(frozen=True, slots=True)
class ClassValue(Value):
    """A class of the source tree."""

    info: ClassInfo


@dataclass(frozen=True, slots=True)
class Instance(Value):
    """The object the analysed method belongs to: ``self`` of a service or client."""

    info: ClassInfo


@dataclass(frozen=True, slots=True)
class Super(Value):
    """``super()``: attributes of ``info``'s bases behind ``after``, bound to ``receiver``."""

    info: ClassInfo
    after: ClassInfo
    receiver: Value


@dataclass(frozen=True, slots=True)
class FunctionValue(Value):
    """A function or method of the source tree, possibly bound to its first argument."""

    info: FunctionInfo
    bound: Value | None = None


@dataclass(frozen=True, slots=True)
class Closure(Value):
    """A nested function or lambda.

    Attributes:
        info: The function.
        depth: Which of the active frames its free names are looked up in; None once that function has ended.
        captured: What the names were worth by then.
        communicates: Whether they reached communication or a future when it was made.
        defaults: Values of parameters that nobody passes, as they were when it was defined.
    """

    info: FunctionInfo
    depth: int | None
    captured: tuple[tuple[str, Value], ...] = ()
    communicates: bool = False
    defaults: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Partial(Value):
    """A callable with its first arguments: ``functools.partial``, or a wrapped method of an object."""

    function: Value
    values: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Coroutine(Value):
    """An ``async def`` that was called and runs when it is awaited."""

    function: FunctionValue | Closure
    arguments: tuple[tuple[str, Value], ...]
    call: cst.CSTNode = field(repr=False)


@dataclass(frozen=True, slots=True)
class Awaitable(Value):
    """What a function of asyncio returned that waits for other things when it is awaited.

    Attributes:
        kind: ``gather``, ``collect`` (a gather whose errors are results), ``wait``, ``limited`` (with a
            timeout) or ``completed`` (the next of several to be ready).
        items: What it waits for; of ``completed`` this one first, then all.
        call: The call that made it.
    """

    kind: Literal["gather", "collect", "wait", "limited", "completed"]
    items: tuple[Value, ...]
    call: cst.Call = field(repr=False)


@dataclass(frozen=True, slots=True)
class Group(Value):
    """An ``asyncio.TaskGroup`` whose tasks are in the heap."""

    number: int


@dataclass(frozen=True, slots=True)
class Generator(Value):
    """A generator: its code runs when somebody takes items from it.

    Attributes:
        context: Where its code is.
        body: Its control flow.
        arguments: Its variables before it begins.
        number: Says in the heap whether it has begun.
        communicates: Whether its code can reach communication or futures.
    """

    context: Context
    body: Block
    arguments: tuple[tuple[str, Value], ...]
    number: int
    communicates: bool

    def __repr__(self) -> str:
        return f"Generator({self.number})"


@dataclass(frozen=True, slots=True)
class Leaving(Value):
    """How the consumer of a generator goes on once the generator is closed.

    Attributes:
        kind: As of a flow.
        value: As of a flow.
        line: As of a flow.
        failure: What failed, if that is why; else "".
    """

    kind: FlowKind
    value: Value = UNKNOWN
    line: int = 0
    failure: Failure | Literal[""] = ""


@dataclass(frozen=True, slots=True)
class Method(Value):
    """A method of one of the other values, not called yet: ``comm.call``, ``future.get``, ``list.append``."""

    owner: Value
    name: str


@dataclass(frozen=True, slots=True)
class OneOf(Value):
    """One of a few values, depending on local decisions."""

    values: frozenset[Value]


SIMPLE = frozenset(
    {
        ClassValue,
        Const,
        DictRef,
        EnumMember,
        External,
        Group,
        Instance,
        ListRef,
        ModuleValue,
        ObjectRef,
        SharedObject,
        Slot,
        Unknown,
    }
)
"""Values that are not made of others and are nothing to keep track of (heap contents aside)."""


def tuple_of(items: tuple[Value, ...]) -> Value:
    """Return a tuple; one that holds enormously many values, itself or in tuples inside it, is not known."""
    pending: list[Value] = list(items)
    count = 0
    while pending and count <= MAX_TEXT:
        value = pending.pop()
        count += 1
        if isinstance(value, TupleValue | MapValue | OneOf):
            pending.extend(parts(value))
    if not pending:
        return TupleValue(items)
    return LOST if any(tracked(item) for item in items) else UNKNOWN


def alternatives(value: Value) -> tuple[Value, ...]:
    """Return the values it may have, in a stable order."""
    if isinstance(value, OneOf):
        return tuple(sorted(value.values, key=repr))
    return (value,)


def tracked(value: Value) -> bool:
    """Return whether losing sight of this value could lose a remote operation (heap contents aside)."""
    if type(value) in SIMPLE or (isinstance(value, TupleValue) and value.plain):
        return False
    if isinstance(value, Comm | Future | Lost | Coroutine | Leaving):
        return True
    if isinstance(value, Closure | Generator) and value.communicates:
        return True
    return any(tracked(part) for part in parts(value))


def futures(value: Value) -> Iterator[int]:
    """Yield the index of every future in a value (heap contents aside)."""
    if isinstance(value, Future):
        yield value.index
    for part in parts(value):
        yield from futures(part)


def parts(value: Value) -> tuple[Value, ...]:
    """Return the values another value is made of (heap contents aside)."""
    if type(value) in SIMPLE:
        return ()
    if isinstance(value, TupleValue | Awaitable):
        return value.items
    if isinstance(value, MapValue):
        return tuple(one for pair in value.items for one in pair)
    if isinstance(value, OneOf):
        return tuple(value.values)
    if isinstance(value, Method):
        return (value.owner,)
    if isinstance(value, FunctionValue):
        return () if value.bound is None else (value.bound,)
    if isinstance(value, Coroutine):
        return (value.function, *(one for _, one in value.arguments))
    if isinstance(value, Closure):
        return tuple(one for _, one in (*value.captured, *value.defaults))
    if isinstance(value, Partial):
        return (value.function, *value.values, *(one for _, one in value.keywords))
    if isinstance(value, Generator):
        return tuple(one for _, one in value.arguments)
    if isinstance(value, Leaving):
        return (value.value,)
    if isinstance(value, Super):
        return (value.receiver,)
    return ()


def mapped(value: Value, change: Callable[[Future], Value]) -> Value:
    """Return the value with every future in it (heap contents aside) replaced."""
    if isinstance(value, Future):
        return change(value)
    if type(value) in SIMPLE or not any(True for _ in futures(value)):
        return value
    if isinstance(value, TupleValue):
        return TupleValue(tuple(mapped(item, change) for item in value.items))
    if isinstance(value, Awaitable):
        return replace(value, items=tuple(mapped(item, change) for item in value.items))
    if isinstance(value, MapValue):
        return MapValue(tuple((mapped(k, change), mapped(v, change)) for k, v in value.items))
    if isinstance(value, OneOf):
        return join(mapped(one, change) for one in value.values)
    if isinstance(value, Method):
        owner = mapped(value.owner, change)
        return replace(value, owner=owner) if tracked(owner) else UNKNOWN
    if isinstance(value, FunctionValue) and value.bound is not None:
        return replace(value, bound=mapped(value.bound, change))
    if isinstance(value, Closure):
        return replace(
            value,
            captured=tuple((name, mapped(one, change)) for name, one in value.captured),
            defaults=tuple((name, mapped(one, change)) for name, one in value.defaults),
        )
    if isinstance(value, Generator):
        return replace(value, arguments=tuple((name, mapped(one, change)) for name, one in value.arguments))
    if isinstance(value, Leaving):
        return replace(value, value=mapped(value.value, change))
    if isinstance(value, Partial):
        return Partial(
            mapped(value.function, change),
            tuple(mapped(one, change) for one in value.values),
            tuple((name, mapped(one, change)) for name, one in value.keywords),
        )
    if isinstance(value, Coroutine):
        function = mapped(value.function, change)
        arguments = tuple((name, mapped(one, change)) for name, one in value.arguments)
        if isinstance(function, FunctionValue | Closure):
            return replace(value, function=function, arguments=arguments)
    return LOST


def join(values: Iterable[Value]) -> Value:
    """Return the value that may be any of these."""
    flat: set[Value] = set()
    for value in values:
        flat.update(alternatives(value))
    if len(flat) > 1:
        flat = {UNKNOWN if isinstance(v, Unknown) else v for v in flat}
    if len(flat) == 1:
        return flat.pop()
    if LOST in flat:
        return LOST
    # What a list or object holds is not known here.
    held = any(tracked(v) or isinstance(v, ListRef | DictRef | ObjectRef) for v in flat)
    if len(flat) > MAX_ALTERNATIVES or (UNKNOWN in flat and not held):
        return LOST if held else UNKNOWN
    return OneOf(frozenset(flat))


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
    "Divide": operator.truediv,
    "FloorDivide": operator.floordiv,
    "Modulo": operator.mod,
    "Power": operator.pow,
    "LeftShift": operator.lshift,
    "RightShift": operator.rshift,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
}

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "LessThan": operator.lt,
    "LessThanEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEqual": operator.ge,
    # Of constants; for None, the use that matters, it is the same.
    "Is": lambda a, b: type(a) is type(b) and a == b,
    "IsNot": lambda a, b: type(a) is not type(b) or a != b,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


def _plain(value: Value) -> tuple[bool, Any]:
    """Return (known, Python value) of a constant or a tuple of constants."""
    if isinstance(value, Const):
        return True, value.value
    if isinstance(value, EnumMember) and value.textual:
        return _plain(value.value)
    if isinstance(value, TupleValue):
        items = [_plain(item) for item in value.items]
        return all(known for known, _ in items), tuple(item for _, item in items)
    if isinstance(value, MapValue):
        pairs = [(_plain(key), _plain(item)) for key, item in value.items]
        known = all(key[0] and item[0] for key, item in pairs)
        return known, {key[1]: item[1] for key, item in pairs} if known else None
    return False, None


def _apply(function: Callable[..., Any], *values: Value) -> Value:
    """Apply a pure function to every combination of constants; anything else is unknown."""
    head, *rest = values
    results: list[Value] = []
    for first in alternatives(head):
        for second in alternatives(rest[0]) if rest else (None,):
            arguments = [_plain(v) for v in (first, second) if v is not None]
            if not all(known for known, _ in arguments):
                return UNKNOWN
            try:
                result = function(*(value for _, value in arguments))
            except (TypeError, ValueError, ArithmeticError, LookupError):
                return UNKNOWN
            results.append(from_python(result))
    return join(results)


def from_python(value: object) -> Value:
    """Return the abstract value of a plain Python one."""
    if isinstance(value, str | bytes) and len(value) > MAX_TEXT:
        return UNKNOWN
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return UNKNOWN
    if value is None or isinstance(value, str | bytes | int | float):
        return Const.of(value)
    if isinstance(value, range):
        return _numbers(value)
    if isinstance(value, tuple | list) and len(value) <= MAX_TEXT:
        return TupleValue(tuple(from_python(item) for item in value))
    return UNKNOWN


@lru_cache(maxsize=64)
def _numbers(value: range) -> Value:
    """Return a range; inside of loops the same one is asked for again and again."""
    # Not len(range(...)), which has a limit of its own.
    if (value.stop - value.start) // value.step > MAX_TEXT:
        return UNKNOWN
    return TupleValue(tuple(Const.of(number) for number in value))


def _affordable(name: str, left: Value, right: Value) -> bool:
    """Refuse arithmetic whose result would not fit: source code may say ``10 ** 10 ** 10``."""
    ones, others = alternatives(left), alternatives(right)
    if name == "Modulo":
        texts = [v.value for v in ones if isinstance(v, Const) and isinstance(v.value, str)]
        return all(_PLAIN_TEMPLATE.fullmatch(text) for text in texts)
    if name == "Multiply":
        # A text or tuple becomes that many times as long; numbers are small already.
        return all(
            _length(a) * _amount(b) + _length(b) * _amount(a) <= MAX_TEXT for a in ones for b in others
        )
    if name in ("Power", "LeftShift"):
        return all(_amount(v) <= MAX_TEXT for v in (*ones, *others))
    return True


_PLAIN_TEMPLATE = re.compile(r"(?:[^%]|%(?:\(\w*\))?[%sdr])*", re.DOTALL)
"""For ``%``: values as they are; a width could be a billion."""


def _length(value: Value) -> int:
    if isinstance(value, TupleValue):
        return len(value.items)
    text = value.value if isinstance(value, Const) else None
    return len(text) if isinstance(text, str | bytes) else 0


def _amount(value: Value) -> float:
    number = value.value if isinstance(value, Const) else None
    return abs(number) if isinstance(number, int | float) else 0


def binary(name: str, left: Value, right: Value) -> Value:
    """Return ``left <operator> right``; ``name`` is libcst's name of the operator."""
    if name == "Add" and isinstance(left, TupleValue) and isinstance(right, TupleValue):
        return tuple_of(left.items + right.items)
    function = _BINARY.get(name)
    if function is None or not _affordable(name, left, right):
        return UNKNOWN
    return _apply(function, left, right)


_NEVER_NONE = {Future, Comm, TupleValue, ListRef, DictRef, ObjectRef, SharedObject, EnumMember}
_NEVER_NONE |= {Closure, FunctionValue, Method, Partial, Generator, ClassValue}


def compare(name: str, left: Value, right: Value) -> Value:
    """Return the comparison as a constant, or unknown."""
    if name in ("Is", "IsNot", "Equal", "NotEqual"):
        # A future is never None, so `if future is not None` tells the two apart.
        sides = {type(left), type(right)}
        if NONE in (left, right) and sides & _NEVER_NONE:
            return Const.of(name in ("IsNot", "NotEqual"))
        if isinstance(left, EnumMember) and isinstance(right, EnumMember) and left.info is right.info:
            return Const.of((left.name == right.name) is (name in ("Is", "Equal")))
    return _apply(_COMPARE[name], left, right) if name in _COMPARE else UNKNOWN


def unary(name: str, value: Value) -> Value:
    """Return ``<operator> value``."""
    if name == "Not":
        known = truth(value)
        return UNKNOWN if known is None else Const.of(not known)
    functions: dict[str, Callable[[Any], Any]] = {
        "Minus": operator.neg,
        "Plus": operator.pos,
        "BitInvert": operator.invert,
    }
    return _apply(functions[name], value) if name in functions else UNKNOWN


TEXT_METHODS = {
    "capitalize",
    "casefold",
    "count",
    "endswith",
    "find",
    "format",
    "isalpha",
    "isdigit",
    "join",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
}


def text_method(name: str, receiver: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    """Return the result of a pure method of a constant text, or unknown."""
    if name not in TEXT_METHODS:
        return UNKNOWN
    if any(not _plain(a)[0] for a in (*arguments, *keywords.values())):
        return UNKNOWN
    plain = [_plain(a)[1] for a in arguments]
    named = {key: _plain(a)[1] for key, a in keywords.items()}
    return _apply(lambda text: _text_method(name, text, plain, named), receiver)


def _characters(arguments: Iterable[object]) -> int:
    """Return how much text there is in some arguments, and in tuples among them."""
    return sum(
        len(one) if isinstance(one, str) else 1 + _characters(one) if isinstance(one, tuple) else 1
        for one in arguments
    )


_NOT_KNOWN = object()
_PLAIN_FIELD = re.compile(r"\w*")
MAX_PRODUCT = 1_000_000
"""Characters a text may have before it is known how many it has."""


def _text_method(name: str, text: str, arguments: list[Any], keywords: dict[str, Any]) -> object:
    """Call a method of a text; the result is not known if it could be enormous.

    Raises:
        TypeError, ValueError, LookupError: As the method does.
    """
    if name == "format":
        fields = [(field, spec) for _, field, spec, _ in string.Formatter().parse(text) if field is not None]
        # A width could be a billion, and `{0.x}` asks an object.
        if any(spec or not _PLAIN_FIELD.fullmatch(field) for field, spec in fields):
            return _NOT_KNOWN
    if (
        name in ("join", "replace")
        and (len(text) + 1) * (_characters([*arguments, *keywords.values()]) + 1) > MAX_PRODUCT
    ):
        return _NOT_KNOWN
    if name == "zfill" and any(isinstance(one, int) and one > MAX_TEXT for one in arguments):
        return _NOT_KNOWN
    return getattr(text, name)(*arguments, **keywords)


def truth(value: Value) -> bool | None:
    """Return whether the value counts as true; None if that depends on the execution."""
    answers = set()
    for one in alternatives(value):
        if isinstance(one, Const):
            answers.add(bool(one.value))
        elif isinstance(one, TupleValue | MapValue):
            answers.add(bool(one.items))
        elif isinstance(one, Unknown) and one.holds is not None:
            answers.add(one.holds)
        elif isinstance(one, Comm | Future | FunctionValue | Closure | ClassValue | Instance | Partial):
            answers.add(True)
        else:
            return None
    return answers.pop() if len(answers) == 1 else None
