"""Functions, constants and kinds of the compiled modules, read without importing them.

Installing mup compiles it before what it needs (numpy, ...) is there, so sources are read, not imported.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from mup.native.kinds import BOOL, ELEMENTS, F64, I64, NOTHING, U64, Array, Kind, Record

__all__ = ["Function", "Module", "Refusal", "Sources", "Word"]

DECORATORS: Final = ("compiled", "compiled_sums", "internal", "inlined")
"""Names of the decorators of functions that are compiled."""

HERE: Final = Path(__file__).parents[2]
"""Where this package is: what describes kinds is found there in any case."""

MASK: Final = (1 << 64) - 1
NUMPY_TYPES: Final = {
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "float64": "f64",
}


class Refusal(Exception):  # noqa: N818 - it refuses something
    """A construct that cannot be compiled; says where it is."""


class Word(int):
    """An unsigned whole number of 64 bits."""

    __slots__ = ()


@dataclass(slots=True)
class Function:
    """A function that is to be compiled."""

    module: Module
    node: ast.FunctionDef
    decorator: str

    @property
    def name(self) -> str:
        """Its name, without the module's."""
        return self.node.name


@dataclass(slots=True)
class Module:
    """What a source file defines."""

    name: str
    path: Path
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    def refusal(self, node: ast.AST, why: str) -> Refusal:
        """Return why something in this module cannot be compiled."""
        return Refusal(f"{self.path}:{getattr(node, 'lineno', 1)}: {why}")

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        """Say why something in this module cannot be compiled."""
        raise self.refusal(node, why)


class Sources:
    """Modules by name, each of them read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: dict[str, Module] = {}

    def module(self, name: str) -> Module | None:
        """Return a module of this distribution; None if there is none of the name."""
        if name not in self.modules:
            for root in (self.root, HERE):
                path = root.joinpath(*name.split("."))
                file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
                if file.is_file():
                    self.modules[name] = _read(name, file)
                    break
        return self.modules.get(name)

    def home(self, module: Module, name: str) -> tuple[Module, str] | None:
        """Return where a name that a module uses is defined, and as what."""
        if name in module.functions or name in module.values or name in module.classes:
            return module, name
        if name in module.imported:
            source, original = module.imported[name]
            other = self.module(source)
            return self.home(other, original) if other is not None else None
        for star in module.stars:
            other = self.module(star)
            if other is not None and (found := self.home(other, name)) is not None:
                return found
        return None

    def constant(self, module: Module, name: str) -> float | Word | None:
        """Return the number a name stands for; None if it stands for none."""
        found = self.home(module, name)
        if found is None or found[1] not in found[0].values:
            return None
        number: float | Word | None = self._number(found[0], found[0].values[found[1]])
        return number

    def _number(self, module: Module, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.Name(id=name):
                return self.constant(module, name)
            case ast.Attribute(value=ast.Name(id="np" | "math"), attr=name):
                return {"inf": math.inf, "pi": math.pi, "nan": math.nan}.get(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="uint64"), args=[value]):
                number = self._number(module, value)
                return None if number is None else Word(number & MASK)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._number(module, operand)
                return None if number is None else -number
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self._number(module, left), self._number(module, right)
                if a is None or b is None or type(op) not in _ARITHMETIC:
                    return None
                return _ARITHMETIC[type(op)](a, b)
        return None

    def kind(self, module: Module, node: ast.expr | None) -> Kind | None:
        """Return the kind an annotation stands for; None if it leaves that open."""
        match node:
            case None:
                return None
            case ast.Constant(value=None):
                return NOTHING
            case ast.Constant(value=str() as text):
                return self.kind(module, ast.parse(text, mode="eval").body)
            case ast.Name(id="int"):
                return I64
            case ast.Name(id="float"):
                return F64
            case ast.Name(id="bool"):
                return BOOL
            case ast.Name(id=name):
                found = self.home(module, name)
                if found is None:
                    return None
                home, original = found
                if original in home.classes:
                    return self._record(home, home.classes[original])
                return self.kind(home, home.values.get(original))
            case ast.Subscript(
                value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[array, ast.Tuple(elts=lengths)])
            ):
                element = self._element(module, array)
                if element is None:
                    module.refuse(node, "an array of elements of no known kind")
                numbers = [self._number(module, length) for length in lengths]
                return Array(element, tuple(int(n) if n else None for n in numbers))
            case ast.Subscript(
                value=ast.Name(id="Annotated"),
                slice=ast.Tuple(elts=[_, ast.Attribute(value=ast.Name(id="np"), attr="uint64")]),
            ):
                return U64
        return None

    def _element(self, module: Module, node: ast.expr) -> str | None:
        """Return the elements of ``npt.NDArray[np.float64]``, or of a name that stands for such a kind."""
        match node:
            case ast.Name(id=name):
                found = self.home(module, name)
                if found is None or found[1] not in found[0].values:
                    return None
                return self._element(found[0], found[0].values[found[1]])
            case ast.Subscript(slice=ast.Attribute(value=ast.Name(id="np"), attr=name)):
                element = NUMPY_TYPES.get(name)
                return element if element in ELEMENTS else None
        return None

    def _record(self, module: Module, node: ast.ClassDef) -> Record:
        fields = []
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                kind = self.kind(module, item.annotation)
                if kind is None:
                    module.refuse(item, f"{node.name}.{item.target.id}: needs Annotated[array, (lengths)]")
                fields.append((item.target.id, kind))
        return Record(node.name, tuple(fields))


_ARITHMETIC: Final[dict[type[ast.operator], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: lambda a, b: a**b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitAnd: lambda a, b: a & b,
}


def _read(name: str, path: Path) -> Module:
    module = Module(name, path)
    for node in _statements(ast.parse(path.read_text(encoding="utf-8"), str(path)).body):
        match node:
            case ast.FunctionDef(decorator_list=[ast.Name(id=decorator)]) if decorator in DECORATORS:
                module.functions[node.name] = Function(module, node, decorator)
            case ast.ClassDef():
                module.classes[node.name] = node
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                module.values[target] = value
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                module.values[target] = value
            case ast.ImportFrom(module=str() as source, names=names):
                for alias in names:
                    if alias.name == "*":
                        module.stars.append(source)
                    else:
                        module.imported[alias.asname or alias.name] = (source, alias.name)
    return module


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, those that only type checkers see included."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _statements(node.body)
        else:
            yield node
