"""Arguments of an endpoint method: values of the request, converted as type hints say.

``def show(self, comm, order_id: int, verbose: bool = False)``: a parameter whose name stands in the path
comes from there. One whose type is a structure (msgspec Struct, dataclass, TypedDict, dict, list of such) is
the body; there can be one. All others come from the query string, or from the JSON object or form that is the
body if no parameter is it.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mup.errors import DeploymentError
from mup.runtime.endpoint.content import FORMS, BadRequestError, Content
from mup.service import MS, EndpointInfo

__all__ = ["Arguments", "Parameter", "arguments_of"]

_STRUCTURES = (
    msgspec.inspect.StructType,
    msgspec.inspect.DataclassType,
    msgspec.inspect.TypedDictType,
    msgspec.inspect.NamedTupleType,
    msgspec.inspect.DictType,
)
_SEQUENCES = (
    msgspec.inspect.ListType,
    msgspec.inspect.SetType,
    msgspec.inspect.FrozenSetType,
    msgspec.inspect.VarTupleType,
)
_TEXTS = (
    msgspec.inspect.StrType,
    msgspec.inspect.BytesType,
    msgspec.inspect.ByteArrayType,
    msgspec.inspect.AnyType,
    msgspec.inspect.RawType,
)
_FLAGS = {"on": "true", "yes": "true", "off": "false", "no": "false"}
"""What forms say for truth values, as msgspec reads it: browsers send ``on`` for a box that is checked."""
_AT = re.compile(r"^(.*) - at (?:`key` in )?`\$(.*)`$", re.DOTALL)
_FIELD = re.compile(r"^Object (?:missing required|contains unknown) field `(.*)`$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TextReader:
    """How the texts of query strings and forms become one value.

    Attributes:
        many: Whether it takes all texts of its name; else the last one counts.
        flag: Whether it is a truth value.
        blank: Whether an empty text is a value. Else it is as good as none: browsers send it for fields
            that were left empty.
    """

    many: bool = False
    flag: bool = False
    blank: bool = True

    def read(self, texts: list[str]) -> Any:
        """Return the value, or None if there is none."""
        if texts[-1] and not (self.many or self.flag):
            return texts[-1]
        if not self.blank:
            texts = [text for text in texts if text]
        if self.flag:
            texts = [_FLAGS.get(text.lower(), text) for text in texts]
        if self.many:
            return texts or None
        return texts[-1] if texts else None


_PLAIN = TextReader()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an endpoint method.

    Attributes:
        name: Of the parameter, and of what it is filled with.
        type: Its hint; ``Any`` without one.
        required: Whether it has no default.
        default: The default, if it has one.
        reader: Of its texts.
    """

    name: str
    type: Any
    required: bool
    default: Any
    reader: TextReader


class Arguments:
    """The parameters of one endpoint method, behind ``self`` and ``comm``.

    Attributes:
        path: Those that stand in the path.
        simple: Those from query string, JSON object or form.
        body: The one that is the body, if there is one.
    """

    def __init__(
        self, path: tuple[Parameter, ...], simple: tuple[Parameter, ...], body: Parameter | None
    ) -> None:
        self.path = path
        self.simple = simple
        self.body = body
        if body is not None:
            self._decode = msgspec.json.Decoder(body.type).decode
            self._readers = _field_readers(msgspec.inspect.type_info(body.type))

    def every(self) -> list[Parameter]:
        """Return all of them."""
        return [*self.path, *self.simple, *([self.body] if self.body else [])]

    def values(self, content: Content) -> dict[str, Any]:
        """Return what to call the method with.

        Raises:
            BadRequestError: Something is missing or of the wrong type; it names the field.
        """
        values: dict[str, Any] = {}
        for parameter in self.path:
            values[parameter.name] = _converted(parameter, content.path_values[parameter.name], strict=False)
        if self.body is not None:
            self._take_body(content, self.body, values)
        if self.simple:
            self._take_simple(content, values)
        return values

    def _take_body(self, content: Content, parameter: Parameter, values: dict[str, Any]) -> None:
        if not content.body:
            if parameter.required:
                raise BadRequestError("the request needs a body")
            values[parameter.name] = parameter.default
        elif content.is_json or not content.kind:
            content.check_encoding()
            try:
                values[parameter.name] = self._decode(content.body)
            except msgspec.ValidationError as error:
                raise _bad(error, "") from error
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise BadRequestError(f"the body is not JSON: {error}") from error
        elif content.kind in FORMS:
            fields: dict[str, Any] = {}
            for name, texts in _by_name(content.form()).items():
                value = self._readers.get(name, _PLAIN).read(texts)
                if value is not None:
                    fields[name] = value
            try:
                values[parameter.name] = msgspec.convert(fields, type=parameter.type, strict=False)
            except msgspec.ValidationError as error:
                raise _bad(error, "") from error
        else:
            raise BadRequestError(f"the body must be JSON or a form, not {content.kind!r}", status=415)

    def _take_simple(self, content: Content, values: dict[str, Any]) -> None:
        texts = _by_name(content.query)
        known: Mapping[str, Any] = {}
        if self.body is None and content.body:
            if content.is_json:
                decoded = content.json()
                known = decoded if isinstance(decoded, dict) else {}
            else:
                texts.update(_by_name(content.form()))
        for parameter in self.simple:
            name = parameter.name
            if name in known:
                values[name] = _converted(parameter, known[name], strict=True)
            elif name in texts and (value := parameter.reader.read(texts[name])) is not None:
                values[name] = _converted(parameter, value, strict=False)
            elif parameter.required:
                raise BadRequestError(f"missing required field `{name}`", name)


def arguments_of(service: type[MS], endpoint: EndpointInfo, names: tuple[str, ...]) -> Arguments | None:
    """Return how to call an endpoint's method; None = with ``comm`` alone.

    Args:
        service: Class of the service.
        endpoint: Of the service.
        names: Parameters of its path.

    Raises:
        DeploymentError: A parameter cannot be filled; the message names it.
    """
    function = _called(getattr(service, endpoint.method))
    where = f"{service.__module__}.{service.__qualname__}.{endpoint.method}"
    every = list(inspect.signature(function, follow_wrapped=False).parameters.values())
    # self and comm come first.
    declared = [p for p in every[2:] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not declared:
        return None
    hints = _hints(function, [p.name for p in declared], where)
    path, simple, bodies = [], [], []
    for parameter in declared:
        if parameter.kind == parameter.POSITIONAL_ONLY:
            raise DeploymentError(f"parameter {parameter.name!r} cannot be positional-only", where=where)
        kind = hints.get(parameter.name, Any)
        info = _type_info(kind, parameter.name, where)
        required = parameter.default is parameter.empty
        described = Parameter(
            parameter.name,
            kind,
            required,
            None if required else parameter.default,
            _reader(info),
        )
        if parameter.name in names:
            path.append(described)
        elif _is_structure(info):
            bodies.append(described)
        else:
            simple.append(described)
    if len(bodies) > 1:
        both = " and ".join(repr(p.name) for p in bodies)
        raise DeploymentError(
            f"only one parameter can be the body, not {both}", where=where, hint="put them into one Struct"
        )
    return Arguments(tuple(path), tuple(simple), bodies[0] if bodies else None)


def _called(function: Any) -> Any:
    """Return the function whose parameters an endpoint has.

    Not always what ``functools.wraps`` names: a wrapper without ``**kwargs`` takes nothing that it does not
    name itself, and what it wraps may have parameters that it fills (``def wrapper(self, comm)`` around
    ``def place(self, comm, user)``).
    """
    while hasattr(function, "__wrapped__") and _passes_on(function):
        function = function.__wrapped__
    return function


def _passes_on(wrapper: Any) -> bool:
    """Return whether a wrapper may be given what it does not name."""
    try:
        own = inspect.signature(wrapper, follow_wrapped=False)
    except ValueError:
        # Written in C, such as that of lru_cache.
        return True
    return any(p.kind is p.VAR_KEYWORD for p in own.parameters.values())


def _hints(function: Any, names: list[str], where: str) -> dict[str, Any]:
    """Return the hints of some parameters; those of others may name what exists for type checkers only."""
    # functools.wraps hands on hints with the names of the module of what is wrapped.
    function = inspect.unwrap(function)
    annotations = {n: hint for n, hint in function.__annotations__.items() if n in names}
    try:
        return typing.get_type_hints(
            types.SimpleNamespace(__annotations__=annotations), function.__globals__, include_extras=True
        )
    except (NameError, TypeError, SyntaxError) as error:
        raise DeploymentError(
            f"a type hint cannot be used: {error}",
            where=where,
            hint="types of parameters must be importable at run time, not under TYPE_CHECKING",
        ) from error


def _type_info(kind: Any, name: str, where: str) -> msgspec.inspect.Type:
    problem = ""
    try:
        info = msgspec.inspect.type_info(kind)
        msgspec.json.Decoder(kind)
    except (TypeError, NameError) as error:
        problem = str(error)
    else:
        if not any(isinstance(part, msgspec.inspect.CustomType) for part in _parts(info)):
            return info
    raise DeploymentError(
        f"parameter {name!r} cannot have type {kind!r}" + (f": {problem}" if problem else ""),
        where=where,
        hint="use builtin types, msgspec Structs, dataclasses or TypedDicts",
    )


def _parts(info: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, ...]:
    if isinstance(info, msgspec.inspect.UnionType):
        return tuple(part for kind in info.types for part in _parts(kind))
    return _parts(info.type) if isinstance(info, msgspec.inspect.Metadata) else (info,)


def _is_structure(info: msgspec.inspect.Type) -> bool:
    return any(
        isinstance(part, _STRUCTURES) or (isinstance(part, _SEQUENCES) and _is_structure(part.item_type))
        for part in _parts(info)
    )


def _reader(info: msgspec.inspect.Type) -> TextReader:
    """Return how texts are read whose value has a type."""
    parts = _parts(info)
    many = any(isinstance(part, (*_SEQUENCES, msgspec.inspect.TupleType)) for part in parts)
    single = [inner for part in parts for inner in _parts_of_items(part)]
    texts = any(isinstance(part, _TEXTS) for part in single)
    flag = not texts and any(isinstance(part, msgspec.inspect.BoolType) for part in single)
    named = any("" in _named_values(part) for part in single)
    return TextReader(many, flag, texts or flag or named)


def _field_readers(info: msgspec.inspect.Type) -> dict[str, TextReader]:
    """Return how texts are read that are fields of a structure, by name."""
    fields = [field for part in _parts(info) for field in getattr(part, "fields", ())]
    return {field.encode_name: _reader(field.type) for field in fields}


def _parts_of_items(part: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, ...]:
    """Return the types of what a sequence has in it; of anything else, the type itself."""
    if isinstance(part, _SEQUENCES):
        return _parts(part.item_type)
    if isinstance(part, msgspec.inspect.TupleType):
        return tuple(inner for item in part.item_types for inner in _parts(item))
    return (part,)


def _named_values(part: msgspec.inspect.Type) -> tuple[Any, ...]:
    """Return the values of a type that consists of some."""
    if isinstance(part, msgspec.inspect.LiteralType):
        return part.values
    return tuple(member.value for member in part.cls) if isinstance(part, msgspec.inspect.EnumType) else ()


def _by_name(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for name, text in pairs:
        texts.setdefault(name, []).append(text)
    return texts


def _converted(parameter: Parameter, value: Any, *, strict: bool) -> Any:
    try:
        return msgspec.convert(value, type=parameter.type, strict=strict)
    except msgspec.ValidationError as error:
        raise _bad(error, parameter.name) from error


def _bad(error: msgspec.ValidationError, parent: str) -> BadRequestError:
    """Return msgspec's message with the path of the field apart from it."""
    message, path = str(error), ""
    match = _AT.match(message)
    if match:
        message, path = match[1], match[2]
    missing = _FIELD.match(message)
    if missing:
        path += f".{missing[1]}"
    field = f"{parent}{path}" if parent else path.removeprefix(".")
    return BadRequestError(message, field)
