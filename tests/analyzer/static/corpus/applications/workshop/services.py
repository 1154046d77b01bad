"""Small endpoints that use much of the language and its library."""

import asyncio
import contextlib
import copy
import functools
import itertools
import json
import re
import time
import weakref
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, UserDict, defaultdict, deque
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from datetime import UTC, date, datetime, timedelta
from enum import Enum, Flag, IntFlag, StrEnum
from typing import ClassVar, Generic, NamedTuple, TypeVar

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError

try:
    import orjson
except ImportError:
    orjson = None

T = TypeVar("T")
HOOKS: list = []
DEFAULTS = {"retries": 1, "path": "/on"}
LIMITS = defaultdict(int)


class Perm(IntFlag):
    READ = 1
    WRITE = 2
    ALL = READ | WRITE


class State(StrEnum):
    NEW = "new"
    DONE = "done"

    def next(self) -> "State":
        return {State.NEW: State.DONE}.get(self, self)


class NotFoundError(Exception):
    status = 404

    def __init__(self, what, *args) -> None:
        super().__init__(what, *args)
        self.what = what


class GoneError(NotFoundError):
    status = 410


class Plugin:
    registry: ClassVar[dict] = {}

    def __init_subclass__(cls, name="", **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        Plugin.registry[name or cls.__name__.lower()] = cls

    def __init__(self, comm) -> None:
        self.comm = comm

    def __call__(self, *args, **kwargs):
        return self.run(*args, **kwargs)

    def run(self):
        return None


class Mail(Plugin, name="mail"):
    def run(self):
        return self.comm.call("Tools", "/on").get()


class Chat(Plugin):
    def run(self):
        return self.comm.call("Tools", "/has").get()


class Typed(Generic[T]):
    def __class_getitem__(cls, item):
        return cls

    def __init__(self, comm) -> None:
        self.comm = comm

    @functools.cached_property
    def profile(self):
        return self.comm.call("Tools", "/on").get()

    @functools.cache
    def settings(self):
        return self.comm.call("Tools", "/has").get()


class Positive:
    def __set_name__(self, owner, name) -> None:
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name)

    def __set__(self, obj, value) -> None:
        if value < 0:
            raise ValueError(self.name)
        setattr(obj, self.name, value)


class Order:
    amount = Positive()

    def __init__(self, amount) -> None:
        self.amount = amount


@dataclass
class Entity:
    id: str = ""
    state: State = State.NEW


@dataclass
class Invoice(Entity):
    lines: list = field(default_factory=list)
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.total = sum(line.get("price", 1) for line in self.lines)
        self.paid = False


@dataclass(slots=True, kw_only=True)
class Options:
    retries: int = 1
    path: str = "/on"

    @classmethod
    def of(cls, **values) -> "Options":
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in values.items() if k in known})


def averaging():
    total, count, mean = 0, 0, None
    while True:
        value = yield mean
        if value is None:
            return count
        total += value
        count += 1
        mean = total / count


def inner(comm):
    yield comm.call("Tools", "/on").get()
    return 2


def outer(comm):
    n = yield from inner(comm)
    if n == 2:
        yield comm.call("Tools", "/has").get()


def validated(*required):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(self, comm, *args, **kwargs):
            missing = [name for name in required if not comm.params.get(name)]
            if missing:
                comm.respond({"missing": missing}, status=400)
                return None
            return function(self, comm, *args, **kwargs)

        return wrapper

    return decorate


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            LIMITS[function.__name__] += time.perf_counter() - started > 100

    return wrapper


class Repo:
    def __init__(self, comm) -> None:
        self.comm = comm
        self.dirty = {}

    def __enter__(self):
        self.seen = []
        return self

    def __exit__(self, kind, error, trace):
        if error is None and self.seen:
            self.commit()
        elif isinstance(error, NotFoundError):
            return True
        return None

    def commit(self):
        for one in self.seen:
            self.comm.query("db", "save", "rows", {"$insert": [{"id": one}]}).get()

    def add(self, one):
        self.seen.append(one)
        return self


class Hooks:
    def __init__(self) -> None:
        self.after = []

    def on(self, function):
        self.after.append(function)
        return function


class Breaker:
    open = False
    failures = 0

    @classmethod
    def trip(cls) -> None:
        cls.open = True

    @classmethod
    def failed(cls) -> None:
        cls.failures += 1


class Workshop(MS):
    def setup(self) -> None:
        self.limits = {"a": 1}
        self.hits = 0
        self.paths = ["/on", "/has"]

    @property
    def base(self) -> str:
        return "/on"

    def _log(self, comm, *rows, level="info"):
        if level == "error":
            comm.query("db", "log", "rows", {"$insert": list(rows)}).get()

    @EP("/perm")
    def perm(self, comm: Communication, n: int = 0) -> None:
        perm = Perm(n & 3)
        if perm & Perm.WRITE:
            comm.call("Tools", "/set").get()
        if Perm.READ in perm:
            comm.call("Tools", "/on").get()
        if Perm.ALL & Perm.WRITE:
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/state")
    def state(self, comm: Communication, n: int = 0) -> None:
        state = State.NEW
        if n:
            state = state.next()
        if state is State.DONE:
            comm.call("Tools", "/on").get()
        comm.call("Tools", "/set", {"s": f"{state}"}).get()
        comm.respond({})

    @EP("/raised")
    def raised(self, comm: Communication, code: str = "a") -> None:
        try:
            if code == "a":
                raise GoneError(code)
            if code == "b":
                raise NotFoundError(code, 1)
            comm.call("Tools", "/on").get()
        except NotFoundError as e:
            if e.status == 410:
                comm.call("Tools", "/has").get()
            comm.respond({"what": e.what}, status=e.status)
            return
        comm.respond({})

    @EP("/plugin")
    def plugin(self, comm: Communication, code: str = "a") -> None:
        plugin = Plugin.registry.get(code)
        if plugin is None:
            comm.respond({}, status=404)
            return
        plugin(comm)()
        comm.respond({})

    @EP("/descriptor")
    def descriptor(self, comm: Communication, n: int = 0) -> None:
        try:
            order = Order(n - 1)
        except ValueError:
            comm.call("Tools", "/has").get()
        else:
            if order.amount:
                comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/invoice")
    def invoice(self, comm: Communication, x: list[str] = []) -> None:
        invoice = Invoice("a", lines=[{"price": 2} for _ in x])
        if invoice.total > 2:
            comm.call("Tools", "/on").get()
        if not invoice.paid:
            comm.call("Tools", "/has").get()
        if asdict(invoice)["total"] == 0:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/options")
    def options(self, comm: Communication, more: dict = {}) -> None:
        o = Options.of(**{**DEFAULTS, **more})
        if o.retries > 1:
            comm.call("Tools", "/has").get()
        if o.path == "/on":
            comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/send")
    def send(self, comm: Communication, n: int = 0) -> None:
        mean = averaging()
        next(mean)
        last = None
        for i in range(n):
            last = mean.send(i)
        if last:
            comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/yield-from")
    def yield_from(self, comm: Communication, n: int = 0) -> None:
        for row in outer(comm):
            if row:
                comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/repo")
    def repo(self, comm: Communication, code: str = "a") -> None:
        with Repo(comm) as repo:
            repo.add("a").add("b")
            if code == "b":
                raise NotFoundError(code)
            if code == "c":
                repo.seen.clear()
        comm.respond({})

    @EP("/hooks")
    def hooks(self, comm: Communication, n: int = 0) -> None:
        hooks = Hooks()

        @hooks.on
        def first():
            comm.call("Tools", "/on").get()

        hooks.on(lambda: comm.call("Tools", "/has").get())
        for hook in hooks.after:
            hook()
        comm.respond({})

    @EP("/deepcopy")
    def deepcopy(self, comm: Communication, n: int = 0) -> None:
        a = {"x": {"y": ["/on"]}}
        b = copy.deepcopy(a)
        b["x"]["y"].append("/has")
        for p in a["x"]["y"]:
            comm.call("Tools", p).get()
        comm.respond({})

    @EP("/copy-obj")
    def copy_obj(self, comm: Communication, n: int = 0) -> None:
        a = Entity("a")
        b = copy.copy(a)
        b.state = State.DONE
        if a.state is State.NEW:
            comm.call("Tools", "/on").get()
        if a == b:
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/from-base")
    def from_base(self, comm: Communication, n: int = 0) -> None:
        comm.call("Tools", self.base).get()
        self._log(comm, {"n": n}, level="error" if n > 1 else "info")
        comm.respond({})

    @EP("/orjson")
    def orjson(self, comm: Communication, n: int = 0) -> None:
        dumps = orjson.dumps if orjson else json.dumps
        if orjson is None:
            comm.call("Tools", "/on").get()
        else:
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/regex")
    def regex(self, comm: Communication, code: str = "a") -> None:
        if (m := re.fullmatch(r"(a|b)", code)) and m[1] == "a":
            comm.call("Tools", "/on").get()
        elif m:
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/dates")
    def dates(self, comm: Communication, n: int = 0) -> None:
        today = datetime.now(UTC).date()
        due = today - timedelta(days=n)
        if due < today:
            comm.call("Tools", "/on").get()
        if (today - due).days in range(1, 3):
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/windows")
    def windows(self, comm: Communication, n: int = 0) -> None:
        start, end, step = date(2024, 1, 1), date(2024, 1, 1) + timedelta(days=n), timedelta(days=1)
        while start < end:
            comm.call("Tools", "/on", {"d": start.isoformat()}).get()
            start += step
        comm.respond({})

    @EP("/version")
    def version(self, comm: Communication, code: str = "a") -> None:
        version = {"a": 1, "b": 2}.get(code, 3)
        comm.call("Tools", "/on" if version < 3 else "/has").get()
        comm.call(*("Tools", "/set")).get()
        comm.respond({})

    @EP("/built-name")
    def built_name(self, comm: Communication, n: int = 0) -> None:
        action = "o" + "n"
        comm.call("Tools", f"/{action}").get()
        comm.call("Tools", "/" + "_".join(["h", "as"]).replace("_", "")).get()
        comm.call("tools".title(), "/" + "SET".lower()).get()
        comm.respond({})

    @EP("/kwargs-call")
    def kwargs_call(self, comm: Communication, n: int = 0) -> None:
        args = {"dest_ms": "Tools", "path": "/on"}
        if n:
            args["path"] = "/has"
        comm.call(**args).get()
        comm.respond({})

    @EP("/kwargs-merge")
    def kwargs_merge(self, comm: Communication, more: dict = {}) -> None:
        params = dict(DEFAULTS, **more)
        comm.call("Tools", "/on", params | {"x": 1}, timeout=params.get("timeout", 2)).get()
        comm.respond({})

    @EP("/counter-common")
    def counter_common(self, comm: Communication, x: list[str] = []) -> None:
        for name, count in Counter(x).most_common(2):
            comm.call("Tools", "/on", {"n": name, "c": count}).get()
        comm.respond({})

    @EP("/grouped")
    def grouped(self, comm: Communication, x: list[str] = []) -> None:
        groups = defaultdict(list)
        for one in x:
            groups[len(one)].append(one)
        for size, some in sorted(groups.items()):
            comm.call("Tools", "/on", {"s": size, "n": some}).get()
        comm.respond({})

    @EP("/chunks")
    def chunks(self, comm: Communication, x: list[str] = []) -> None:
        for i in range(0, len(x), 2):
            comm.call("Tools", "/on", {"c": x[i : i + 2]}).get()
        comm.respond({})

    @EP("/window-deque")
    def window_deque(self, comm: Communication, x: list[str] = []) -> None:
        window = deque(maxlen=2)
        for one in x:
            window.append(one)
            if len(window) == window.maxlen:
                comm.call("Tools", "/on", {"w": list(window)}).get()
        comm.respond({})

    @EP("/two-pointers")
    def two_pointers(self, comm: Communication, x: list[str] = []) -> None:
        i, j = 0, len(x) - 1
        while i < j:
            if x[i] == x[j]:
                comm.call("Tools", "/on").get()
            i, j = i + 1, j - 1
        comm.respond({})

    @EP("/flags-any")
    def flags_any(self, comm: Communication, more: dict = {}) -> None:
        checks = {"a": lambda: comm.call("Tools", "/on").get(), "b": lambda: comm.call("Tools", "/has").get()}
        results = {name: check() for name, check in checks.items() if name not in more}
        if all(results.values()):
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/pipeline")
    def pipeline(self, comm: Communication, n: int = 0) -> None:
        steps = [str.strip, str.lower, lambda s: comm.call("Tools", "/on", {"s": s}).get()]
        value = " A "
        for step in steps:
            value = step(value)
        comm.respond({})

    @EP("/compose")
    def compose(self, comm: Communication, n: int = 0) -> None:
        def compose(*fs):
            return functools.reduce(lambda f, g: lambda v: g(f(v)), fs)

        run = compose(lambda v: comm.call("Tools", "/on").get(), lambda v: comm.call("Tools", "/has").get())
        run(1)
        comm.respond({})

    @EP("/currying")
    def currying(self, comm: Communication, n: int = 0) -> None:
        call = functools.partial(comm.call, "Tools")
        first, second = call("/on"), call("/has", timeout=1)
        first.get()
        second.get()
        comm.respond({})

    @EP("/any-of")
    def any_of(self, comm: Communication, n: int = 0) -> None:
        answer = next((a for p in ("/on", "/has") if (a := comm.call("Tools", p).get(check=False)).ok), None)
        if answer is None:
            comm.respond({}, status=502)
            return
        comm.respond({})

    @EP("/hedged")
    def hedged(self, comm: Communication, n: int = 0) -> None:
        first = comm.call("Tools", "/on")
        try:
            body = first.get(timeout=0.01)
        except CallTimeoutError:
            second = comm.call("Tools", "/has")
            try:
                body = second.get(timeout=1)
            except CallTimeoutError:
                body = first.get()
        comm.respond({})

    @EP("/status-table")
    def status_table(self, comm: Communication, n: int = 0) -> None:
        answer = comm.call("Tools", "/on").get(check=False)
        handlers = {
            200: lambda: None,
            404: lambda: comm.call("Tools", "/set").get(),
            503: lambda: comm.call("Tools", "/has").get(),
        }
        handlers.get(answer.status, lambda: comm.call("Tools", "/delete").get())()
        comm.respond({})

    @EP("/backoff")
    def backoff(self, comm: Communication, n: int = 0) -> None:
        for attempt, delay in enumerate(itertools.accumulate(range(3)), start=1):
            try:
                comm.call("Tools", "/on").get()
            except (CallTimeoutError, CallError) as e:
                if attempt == 3 or getattr(e, "status", 503) < 500:
                    raise
                time.sleep(delay)
            else:
                break
        comm.respond({})

    @EP("/partial-failures")
    def partial_failures(self, comm: Communication, x: list[str] = []) -> None:
        pending = {one: comm.call("Tools", "/on", {"x": one}) for one in dict.fromkeys(x)}
        results, errors = {}, {}
        for one, future in pending.items():
            try:
                results[one] = future.get()
            except CommunicationError as e:
                errors[one] = str(e)
        if errors and not results:
            comm.respond(errors, status=502)
            return
        comm.respond({})

    @EP("/swallow-return")
    def swallow_return(self, comm: Communication, n: int = 0) -> None:
        def safe(f, *args, default=None, **kw):
            try:
                return f(*args, **kw)
            except CommunicationError:
                return default

        a = safe(comm.call("Tools", "/on").get)
        b = safe(lambda p: comm.call("Tools", p).get(), "/has", default={})
        if a is None and not b:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/loop-var")
    def loop_var(self, comm: Communication, x: list[str] = []) -> None:
        last = None
        for last in x:
            pass
        if last is not None:
            comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/del-item-loop")
    def del_item_loop(self, comm: Communication, n: int = 0) -> None:
        todo = {"a": "/on", "b": "/has"}
        for key in list(todo):
            comm.call("Tools", todo.pop(key)).get()
        if todo:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/while-true")
    def while_true(self, comm: Communication, n: int = 0) -> None:
        cursor = None
        while True:
            page = comm.call("Tools", "/page", {"c": cursor} if cursor else None).get()
            match page:
                case {"items": [_, *_] as items, "next": cursor}:
                    continue
                case {"items": items}:
                    break
                case _:
                    comm.respond({}, status=502)
                    return
        comm.respond({})

    @EP("/nested-fn")
    def nested_fn(self, comm: Communication, n: int = 0) -> None:
        def once(f):
            done = []

            def run():
                if not done:
                    done.append(f())
                return done[0]

            return run

        token = once(lambda: comm.call("Tools", "/on").get())
        token()
        if n:
            token()
        comm.respond({})

    @EP("/bool-result")
    def bool_result(self, comm: Communication, n: int = 0) -> None:
        ok = bool(comm.call("Tools", "/on").get()) and n > 1 or not n
        if ok is False:
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/ordered")
    def ordered(self, comm: Communication, n: int = 0) -> None:
        o = OrderedDict([("a", "/on"), ("b", "/has")])
        while o:
            _, path = o.popitem(last=False)
            comm.call("Tools", "/set", {"p": path}).get()
        comm.respond({})

    @EP("/slice-step")
    def slice_step(self, comm: Communication, n: int = 0) -> None:
        for p in ("/on", "/has", "/set")[::2]:
            comm.call("Tools", p).get()
        for p in ["/on", "/has"][-1:]:
            comm.call("Tools", p).get()
        comm.respond({})

    @EP("/set-ops")
    def set_ops(self, comm: Communication, x: list[str] = []) -> None:
        want, have = {"a", "b"}, set(x)
        if want - have:
            comm.call("Tools", "/on").get()
        if want & have:
            comm.call("Tools", "/has").get()
        if want <= {"a", "b", "c"}:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/sort-attr")
    def sort_attr(self, comm: Communication, x: list[str] = []) -> None:
        rows = [Entity(one) for one in x]
        rows.sort(key=lambda r: r.id, reverse=True)
        if rows and rows[0].id == "d":
            comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/round")
    def round(self, comm: Communication, n: int = 0) -> None:
        if round(n / 2) == 1:
            comm.call("Tools", "/on").get()
        if divmod(7, 2) == (3, 1):
            comm.call("Tools", "/has").get()
        if abs(-1) == 1 and pow(2, 3) == 8:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/type-check")
    def type_check(self, comm: Communication, v: int | str | float = 0) -> None:
        match v:
            case bool():
                comm.call("Tools", "/delete").get()
            case int():
                comm.call("Tools", "/on").get()
            case str() if v:
                comm.call("Tools", "/has").get()
            case _:
                comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/isinstance")
    def isinstance(self, comm: Communication, v: int | str | float = 0) -> None:
        kinds = (int, str)
        if isinstance(v, kinds) and not isinstance(v, str):
            comm.call("Tools", "/on").get()
        elif isinstance(v, str | float):
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/none-or")
    def none_or(self, comm: Communication, v: int | None = None) -> None:
        w = v if v is not None else n if (n := 3) else 0
        if w == 3:
            comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/global-hooks")
    def global_hooks(self, comm: Communication, n: int = 0) -> None:
        HOOKS.append(n)
        if len(HOOKS) > 3:
            HOOKS.clear()
            comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/ep-timed")
    @timed
    def ep_timed(self, comm: Communication, n: int = 0) -> None:
        comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/ep-validated")
    @validated("code")
    def ep_validated(self, comm: Communication, code: str = "a") -> None:
        comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/ep-both")
    @timed
    @validated("code")
    def ep_both(self, comm: Communication, code: str = "a") -> None:
        comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/class-flag")
    def class_flag(self, comm: Communication, n: int = 0) -> None:
        if Breaker().open:
            comm.call("Tools", "/on").get()
        elif n > 1:
            Breaker.trip()
        comm.respond({})

    @EP("/class-counter")
    def class_counter(self, comm: Communication, n: int = 0) -> None:
        breaker = Breaker()
        breaker.failed()
        if breaker.failures > 3:
            comm.call("Tools", "/has").get()
        comm.respond({})


class Streams(MS):
    @EP("/until-off")
    def until_off(self, comm: Communication) -> None:
        seen = list(itertools.takewhile(lambda one: one.get("on"), _states(comm)))
        comm.respond({"seen": len(seen)})

    @EP("/act-until")
    def act_until(self, comm: Communication) -> None:
        for one in itertools.takewhile(lambda one: one.get("on"), _states(comm)):
            comm.call("Tools", "/set", one).get()
        comm.respond({})

    @EP("/skip-until")
    def skip_until(self, comm: Communication) -> None:
        for one in itertools.dropwhile(lambda one: not one.get("on"), _states(comm)):
            comm.call("Tools", "/set", one).get()
        comm.respond({})

    @EP("/off-only")
    def off_only(self, comm: Communication) -> None:
        off = [one for one in itertools.filterfalse(lambda one: one.get("on"), _states(comm))]
        if off:
            comm.call("Tools", "/set", {"off": len(off)}).get()
        comm.respond({})

    @EP("/known-first")
    def known_first(self, comm: Communication, ids: list = ()) -> None:
        def known(number: int) -> bool:
            return bool(comm.call("Tools", "/has", {"n": number}).get())

        first = list(itertools.takewhile(known, ids[:3]))
        unknown = list(itertools.filterfalse(known, ids[:2]))
        comm.respond({"first": first, "unknown": unknown})

    @EP("/after-known")
    def after_known(self, comm: Communication, ids: list = ()) -> None:
        def known(number: int) -> bool:
            return bool(comm.call("Tools", "/has", {"n": number}).get())

        for number in itertools.dropwhile(known, ids[:3]):
            comm.call("Tools", "/set", {"n": number}).get()
        comm.respond({})

    @EP("/both-sources")
    def both_sources(self, comm: Communication) -> None:
        for one in itertools.chain(_states(comm), _items(comm)):
            if one:
                comm.call("Tools", "/set", {"one": one}).get()
        comm.respond({})

    @EP("/first-then")
    def first_then(self, comm: Communication) -> None:
        for one in itertools.chain([{"on": True}], _states(comm)):
            if one.get("on"):
                comm.call("Tools", "/off").get()
        comm.respond({})

    @EP("/flat")
    def flat(self, comm: Communication) -> None:
        pages = (comm.call("Tools", "/page", {"n": n}).get().get("items", []) for n in range(2))
        for item in itertools.chain.from_iterable(pages):
            comm.call("Tools", "/set", {"item": item}).get()
        comm.respond({})

    @EP("/flat-list")
    def flat_list(self, comm: Communication) -> None:
        pages = (comm.call("Tools", "/page", {"n": n}).get().get("items", []) for n in range(2))
        items = list(itertools.chain.from_iterable(pages))
        comm.respond({"items": items})

    @EP("/truthy")
    def truthy(self, comm: Communication) -> None:
        names = list(map(str, filter(None, _states(comm))))
        comm.respond({"names": names})

    @EP("/first-truthy")
    def first_truthy(self, comm: Communication) -> None:
        found = next(filter(None, _states(comm)), None)
        if found is None:
            comm.call("Tools", "/off").get()
        comm.respond({"found": found})


class Gates(MS):
    runtime = "async"

    @EP("/group-limited")
    async def group_limited(self, comm: Communication, ids: list = ()) -> None:
        limit = asyncio.Semaphore(2)

        async def one(number: int) -> dict:
            async with limit:
                return await comm.call("Tools", "/has", {"n": number})

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(number)) for number in ids[:4]]
        comm.respond({"has": [task.result() for task in tasks]})

    @EP("/tasks-limited")
    async def tasks_limited(self, comm: Communication, ids: list = ()) -> None:
        limit = asyncio.BoundedSemaphore(2)

        async def one(number: int) -> None:
            async with limit:
                if await comm.call("Tools", "/has", {"n": number}):
                    await comm.call("Tools", "/set", {"n": number})

        tasks = [asyncio.create_task(one(number)) for number in ids]
        await asyncio.gather(*tasks)
        comm.respond({})

    @EP("/tasks-in-turn")
    async def tasks_in_turn(self, comm: Communication, ids: list = ()) -> None:
        lock = asyncio.Lock()

        async def one(number: int) -> dict:
            async with lock:
                return await comm.call("Tools", "/has", {"n": number})

        tasks = []
        for number in ids[:3]:
            tasks.append(asyncio.create_task(one(number)))
        for task in tasks:
            await task
        comm.respond({})


def _states(comm: Communication):
    for name in ("/on", "/has", "/on"):
        yield comm.call("Tools", name).get()


def _items(comm: Communication):
    yield from comm.call("Tools", "/page").get().get("items", [])


class Tools(MS):
    @EP("/on")
    def on(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/has")
    def has(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/set")
    def set(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/delete")
    def delete(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/off")
    def off(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/page")
    def page(self, comm: Communication) -> None:
        comm.respond({})
