"""Formats of access logs, in the words of their servers, as regular expressions of lines.

nginx writes ``$request_time``, Apache ``%D``, Envoy ``%DURATION%``; HAProxy and load balancers of AWS have
formats of their own. What a variable tells is a *piece*: its role (``end``, ``duration``, ``uri``) and its
form (a unit, or how a date is written).

Sources: ngx_http_log_module and ngx_http_core_module; Apache mod_log_config; Envoy, "Access logging"; HAProxy
configuration manual, section 8.2.3; AWS, "Access logs for your Application Load Balancer".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mup.errors import UsageError, did_you_mean

__all__ = ["PRESETS", "ROLES", "UNITS", "Layout", "Piece", "Wanted", "layout_of", "recognised", "wanted"]

UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Units of numbers, in seconds."""

ROLES = ("start", "end", "duration", "class", "station", "trace", "client")
"""What --field can say where to find."""

TARGETS = ("what", "uri", "method")
COARSENESS: Mapping[str, int] = {"iso": 1, "clf": 2}
"""Of dates, beside numbers."""

KNOWN_FORMATS = (
    "nginx log_format, Apache LogFormat or Envoy text, or one of demand, envoy, haproxy, alb, json"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """What one variable of a format tells.

    Attributes:
        role: ``start``, ``end``, ``duration``; ``start_fraction`` and ``end_fraction`` (to be added);
            ``before`` and ``after`` (time between start and what counts, and between that and the end);
            ``method``, ``uri``, ``what`` (both in one); ``station``, ``trace``, ``client``; "" = not used.
        form: A unit, ``iso`` or ``clf`` (dates), ``seconds_or_us`` (with a point seconds, else microseconds).
    """

    role: str
    form: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where the user says a role is found, and in which unit ("" = as is usual for it)."""

    name: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """A format of lines.

    Attributes:
        name: For messages.
        pattern: Of a whole line, of bytes, with ``^`` and ``$`` for lines; one group per piece.
        pieces: What the groups are, in their order.
    """

    name: str
    pattern: re.Pattern[bytes]
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable in a format: its text, other names people call it by, and what it tells."""

    text: str
    names: tuple[str, ...]
    piece: Piece


_Token = str | _Variable

WHAT = r"([A-Z]+ [^ ?\"\n]*)(?:\?[^ \"\n]*)?(?: HTTP/[\d.]+)?"
METHOD_AND_URI = r"([A-Z]+ [^ ?\"\n]*)(?:\?[^ \"\n]*)?"
NUMBER = r"(-?\d+(?:\.\d+)?|-)"
END = r"\r?$"

_NGINX: dict[str, Piece] = {
    "msec": Piece("end", "s"),
    "time_iso8601": Piece("end", "iso"),
    "time_local": Piece("end", "clf"),
    "request_time": Piece("duration", "s"),
    "upstream_response_time": Piece("duration", "s"),
    "upstream_header_time": Piece("", "s"),
    "request": Piece("what"),
    "request_method": Piece("method"),
    "request_uri": Piece("uri"),
    "uri": Piece("uri"),
    "document_uri": Piece("uri"),
    "request_id": Piece("trace"),
    "http_x_request_id": Piece("trace"),
    "http_traceparent": Piece("trace"),
    "http_x_b3_traceid": Piece("trace"),
}
_APACHE_MOMENTS: dict[str, tuple[str, str]] = {
    "sec": ("", "s"),
    "msec": ("", "ms"),
    "usec": ("", "us"),
    "msec_frac": ("_fraction", "ms"),
    "usec_frac": ("_fraction", "us"),
}
_ENVOY: dict[str, Piece] = {
    "START_TIME": Piece("start", "iso"),
    "DURATION": Piece("duration", "ms"),
    "REQ(:METHOD)": Piece("method"),
    "REQ(:PATH)": Piece("uri"),
    "REQ(X-ENVOY-ORIGINAL-PATH?:PATH)": Piece("uri"),
    "REQ(X-REQUEST-ID)": Piece("trace"),
    "RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)": Piece("", "ms"),
}


def _line(body: str) -> re.Pattern[bytes]:
    return re.compile(f"^{body}{END}".encode(), re.MULTILINE)


PRESETS: dict[str, Layout] = {
    "demand": Layout(
        "END DURATION METHOD URI",
        _line(
            r"(\d+(?:\.\d+)?) (\d+(?:\.\d+)?) ([A-Z]+ [^ ?\n]*)(?:\?[^ \n]*)?(?: [^\n]*?)?",
        ),
        (Piece("end", "s"), Piece("duration", "seconds_or_us"), Piece("what")),
    ),
    # Bytes received, bytes sent, duration, upstream's time; then quoted texts, of which the third is the id.
    "envoy": Layout(
        "Envoy",
        _line(
            r"\[([^\]\n]+)\] \"" + WHAT + r"\" \d+ [^\n]*?(?<= )\d+ \d+ (\d+) (?:\d+|-)"
            r"(?: \"[^\"\n]*\" \"[^\"\n]*\" \"([^\"\n]*)\" \"[^\"\n]*\" \"([^\"\n]*)\"[^\n]*?)?"
        ),
        (
            Piece("start", "iso"),
            Piece("what"),
            Piece("duration", "ms"),
            Piece("trace"),
            Piece("station"),
        ),
    ),
    # What waits in HAProxy itself (TR, Tw, Tc) is before the server's time Tr.
    "haproxy": Layout(
        "HAProxy",
        _line(
            r"[^\n]*?([^ \n]+):\d+ \[(\d+/\w+/\d+:\d+:\d+:\d+\.\d+)\] [^ \n]+ ([^ \n]+/[^ \n]+) "
            r"(-?\d+)/(-?\d+)/(-?\d+)/(-?\d+)/\+?-?\d+ [^\n]*?\"" + WHAT + r"\"[^\n]*?"
        ),
        (
            Piece("client"),
            Piece("start", "clf"),
            Piece("station"),
            Piece("before", "ms"),
            Piece("before", "ms"),
            Piece("before", "ms"),
            Piece("duration", "ms"),
            Piece("what"),
        ),
    ),
    # Written when the response had been sent: the target was done before that.
    "alb": Layout(
        "Application Load Balancer",
        _line(
            r"[a-z0-9]+ (\d{4}-[^ \n]+) [^ \n]+ ([^ \n]+):\d+ ([^ \n]+) -?[\d.]+ (-?[\d.]+) (-?[\d.]+) "
            r"[^ \n]+ [^ \n]+ -?\d+ -?\d+ \""
            + WHAT
            + r"\"(?: \"[^\"\n]*\" [^ \n]+ [^ \n]+ [^ \n]+ \"([^\"\n]*)\")?"
            r"[^\n]*?"
        ),
        (
            Piece("end", "iso"),
            Piece("client"),
            Piece("station"),
            Piece("duration", "s"),
            Piece("after", "s"),
            Piece("what"),
            Piece("trace"),
        ),
    ),
}
"""Formats that are known by name, and recognised by their first lines."""

COMMON = re.compile(rb"[^ ]+ [^ ]+ .*\[\d+/\w+/\d+:\d+:\d+:\d+ ")
"""The common log format, and the combined one."""


def recognised(lines: Iterable[bytes]) -> Layout | None:
    """Return the format the first lines of a file have, None if it is not a known one."""
    for line in lines:
        for layout in PRESETS.values():
            if layout.pattern.match(line):
                return layout
    return None


def wanted(texts: Iterable[str]) -> dict[str, Wanted]:
    """Parse ``ROLE=NAME[:UNIT]`` texts.

    Raises:
        UsageError: A text is none, or its role is unknown.
    """
    found = {}
    for text in texts:
        role, _, name = text.partition("=")
        head, _, unit = name.rpartition(":")
        if head and unit in UNITS:
            name = head
        else:
            unit = ""
        if role not in ROLES or not name:
            what = did_you_mean(role, ROLES) if name else "a name is missing"
            raise UsageError(
                f"--field: must be ROLE=NAME or ROLE=NAME:UNIT, got {text!r}; {what}",
                hint="for example --field end=ts --field duration=latency:ms; "
                f"roles: {', '.join(ROLES)}; units: {', '.join(UNITS)}",
            )
        found[role] = Wanted(name, unit)
    return found


def layout_of(text: str, fields: Mapping[str, Wanted] | None = None) -> Layout:
    """Return the layout of a format: the name of a preset, or a format in the words of a server.

    Args:
        text: For example ``$msec $request_time "$request" $status``.
        fields: Variables that have a role other than the usual one.

    Raises:
        UsageError: It does not say when requests ended (or started), how long they took, and what they were.
    """
    if text in PRESETS:
        if fields:
            raise UsageError(
                f"--field: the format {text!r} says itself what is where", hint="write out the format instead"
            )
        return PRESETS[text]
    tokens = _tokens(text)
    variables = [token for token in tokens if isinstance(token, _Variable)]
    tokens = _with_roles(tokens, variables, fields or {})
    body, pieces = _pattern(tokens)
    layout = Layout(f"format {text!r}", _line(body), tuple(pieces))
    _check(layout)
    return layout


def _tokens(text: str) -> list[_Token]:
    # A shell has taken one layer of quotes off, the configuration file of Apache had another.
    plain = text.replace('\\"', '"')
    if re.search(r"\$\{?[a-z]", plain):
        return _split(r"\$\{(\w+)\}|\$(\w+)", plain, lambda m: _nginx(m[1] or m[2]))
    if re.search(r"%[A-Z_]{2,}(?:\([^)]*\))?(?::\d+)?%", plain):
        return _split(r"%([A-Z_0-9]+(?:\([^)]*\))?)(?::\d+)?%", plain, lambda m: _envoy(m[1]))
    if "%" in plain:
        return _split(
            r"%[<>]?(?:!?\d[\d,]*)?[<>]?(?:\{([^}]*)\})?(\^?[a-zA-Z]+?|%)",
            plain,
            lambda m: _apache(m[1], m[2]),
        )
    raise UsageError(f"--log-format: has no variable: {text!r}", hint=f"say it as {KNOWN_FORMATS}")


def _split(pattern: str, text: str, made: Callable[[re.Match[str]], _Token]) -> list[_Token]:
    tokens: list[_Token] = []
    last = 0
    for found in re.finditer(pattern, text):
        if text[last : found.start()]:
            tokens.append(text[last : found.start()])
        tokens.append(made(found))
        last = found.end()
    if text[last:]:
        tokens.append(text[last:])
    return tokens


def _nginx(name: str) -> _Token:
    return _Variable(f"${name}", (name,), _NGINX.get(name, Piece("")))


def _envoy(name: str) -> _Token:
    plain = name.partition("(")[0]
    piece = _ENVOY.get(name, Piece(""))
    if plain == "START_TIME" and name != plain:
        # A format of its own: seconds with decimals are understood.
        piece = Piece("start", "s") if re.fullmatch(r"START_TIME\(%s(\.%[1-9]f)?\)", name) else Piece("")
    inner = name.partition("(")[2].rstrip(")")
    return _Variable(f"%{name}%", (name, plain, inner), piece)


def _apache(argument: str | None, letter: str) -> _Token:
    if letter == "%":
        return "%"
    text = letter if argument is None else f"{{{argument}}}{letter}"
    names = (text, argument or letter)
    if letter == "t":
        if argument is None:
            return _Variable(f"%{text}", names, Piece("start", "clf"))
        side, _, what = argument.rpartition(":")
        if what in _APACHE_MOMENTS and side in ("", "begin", "end"):
            suffix, form = _APACHE_MOMENTS[what]
            return _Variable(f"%{text}", names, Piece(("end" if side == "end" else "start") + suffix, form))
        return _Variable(f"%{text}", names, Piece(""))
    if letter == "T":
        return _Variable(f"%{text}", names, Piece("duration", argument or "s"))
    if letter == "i" and argument is not None:
        traced = argument.lower() in ("x-request-id", "traceparent", "x-b3-traceid")
        return _Variable(f"%{text}", names, Piece("trace" if traced else ""))
    plain = {"D": Piece("duration", "us"), "m": Piece("method"), "U": Piece("uri"), "r": Piece("what")}
    return _Variable(f"%{text}", names, plain.get(letter, Piece("")))


def _with_roles(
    tokens: Sequence[_Token], variables: Sequence[_Variable], fields: Mapping[str, Wanted]
) -> list[_Token]:
    """Give every role to one variable: that of --field, or the first that has it."""
    taken = {role: _find(variables, role, field) for role, field in fields.items()}
    # Numbers are finer than dates: of several variables with one role, the first of the finest form counts.
    usual = {
        v.piece.role: v
        for v in sorted(variables, key=lambda v: COARSENESS.get(v.piece.form, 0), reverse=True)
    }
    for variable in reversed(variables):
        if COARSENESS.get(variable.piece.form, 0) == COARSENESS.get(usual[variable.piece.role].piece.form, 0):
            usual[variable.piece.role] = variable
    result: list[_Token] = []
    for token in tokens:
        if isinstance(token, str):
            result.append(token)
            continue
        role = token.piece.role
        own_role = next((r for r, v in taken.items() if v is token), None)
        if own_role is not None:
            form = (
                fields[own_role].unit
                or token.piece.form
                or ("s" if own_role in ("start", "end", "duration") else "")
            )
            piece = Piece("uri" if own_role == "class" else own_role, form)
        elif role in taken or usual[role] is not token or ("class" in taken and role in TARGETS):
            piece = Piece("")
        else:
            piece = token.piece
        result.append(replace(token, piece=piece))
    return result


def _find(variables: Sequence[_Variable], role: str, field: Wanted) -> _Variable:
    bare = field.name.strip("$%").lower()
    for variable in variables:
        if bare in (name.lower() for name in variable.names):
            return variable
    names = [variable.names[0] for variable in variables]
    raise UsageError(
        f"--field {role}={field.name}: the format has no such variable; {did_you_mean(field.name, names)}"
    )


def _pattern(tokens: Sequence[_Token]) -> tuple[str, list[Piece]]:
    """Return the expression of a line, and its pieces."""
    parts: list[str] = []
    pieces: list[Piece] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if isinstance(token, str):
            # Servers write one blank where the configuration has several, or a line break.
            parts.append(re.sub(r"(?:\\?\s)+", " ", re.escape(token)))
            i += 1
            continue
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        after = tokens[i + 2] if i + 2 < len(tokens) else None
        if (
            token.piece.role == "method"
            and following == " "
            and isinstance(after, _Variable)
            and after.piece.role == "uri"
        ):
            # One group for both is looked up at once.
            parts.append(METHOD_AND_URI)
            pieces.append(Piece("what"))
            i += 3
            continue
        if isinstance(following, _Variable) and token.piece.role != "uri":
            raise UsageError(
                f"--log-format: nothing is between {token.text} and {following.text}, so nothing tells where "
                "one ends",
                hint="put a blank between them",
            )
        expression = _expression(token, following if isinstance(following, str) else None)
        parts.append(expression if token.piece.role else expression.replace("(", "(?:", 1))
        if token.piece.role:
            pieces.append(token.piece)
        i += 1
    return "".join(parts), pieces


def _expression(variable: _Variable, following: str | None) -> str:
    """Return the expression of one variable, which begins with its group; ``following`` ends it."""
    role, form = variable.piece.role, variable.piece.form
    end = following[0] if following else ""
    text = r"((?:[^\"\\\n]|\\.)*)" if end == '"' else f"([^{re.escape(end)}\\n]*)" if end else r"([^\n]*)"
    if role == "what":
        return WHAT
    if role == "method":
        return r"([A-Z]+)"
    if role == "uri":
        return rf"([^ ?\"{re.escape(end) if end not in (' ', chr(34), '') else ''}\n]*)(?:\?[^ \"\n]*)?"
    if variable.names[0] == "q":
        return r"(\?[^ \n]*)?"
    if role and form in UNITS:
        # Several servers that answered one after another: "0.010, 0.020" is read, and left out later.
        return r"(-?[\d.]+(?:(?:, | : )[\d.-]+)*|-)"
    if variable.names[0].startswith("upstream_"):
        return rf"((?:, | : |[^{re.escape(end)}\n])*)" if end else text
    return text


def _check(layout: Layout) -> None:
    """Refuse a format that does not say enough."""
    roles = {piece.role for piece in layout.pieces}
    if not roles & {"start", "end"}:
        raise UsageError(
            f"--log-format: no variable says when requests ended or started: {layout.name}",
            hint="log $msec (nginx), %{end:usec}t (Apache) or %START_TIME% (Envoy)",
        )
    if "duration" not in roles and not {"start", "end"} <= roles:
        raise UsageError(
            f"--log-format: no variable says how long requests took: {layout.name}",
            hint="log $request_time (nginx), %D (Apache) or %DURATION% (Envoy)",
        )
    if not roles & {"what", "uri"}:
        raise UsageError(
            f"--log-format: no variable says what was asked for: {layout.name}",
            hint='log "$request" (nginx), %m %U (Apache), or say which one does: --field class=NAME',
        )
