"""Translate a function of the compiled part of Python into C.

Every function is translated once per combination of kinds it is called with. Kinds of local
variables follow from what is assigned to them: a name has one kind in the whole function, and holds floating
point numbers if it ever does. Arithmetic is Python's: the same operations in the same order, whole numbers of
64 bits that wrap around, ``//`` and ``%`` that round down, and indices from 0 on (of negative ones, only
literals count from the end).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

from mup.native.kinds import BOOL, F64, I64, NOTHING, U64, Array, Kind, Record, Scalar, Tuple, merged
from mup.native.subset import Function, Refusal, Word

__all__ = ["Program", "Translation"]

NUMBERS: Final = (BOOL, I64, F64)

MATHEMATICS: Final = {
    "log": "log",
    "log1p": "log1p",
    "exp": "exp",
    "sqrt": "sqrt",
    "erfc": "erfc",
    "lgamma": "lgamma",
}

OPERATORS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}

COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}

NEW_ELEMENTS: Final = {"int64": "i64", "float64": "f64", "uint64": "u64"}

Value = tuple[str, Kind]
"""An expression in C, and its kind."""


class Program:
    """What a translation may ask of the whole: other functions, constants, and kinds of arrays and pairs."""

    checked: bool

    def call(self, caller: Function, name: str, kinds: Sequence[Kind]) -> tuple[str, Translation] | None:
        """Return the name in C of a function called with arguments of some kinds; None if there is none."""
        raise NotImplementedError

    def constant(self, function: Function, name: str) -> float | Word | None:
        """Return the number that a global name stands for."""
        raise NotImplementedError

    def annotated(self, function: Function, node: ast.expr | None) -> Kind | None:
        """Return what an annotation says."""
        raise NotImplementedError

    def use(self, kind: Kind) -> str:
        """Return the C type of a kind, which will be declared."""
        raise NotImplementedError


class Translation:
    """One function with arguments of given kinds.

    Attributes:
        result_kind: Of what it returns.
        body: Its statements in C, without declarations.
        allocates: It creates arrays.
    """

    def __init__(self, program: Program, function: Function, kinds: Sequence[Kind]) -> None:
        self._program = program
        self._function = function
        arguments = [a.arg for a in function.node.args.args]
        self.arguments = dict(zip(arguments, kinds, strict=True))
        self.locals: dict[str, Kind] = dict(self.arguments)
        self.result_kind: Kind = NOTHING
        self.body: list[str] = []
        self.allocates = False
        self._counted = 0
        self._kinds_known = False
        self._infer()
        self._kinds_known = True
        self._run()

    def _infer(self) -> None:
        """Find the kinds of all names: until another pass finds nothing new."""
        while True:
            before, returned = dict(self.locals), self.result_kind
            self._run()
            if before == self.locals and returned == self.result_kind:
                return

    def _run(self) -> None:
        self.body, self._depth, self._counted = [], 1, 0
        self._block(self._function.node.body)

    def _refusal(self, node: ast.AST, why: str) -> Refusal:
        return self._function.module.refusal(node, f"{self._function.name}: {why}")

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        raise self._refusal(node, why)

    # Statements.

    def _emit(self, line: str) -> None:
        self.body.append("    " * self._depth + line)

    def _fresh(self) -> str:
        self._counted += 1
        return f"t{self._counted}"

    def _block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _nested(self, head: str, statements: Iterable[ast.stmt]) -> None:
        self._emit(head + " {")
        self._depth += 1
        self._block(statements)
        self._depth -= 1
        self._emit("}")

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self._emit(f"{self._value(call)[0]};")
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign([target], value)
            case ast.AugAssign(target=target, op=op, value=value):
                # ``x += y`` is ``x = x + y``: what it is assigned to has no effects of its own.
                read = ast.copy_location(_as_read(target), target)
                self._assign([target], ast.copy_location(ast.BinOp(read, op, value), node))
            case ast.If(test=test, body=body, orelse=orelse):
                self._nested(f"if ({self._test(test)})", body)
                if orelse:
                    self._nested("else", orelse)
            case ast.While(test=test, body=body, orelse=[]):
                self._nested(f"while ({self._test(test)})", body)
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]),
                body=body,
                orelse=[],
            ):
                self._for(node, name, bounds, body)
            case ast.Break():
                self._emit("break;")
            case ast.Continue():
                self._emit("continue;")
            case ast.Return(value=value):
                self._return(node, value)
            case _:
                self._refuse(node, f"compiled code has no such statement: {ast.unparse(node)[:60]!r}")

    def _for(self, node: ast.stmt, name: str, bounds: list[ast.expr], body: list[ast.stmt]) -> None:
        whole = [self._as(I64, bound) for bound in bounds]
        first, end = ("INT64_C(0)", whole[0]) if len(whole) == 1 else (whole[0], whole[1])
        step = 1
        if len(bounds) == 3:
            number = self._literal(bounds[2])
            if not isinstance(number, int) or number == 0:
                self._refuse(node, "the step of a range must be a number that is written there")
            step = number
        at, stop = self._fresh(), self._fresh()
        self._bind(node, name, I64)
        compare = "<" if step > 0 else ">"
        self._emit(f"for (int64_t {at} = {first}, {stop} = {end}; {at} {compare} {stop}; {at} += {step}) {{")
        self._depth += 1
        self._emit(f"{name}_ = {at};")
        self._block(body)
        self._depth -= 1
        self._emit("}")

    def _return(self, node: ast.Return, value: ast.expr | None) -> None:
        if value is None:
            self._emit("return;")
            return
        found = self._value(value)
        kind = found[1]
        if self.result_kind != NOTHING:
            both = merged(self.result_kind, kind)
            if both is None:
                self._refuse(node, f"returns {kind} here and {self.result_kind} elsewhere")
            kind = both
        self.result_kind = kind
        self._emit(f"return {self._converted(node, self._retupled(value, found, kind), kind)};")

    def _retupled(self, node: ast.expr, found: Value, kind: Kind) -> Value:
        """Write a tuple anew as one of another kind."""
        if not (isinstance(kind, Tuple) and isinstance(node, ast.Tuple) and found[1] != kind):
            return found
        parts = [self._as(part, item) for part, item in zip(kind.parts, node.elts, strict=True)]
        return f"({self._program.use(kind)}){{{', '.join(parts)}}}", kind

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        if len(targets) > 1:
            for target in targets:
                self._assign([target], value)
            return
        target = targets[0]
        if not isinstance(target, ast.Tuple):
            self._store(target, self._value(value))
            return
        sources: list[Value] = []
        if isinstance(value, ast.Tuple):
            for item in value.elts:
                source = self._value(item)
                name = self._fresh()
                self._emit(f"{self._program.use(source[1])} {name} = {source[0]};")
                sources.append((name, source[1]))
        elif isinstance(value, ast.Attribute) and value.attr == "shape":
            array, kind = self._array(value.value)
            sources = [(_length(array, kind, axis), I64) for axis in range(len(kind.shape))]
        else:
            whole, kinds = self._value(value)
            if not isinstance(kinds, Tuple):
                self._refuse(value, "has one value only")
            name = self._fresh()
            self._emit(f"{self._program.use(kinds)} {name} = {whole};")
            sources = [(f"{name}.e{i}", part) for i, part in enumerate(kinds.parts)]
        if len(sources) != len(target.elts):
            self._refuse(value, f"{len(sources)} values for {len(target.elts)} names")
        for one, source in zip(target.elts, sources, strict=True):
            self._store(one, source)

    def _store(self, target: ast.expr, source: Value) -> None:
        if isinstance(target, ast.Name):
            if target.id == "_":
                return
            kind = self._bind(target, target.id, source[1])
            self._emit(f"{target.id}_ = {self._converted(target, source, kind)};")
        elif isinstance(target, ast.Subscript):
            place, element = self._element(target)
            if element.loaded == F64:
                text = self._converted(target, source, F64)
            elif element.loaded == U64:
                text = self._converted(target, source, U64)
            else:
                text = self._converted(target, source, I64)
                if element.element != "i64":
                    text = f"({Scalar(element.element).c})({text})"
            self._emit(f"{place} = {text};")
        else:
            self._refuse(target, "compiled code assigns to names and to elements of arrays")

    def _bind(self, node: ast.AST, name: str, kind: Kind) -> Kind:
        """Note what a name holds; return the kind it has in the whole function."""
        known = self.locals.get(name)
        if known is None:
            self.locals[name] = kind
            return kind
        both = merged(known, kind)
        if both is None:
            self._refuse(node, f"{name} would hold {kind} here and {known} elsewhere")
        if both != known:
            if self._kinds_known:
                self._refuse(node, f"{name}: kinds do not converge")
            self.locals[name] = both
        return both

    # Expressions.

    def _as(self, kind: Kind, node: ast.expr) -> str:
        return self._converted(node, self._value(node), kind)

    def _converted(self, node: ast.AST, value: Value, kind: Kind) -> str:
        """Return an expression as one of another kind."""
        text, own = value
        if own == kind or (isinstance(own, Array) and isinstance(kind, Array) and own.c == kind.c):
            return text
        if own in NUMBERS and kind in NUMBERS:
            if kind == F64:
                return f"(double)({text})"
            if kind == I64 and own == BOOL:
                return f"(int64_t)({text})"
        if not self._kinds_known:
            return text
        raise self._refusal(node, f"needs {kind}, not {own}")

    def _test(self, node: ast.expr) -> str:
        """Return a condition: what is not 0 is true."""
        match node:
            case ast.BoolOp(op=op, values=values):
                return (" && " if isinstance(op, ast.And) else " || ").join(
                    f"({self._test(value)})" for value in values
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!({self._test(operand)})"
            case ast.Constant(value=True):
                return "1"
        text, kind = self._value(node)
        if not isinstance(kind, Scalar):
            self._refuse(node, "only numbers are true or false")
        return text if kind == BOOL else f"{text} != 0"

    def _literal(self, node: ast.expr) -> int | float | None:
        """Return the number that is written somewhere."""
        match node:
            case ast.Constant(value=bool()):
                return None
            case ast.Constant(value=int() | float() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._literal(operand)
                return None if number is None else -number
        return None

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return _number(number)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.BinOp():
                return self._arithmetic(node)
            case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
                if isinstance(node, ast.BoolOp):
                    for value in node.values:
                        if self._value(value)[1] != BOOL:
                            self._refuse(node, "its parts must be true or false")
                return f"({self._test(node)})", BOOL
            case ast.UnaryOp(op=op, operand=operand):
                text, kind = self._value(operand)
                if kind == BOOL:
                    kind = I64
                return f"({'-' if isinstance(op, ast.USub) else '~'}({text}))", kind
            case ast.Compare():
                return self._comparison(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                yes, no = self._value(body), self._value(orelse)
                kind_ = merged(yes[1], no[1])
                if kind_ is None:
                    self._refuse(node, f"is {yes[1]} or {no[1]}")
                a, b = self._converted(body, yes, kind_), self._converted(orelse, no, kind_)
                return f"(({self._test(test)}) ? {a} : {b})", kind_
            case ast.Call():
                return self._call(node)
            case ast.Tuple(elts=items):
                values = [self._value(item) for item in items]
                parts = Tuple(tuple(kind for _, kind in values))
                return f"({self._program.use(parts)}){{{', '.join(text for text, _ in values)}}}", parts
        raise self._refusal(node, f"compiled code has no such expression: {ast.unparse(node)[:60]!r}")

    def _name(self, node: ast.expr, name: str) -> Value:
        if name in self.locals:
            return f"{name}_", self.locals[name]
        number = self._program.constant(self._function, name)
        if number is None:
            self._refuse(node, f"{name} is no number, and has no value here")
        return _number(number)

    def _attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id not in self.locals:
            constant = {"inf": math.inf, "pi": math.pi}.get(node.attr)
            if constant is not None:
                return _number(constant)
        text, kind = self._value(node.value)
        if isinstance(kind, Record):
            field = kind.field(node.attr)
            if isinstance(field, Record):
                return f"(&{text}->{node.attr})", field
            if field is not None:
                return f"{text}->{node.attr}", field
        raise self._refusal(node, f"has no {node.attr}")

    def _array(self, node: ast.expr) -> tuple[str, Array]:
        text, kind = self._value(node)
        if not isinstance(kind, Array):
            self._refuse(node, "is no array")
        return text, kind

    def _subscript(self, node: ast.Subscript) -> Value:
        match node:
            case ast.Subscript(value=ast.Attribute(value=array, attr="shape"), slice=index):
                text, kind = self._array(array)
                axis = self._literal(index)
                if not isinstance(axis, int):
                    self._refuse(node, "which length must be a number that is written there")
                return _length(text, kind, axis), I64
            case ast.Subscript(
                value=ast.Call(
                    func=ast.Attribute(value=array, attr="view"), args=[ast.Attribute(attr="uint64")]
                )
            ):
                read = ast.copy_location(ast.Subscript(array, node.slice, ast.Load()), node)
                place, _ = self._element(read)
                return f"word_of({place})", U64
        base, kind = self._array(node.value)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(indices) == len(kind.shape) and not isinstance(indices[-1], ast.Slice):
            place, element = self._element(node)
            loaded = element.loaded
            return (f"(int64_t){place}" if loaded == I64 and element.element != "i64" else place), loaded
        if len(indices) > len(kind.shape):
            self._refuse(node, f"{len(indices)} indices for {len(kind.shape)} dimensions")
        return self._view(node, base, kind, indices)

    def _element(self, node: ast.Subscript) -> tuple[str, Array]:
        """Return where an element of an array is."""
        base, kind = self._array(node.value)
        if not (base.isidentifier() or "->" in base):
            self._refuse(node, "a part of an array needs a name before its elements are used")
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(indices) != len(kind.shape):
            self._refuse(node, f"{len(indices)} indices for {len(kind.shape)} dimensions")
        return f"{base}.p[{self._offset(base, kind, indices)}]", kind

    def _offset(self, base: str, kind: Array, indices: Sequence[ast.expr]) -> str:
        """Return how many elements lie before the one (or the part) with these leading indices."""
        offset = ""
        for axis, index in enumerate(indices):
            place = self._index(base, kind, axis, index)
            length = _length(base, kind, axis)
            offset = f"({offset}) * {length} + {place}" if offset else place
        for axis in range(len(indices), len(kind.shape)):
            offset = f"({offset}) * {_length(base, kind, axis)}"
        return offset

    def _index(self, base: str, kind: Array, axis: int, node: ast.expr) -> str:
        written = self._literal(node)
        text = self._as(I64, node)
        if isinstance(written, int) and written < 0:
            text = f"({_length(base, kind, axis)} - {-written})"
        if self._program.checked:
            where = f'"{self._function.module.name}:{getattr(node, "lineno", 0)}"'
            return f"within({text}, {_length(base, kind, axis)}, {where})"
        return f"({text})"

    def _view(self, node: ast.Subscript, base: str, kind: Array, indices: Sequence[ast.expr]) -> Value:
        """Return a part of an array: leading indices, then perhaps a range of places."""
        ranged = indices[-1] if isinstance(indices[-1], ast.Slice) else None
        leading = list(indices[:-1] if ranged is not None else indices)
        axis = len(leading)
        offset = self._offset(base, kind, leading) if leading else "INT64_C(0)"
        lengths = [_length(base, kind, i) for i in range(axis, len(kind.shape))]
        shape = list(kind.shape[axis:])
        if ranged is not None:
            if ranged.step is not None:
                self._refuse(node, "parts of arrays have no steps")
            low = "INT64_C(0)" if ranged.lower is None else self._as(I64, ranged.lower)
            high = lengths[0] if ranged.upper is None else self._as(I64, ranged.upper)
            if self._program.checked:
                where = f'"{self._function.module.name}:{node.lineno}"'
                high = f"within({high}, {lengths[0]} + 1, {where})"
            inner = " * ".join(f"({length})" for length in lengths[1:])
            offset = f"{offset} + ({low})" + (f" * {inner}" if inner else "")
            lengths[0], shape[0] = f"({high}) - ({low})", None
        view = Array(kind.element, tuple(shape))
        return f"({self._program.use(view)}){{{base}.p + {offset}, {', '.join(lengths)}}}", view

    def _arithmetic(self, node: ast.BinOp) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        op = type(node.op)
        if not isinstance(left[1], Scalar) or not isinstance(right[1], Scalar):
            self._refuse(node, "arithmetic is for numbers")
        if U64 in (left[1], right[1]):
            if left[1] != right[1] or op not in OPERATORS:
                self._refuse(node, "np.uint64 goes with np.uint64 only, and has no division")
            return f"({left[0]} {OPERATORS[op]} {right[0]})", U64
        kind = F64 if F64 in (left[1], right[1]) or op is ast.Div else I64
        a, b = (self._converted(node, value, kind) for value in (left, right))
        if op is ast.Div:
            return f"(({a}) / ({b}))", F64
        if op in (ast.FloorDiv, ast.Mod):
            if kind == F64:
                self._refuse(node, "divides whole numbers only")
            return f"{'floored' if op is ast.FloorDiv else 'modulo'}({a}, {b})", I64
        if op is ast.Pow:
            if self._literal(node.right) == 2:
                return f"square_{kind.name}({a})", kind
            return f"pow({self._converted(node, left, F64)}, {self._converted(node, right, F64)})", F64
        if op not in OPERATORS or (kind == F64 and op not in (ast.Add, ast.Sub, ast.Mult)):
            self._refuse(node, f"compiled code has no such operation: {ast.unparse(node)[:60]!r}")
        return f"({a} {OPERATORS[op]} {b})", kind

    def _comparison(self, node: ast.Compare) -> Value:
        values = [node.left, *node.comparators]
        parts = []
        for left, op, right in zip(values, node.ops, values[1:], strict=False):
            if isinstance(op, ast.In) and isinstance(right, ast.Tuple):
                same = [ast.copy_location(ast.Compare(left, [ast.Eq()], [one]), node) for one in right.elts]
                parts.append("(" + " || ".join(self._value(one)[0] for one in same) + ")")
                continue
            a, b = self._value(left), self._value(right)
            if type(op) not in COMPARISONS:
                self._refuse(node, f"compiled code has no such comparison: {ast.unparse(node)[:60]!r}")
            if U64 in (a[1], b[1]) and a[1] != b[1]:
                zero = self._literal(right if a[1] == U64 else left) == 0
                if not zero:
                    self._refuse(node, "np.uint64 is compared with np.uint64, or with 0")
            elif a[1] != b[1]:
                kind = merged(a[1], b[1])
                if kind is None:
                    self._refuse(node, f"compares {a[1]} with {b[1]}")
                a, b = (self._converted(left, a, kind), kind), (self._converted(right, b, kind), kind)
            parts.append(f"({a[0]} {COMPARISONS[type(op)]} {b[0]})")
        return (parts[0] if len(parts) == 1 else f"({' && '.join(parts)})"), BOOL

    # Calls.

    def _call(self, node: ast.Call) -> Value:
        match node.func:
            case ast.Name(id=name) if name in _BUILTINS:
                return self._builtin(node, name)
            case ast.Name(id=name):
                return self._function_call(node, name)
            case ast.Attribute(value=ast.Name(id="math"), attr="floor"):
                return f"(int64_t)floor({self._as(F64, node.args[0])})", I64
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if name in MATHEMATICS:
                arguments = ", ".join(self._as(F64, argument) for argument in node.args)
                return f"{MATHEMATICS[name]}({arguments})", F64
            case ast.Attribute(value=ast.Name(id="np"), attr="uint64"):
                text, kind = self._value(node.args[0])
                if kind not in (I64, U64, BOOL):
                    self._refuse(node, "only whole numbers become np.uint64")
                return f"(uint64_t)({text})", U64
            case ast.Attribute(value=ast.Name(id="np"), attr="empty" | "zeros" as name):
                return self._created(node, zeros=name == "zeros")
        raise self._refusal(node, f"compiled code cannot call this: {ast.unparse(node)[:60]!r}")

    def _builtin(self, node: ast.Call, name: str) -> Value:
        if name == "len":
            text, kind = self._array(node.args[0])
            return _length(text, kind, 0), I64
        if name == "bool":
            return f"({self._test(node.args[0])})", BOOL
        values = [self._value(argument) for argument in node.args]
        if any(kind not in NUMBERS for _, kind in values):
            if name == "float" and values[0][1] == U64:
                return f"(double)({values[0][0]})", F64
            self._refuse(node, f"{name} is for numbers")
        if name == "float":
            return self._converted(node, values[0], F64), F64
        if name == "int":
            return f"(int64_t)({values[0][0]})", I64
        common = F64 if any(k == F64 for _, k in values) else I64
        texts = [self._converted(node, value, common) for value in values]
        if name == "abs":
            return f"absolute_{common.name}({texts[0]})", common
        text = texts[0]
        for other in texts[1:]:
            text = f"{name}_{common.name}({text}, {other})"
        return text, common

    def _function_call(self, node: ast.Call, name: str) -> Value:
        if node.keywords:
            self._refuse(node, "compiled functions take arguments by position")
        values = [self._value(argument) for argument in node.args]
        called = self._program.call(self._function, name, [kind for _, kind in values])
        if called is None:
            self._refuse(node, f"{name} is not compiled")
        symbol, translation = called
        kinds = translation.arguments.values()
        if len(kinds) != len(values):
            self._refuse(node, f"{name} takes {len(kinds)} arguments")
        texts = [self._converted(node, v, k) for v, k in zip(values, kinds, strict=True)]
        return f"{symbol}({', '.join(texts)})", translation.result_kind

    def _created(self, node: ast.Call, *, zeros: bool) -> Value:
        """Create an array that lives until the function returns."""
        element = "f64"
        for keyword in node.keywords:
            match keyword:
                case ast.keyword(arg="dtype", value=ast.Attribute(attr=name)) if name in NEW_ELEMENTS:
                    element = NEW_ELEMENTS[name]
                case _:
                    self._refuse(node, "unknown kind of elements")
        shape = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
        lengths = [self._as(I64, length) for length in shape]
        self.allocates = True
        kind = Array(element, (None,) * len(lengths))
        whole = " * ".join(f"({length})" for length in lengths)
        pointer = f"take(room, {whole}, {int(zeros)})"
        return f"({self._program.use(kind)}){{{pointer}, {', '.join(lengths)}}}", kind


_BUILTINS: Final = ("len", "bool", "float", "int", "abs", "min", "max")


def _as_read(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _length(base: str, kind: Array, axis: int) -> str:
    known = kind.shape[axis]
    return f"{base}.n{axis}" if known is None else f"INT64_C({known})"


def _number(number: float) -> Value:
    if isinstance(number, Word):
        return f"UINT64_C({int(number)})", U64
    if isinstance(number, bool):
        return str(int(number)), BOOL
    if isinstance(number, int):
        return f"INT64_C({number})", I64
    if math.isinf(number):
        return ("-" if number < 0 else "") + "__builtin_inf()", F64
    return f"{float(number).hex()}", F64
