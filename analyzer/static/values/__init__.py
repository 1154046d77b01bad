"""What can the analyzer know about the value of an expression?

Constants are known exactly, futures by the operation that created them, functions and classes by their
definition; everything else is ``UNKNOWN``. Each kind of value answers for itself what it is made of, what it
is worth and what using it does (``value.py``); what that needs of the walk through the program it asks
the part of it that knows.
"""

from analyzer.static.values.callables import Closure, External, Function, FunctionValue, Partial
from analyzer.static.values.constants import NONE, Const, Setting, answer, negated
from analyzer.static.values.containers import (
    DictRef,
    ListRef,
    MapValue,
    SetRef,
    Slot,
    TupleValue,
    distinct,
    item_of,
    keyed,
    tuple_of,
)
from analyzer.static.values.copies import GROWING, CopyFuture, Many, added_to, joined_many
from analyzer.static.values.endpoints import Mark, Marked, mark_of, unmarked
from analyzer.static.values.futures import (
    COMM,
    RACED,
    Awaitable,
    Comm,
    Coroutine,
    Future,
    Generator,
    Group,
    Leaving,
    Raced,
)
from analyzer.static.values.managers import ExitStack, Semaphore, Suppressing
from analyzer.static.values.namespaces import Namespace
from analyzer.static.values.objects import (
    ClassValue,
    EnumMember,
    Instance,
    ModuleValue,
    ObjectRef,
    Received,
    SharedObject,
    Super,
)
from analyzer.static.values.operators import binary, compare, from_python, text_method, unary
from analyzer.static.values.value import (
    LOST,
    UNKNOWN,
    Lost,
    Method,
    OneOf,
    Unknown,
    Value,
    agreed,
    alternatives,
    any_of,
    join,
    mapped,
)

__all__ = [
    "COMM",
    "GROWING",
    "LOST",
    "NONE",
    "RACED",
    "UNKNOWN",
    "Awaitable",
    "ClassValue",
    "Closure",
    "Comm",
    "Const",
    "CopyFuture",
    "Coroutine",
    "DictRef",
    "EnumMember",
    "ExitStack",
    "External",
    "Function",
    "FunctionValue",
    "Future",
    "Generator",
    "Group",
    "Instance",
    "Leaving",
    "ListRef",
    "Lost",
    "Many",
    "MapValue",
    "Mark",
    "Marked",
    "Method",
    "ModuleValue",
    "Namespace",
    "ObjectRef",
    "OneOf",
    "Partial",
    "Raced",
    "Received",
    "Semaphore",
    "SetRef",
    "Setting",
    "SharedObject",
    "Slot",
    "Super",
    "Suppressing",
    "TupleValue",
    "Unknown",
    "Value",
    "added_to",
    "agreed",
    "alternatives",
    "answer",
    "any_of",
    "binary",
    "compare",
    "distinct",
    "from_python",
    "item_of",
    "join",
    "joined_many",
    "keyed",
    "mapped",
    "mark_of",
    "negated",
    "text_method",
    "tuple_of",
    "unary",
    "unmarked",
]
