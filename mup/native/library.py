"""C text of a library of compiled functions, and what is needed to call them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from mup.native.kinds import NOTHING, Array, Kind, Record, Scalar, Tuple, described
from mup.native.libraries import MANIFEST
from mup.native.subset import Function, Refusal, Sources, Word
from mup.native.translation import Program, Translation

__all__ = ["library_text"]

EXPORTED: Final = ("compiled", "compiled_sums")

PRELUDE: Final = """\
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
#define INT64_C(x) ((int64_t)x##LL)
#define UINT64_C(x) ((uint64_t)x##ULL)
#define EXPORTED __attribute__((visibility("default")))
#define INLINED static inline __attribute__((always_inline))
#if defined(__clang__)
#define SUMS
#define REORDER _Pragma("clang fp reassociate(on) contract(fast)")
#else
#define SUMS __attribute__((optimize("O3", "associative-math", "no-signed-zeros", "no-trapping-math")))
#define REORDER
#endif

double log(double);
double log1p(double);
double exp(double);
double sqrt(double);
double erfc(double);
double lgamma(double);
double pow(double, double);
double floor(double);
void *calloc(__SIZE_TYPE__, __SIZE_TYPE__);
void *malloc(__SIZE_TYPE__);
void free(void *);
void abort(void);
int dprintf(int, const char *, ...);

INLINED int64_t min_i64(int64_t a, int64_t b) { return b < a ? b : a; }
INLINED int64_t max_i64(int64_t a, int64_t b) { return b > a ? b : a; }
INLINED double min_f64(double a, double b) { return b < a ? b : a; }
INLINED double max_f64(double a, double b) { return b > a ? b : a; }
INLINED int64_t absolute_i64(int64_t a) { return a < 0 ? -a : a; }
INLINED double absolute_f64(double a) { return __builtin_fabs(a); }
INLINED int64_t square_i64(int64_t a) { return a * a; }
INLINED double square_f64(double a) { return a * a; }
INLINED int64_t floored(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
INLINED int64_t modulo(int64_t a, int64_t b) { return a - floored(a, b) * b; }
INLINED uint64_t word_of(double a) { uint64_t w; __builtin_memcpy(&w, &a, 8); return w; }
"""

ROOM: Final = """
/* Arrays that live until the function that created them returns. */
typedef struct room { struct room *next; double filler; } room_t;
static void *take(room_t **room, int64_t length, int zeros) {
    __SIZE_TYPE__ bytes = sizeof(room_t) + (__SIZE_TYPE__)(length > 0 ? length : 1) * 8;
    room_t *made = zeros ? calloc(bytes, 1) : malloc(bytes);
    if (!made) {
        dprintf(2, "mup: out of memory in compiled code\\n");
        abort();
    }
    made->next = *room;
    *room = made;
    return made + 1;
}
static void give_back(room_t *room) {
    while (room) {
        room_t *next = room->next;
        free(room);
        room = next;
    }
}
"""

CHECKED: Final = """
static int64_t within(int64_t index, int64_t length, const char *where) {
    if (index < 0 || index >= length) {
        dprintf(2, "%s: index %lld of %lld\\n", where, (long long)index, (long long)length);
        abort();
    }
    return index;
}
"""


class _Library(Program):
    """All functions that the exported ones need."""

    def __init__(self, root: Path, *, checked: bool) -> None:
        self.sources = Sources(root)
        self.checked = checked
        self.done: dict[tuple[str, str, tuple[Kind, ...]], tuple[str, Translation]] = {}
        self.text: list[str] = []
        self.types: dict[str, str] = {}
        self.exports: dict[str, Any] = {}

    def constant(self, function: Function, name: str) -> float | Word | None:
        return self.sources.constant(function.module, name)

    def annotated(self, function: Function, node: ast.expr | None) -> Kind | None:
        return self.sources.kind(function.module, node)

    def call(self, caller: Function, name: str, kinds: Sequence[Kind]) -> tuple[str, Translation] | None:
        found = self.sources.home(caller.module, name)
        if found is None or found[1] not in found[0].functions:
            return None
        return self.translated(found[0].functions[found[1]], kinds)

    def translated(self, function: Function, kinds: Sequence[Kind]) -> tuple[str, Translation]:
        """Return a function for arguments of some kinds, translated once."""
        declared = [self.annotated(function, a.annotation) for a in function.node.args.args]
        if len(kinds) != len(declared):
            function.module.refuse(function.node, f"{function.name} takes {len(declared)} arguments")
        # Arrays keep what is known of their lengths; numbers become what the function says it takes.
        taken = tuple(
            own if isinstance(own, Scalar) and isinstance(kind, Scalar) else kind
            for own, kind in zip(declared, kinds, strict=True)
        )
        key = (function.module.name, function.name, taken)
        if key not in self.done:
            translation = Translation(self, function, taken)
            symbol = f"f{len(self.done)}_{function.name}"
            self.done[key] = (symbol, translation)
            self.text.append(self._definition(symbol, function, translation))
        return self.done[key]

    def _definition(self, symbol: str, function: Function, translation: Translation) -> str:
        returns = self.use(translation.result_kind)
        parameters = [f"{self.use(kind)} given_{name}" for name, kind in translation.arguments.items()]
        how = "INLINED" if function.decorator == "inlined" else "static"
        sums = function.decorator == "compiled_sums"
        if sums:
            how += " SUMS"
        lines = []
        if translation.allocates:
            inner = ", ".join([*parameters, "room_t **room"])
            lines.append(f"static {'SUMS ' if sums else ''}{returns} {symbol}_inner({inner}) {{")
        else:
            lines.append(f"{how} {returns} {symbol}({', '.join(parameters) or 'void'}) {{")
        if sums:
            lines.append("    REORDER")
        for name, kind in translation.locals.items():
            given = name in translation.arguments
            value = f"given_{name}" if given else "{0}" if isinstance(kind, (Array, Tuple)) else "0"
            lines.append(f"    {self.use(kind)} {name}_ = {value};")
        lines += translation.body
        lines.append("}")
        if translation.allocates:
            names = ", ".join([*(f"given_{name}" for name in translation.arguments), "&room"])
            lines.append(f"static {returns} {symbol}({', '.join(parameters)}) {{")
            lines.append("    room_t *room = 0;")
            if translation.result_kind == NOTHING:
                lines += [f"    {symbol}_inner({names});", "    give_back(room);"]
            else:
                lines += [f"    {returns} result = {symbol}_inner({names});", "    give_back(room);"]
                lines.append("    return result;")
            lines.append("}")
        return "\n".join(lines)

    def use(self, kind: Kind) -> str:
        """Return the C type of a kind; note that it must be declared."""
        if isinstance(kind, Array):
            lengths = ", ".join(f"n{i}" for i in range(len(kind.shape)))
            self.types.setdefault(
                kind.c, f"typedef struct {{ {Scalar(kind.element).c} *p; int64_t {lengths}; }} {kind.c};"
            )
        elif isinstance(kind, Tuple):
            members = " ".join(f"{self.use(part)} e{i};" for i, part in enumerate(kind.parts))
            self.types.setdefault(kind.c, f"typedef struct {{ {members} }} {kind.c};")
        elif isinstance(kind, Record):
            members = " ".join(
                f"{field.name if isinstance(field, Record) else self.use(field)} {name};"
                for name, field in kind.fields
                if not isinstance(field, Record) or self.use(field)
            )
            self.types.setdefault(kind.c, f"typedef struct {{ {members} }} {kind.name};")
        return kind.c

    def export(self, function: Function) -> None:
        """Let a function be called from Python."""
        kinds = []
        for argument in function.node.args.args:
            kind = self.annotated(function, argument.annotation)
            if kind is None or kind == NOTHING:
                function.module.refuse(
                    argument,
                    f"{function.name}: {argument.arg} is called from Python, so its kind must be written "
                    "there: int, float, bool, a NamedTuple, or Annotated[array, (lengths)]",
                )
            kinds.append(kind)
        inner, translation = self.translated(function, kinds)
        symbol = "mup_" + function.module.name.replace(".", "_") + "_" + function.name
        parameters, passed = [], []
        for argument, kind in zip(function.node.args.args, kinds, strict=True):
            if isinstance(kind, Array):
                parameters.append(f"const {self.use(kind)} *{argument.arg}_")
                passed.append(f"*{argument.arg}_")
            else:
                parameters.append(f"{self.use(kind)} {argument.arg}_")
                passed.append(f"{argument.arg}_")
        returns = self.use(translation.result_kind)
        call = f"{inner}({', '.join(passed)});"
        self.text.append(
            f"EXPORTED {returns} {symbol}({', '.join(parameters) or 'void'}) "
            f"{{ {'' if translation.result_kind == NOTHING else 'return '}{call} }}"
        )
        self.exports[f"{function.module.name}.{function.name}"] = {
            "symbol": symbol,
            "takes": [described(kind) for kind in kinds],
            "returns": described(translation.result_kind),
        }


def library_text(root: Path, modules: Iterable[str], *, checked: bool = False) -> tuple[str, list[Path]]:
    """Return a library's text in C, and the sources it was made of.

    Args:
        root: The folder of the packages.
        modules: Whose functions can be called from Python.
        checked: Stop the process at an index outside of an array, rather than read what lies there.

    Raises:
        Refusal: Something cannot be compiled; says where it stands.
    """
    library = _Library(root, checked=checked)
    for name in modules:
        module = library.sources.module(name)
        if module is None:
            raise Refusal(f"there is no module {name} in {root}")
        for function in module.functions.values():
            if function.decorator in EXPORTED:
                library.export(function)
    manifest = json.dumps(library.exports).replace("\\", "\\\\").replace('"', '\\"')
    text = [
        PRELUDE,
        CHECKED if checked else "",
        ROOM if any(t.allocates for _, t in library.done.values()) else "",
        *library.types.values(),
        "",
        *library.text,
        f'EXPORTED const char {MANIFEST}[] = "{manifest}";\n',
    ]
    return "\n".join(text), [module.path for module in library.sources.modules.values()]
