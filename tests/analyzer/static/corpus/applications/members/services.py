"""Subscriptions: what differs from plan to plan stands in the members of enumerations."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from collections import ChainMap
from enum import Enum, IntEnum, StrEnum, auto, unique
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

import events
import handlers  # noqa: F401
import views
from events import bus
from profiles import Account, Cells, Guarded, Profile

from mup import EP, MS, Communication
from mup.errors import CallError


@unique
class Plan(Enum):
    FREE = ("free", 1, None)
    PRO = ("pro", 2, "/pro")
    TEAM = ("team", 3, "/team")

    def __init__(self, label: str, weight: int, path: str | None) -> None:
        self.label = label
        self.weight = weight
        self.path = path

    @classmethod
    def of(cls, label: str) -> Plan:
        for plan in cls:
            if plan.label == label:
                return plan
        raise KeyError(label)

    @property
    def is_paid(self) -> bool:
        return self.path is not None

    def at_least(self, other: Plan) -> bool:
        return self.weight >= other.weight


BY_LABEL = {plan.label: plan for plan in Plan}


class Outcome(Enum):
    ACCEPTED = (202, "/accepted")
    REFUSED = (409, "/refused")
    GONE = (410, None)

    def __new__(cls, code: int, path: str | None):
        obj = object.__new__(cls)
        obj._value_ = code
        obj.path = path
        return obj

    @property
    def failed(self) -> bool:
        return self.value >= 400


class Topic(str, Enum):
    MAIL = ("mail", "/mail")
    CHAT = ("chat", "/chat")

    path: str

    def __new__(cls, value: str, path: str) -> Topic:
        member = str.__new__(cls, value)
        member._value_ = value
        member.path = path
        return member


class Level(IntEnum):
    LOW = 10, "/low"
    HIGH = 20, "/high"

    def __new__(cls, value, path):
        level = int.__new__(cls, value)
        level._value_ = value
        level.path = path
        return level


@dataclass(frozen=True)
class Region:
    name_: str
    path: str
    backup: str | None = None


class Place(Region, Enum):
    EAST = "east", "/east"
    WEST = "west", "/west", "/east"


class Carrier(NamedTuple):
    label: str
    path: str | None
    slow: bool = False


class Shipping(Enum):
    POST = Carrier("post", "/post", slow=True)
    BIKE = Carrier("bike", "/bike")
    NONE = Carrier("none", None)

    @classmethod
    def _missing_(cls, value):
        return cls.NONE


class Coded(Enum):
    """A base without members."""

    def __init__(self, code: str, path: str) -> None:
        self.code = code
        self.path = path

    @classmethod
    def from_code(cls, code):
        return next((one for one in cls if one.code == code), None)


class Tax(Coded):
    NORMAL = "n", "/normal"
    REDUCED = "r", "/reduced"
    STANDARD = "n", "/normal"


def by_post(comm, order):
    comm.call("Tools", "/post", order).get()


def by_bike(comm, order):
    comm.call("Tools", "/bike", order).get()
    comm.call("Tools", "/track", order).get()


class Way(Enum):
    POST = ("post", by_post)
    BIKE = ("bike", by_bike)

    def __init__(self, label, run) -> None:
        self.label = label
        self.run = run

    def __call__(self, comm, order) -> None:
        self.run(comm, order)


class Step(Enum):
    RESERVE = auto()
    CHARGE = auto()
    SHIP = auto()

    @property
    def path(self) -> str:
        return f"/{self.name.lower()}"

    @property
    def undo(self) -> str | None:
        return UNDO.get(self)


UNDO = {Step.RESERVE: "/release", Step.CHARGE: "/refund"}


class Cell(StrEnum):
    A = "a"
    B = "b"

    def __init__(self, value: str) -> None:
        self.path = f"/cell/{value}"


class Counted(Enum):
    """Counts how often each was used."""

    ONE = ("one", "/on")
    TWO = ("two", "/off")

    def __init__(self, label, path) -> None:
        self.label = label
        self.path = path
        self.uses = 0

    def used(self) -> Counted:
        self.uses += 1
        return self


class Moving(Enum):
    """Where it is changes while it runs."""

    HERE = "/on"
    THERE = "/off"

    def __init__(self, target) -> None:
        self.target = target


def plan_of(label):
    for plan in Plan:
        if plan.label == label:
            return plan
    return Plan.FREE


@functools.cache
def topic_named(name):
    return Topic(name)


class Plans(MS):
    @EP("/tier")
    def tier(self, comm: Communication):
        try:
            plan = Plan.of(comm.params.get("plan"))
        except KeyError:
            comm.respond({"error": "plan"}, 400)
            return
        if plan.path is not None:
            comm.call("Tools", plan.path).get()
        comm.respond(plan.label)

    @EP("/known")
    def known(self, comm):
        plan = Plan.PRO
        if plan.path is not None and plan.weight == 2:
            comm.call("Tools", plan.path).get()
        else:
            comm.call("Tools", "/off").get()
        if Plan.FREE.path:
            comm.call("Tools", "/off").get()
        comm.respond({})

    @EP("/either")
    def either(self, comm):
        plan = Plan.PRO if comm.params.get("plan") == "pro" else Plan.TEAM
        comm.call("Tools", plan.path).get()
        if plan.weight > 2:
            comm.call("Tools", "/on", {"plan": plan.label}).get()
        comm.respond({})

    @EP("/paid")
    def paid(self, comm):
        plan = Plan[comm.params.get("name", "FREE")]
        if not plan.is_paid:
            comm.respond({}, 402)
            return
        comm.call("Tools", plan.path).get()
        comm.respond({})

    @EP("/upgrade")
    def upgrade(self, comm):
        plan = BY_LABEL.get(comm.params.get("plan"), Plan.FREE)
        if plan.at_least(Plan.PRO):
            comm.call("Tools", plan.path).get()
        comm.respond({})

    @EP("/helper")
    def helper(self, comm):
        path = plan_of(comm.params.get("plan")).path
        if path:
            comm.call("Tools", path).get()
        comm.respond({})

    @EP("/first")
    def first(self, comm):
        wanted = comm.params.get("plan")
        plan = next((p for p in Plan if p.label == wanted), None)
        if plan is None or (path := plan.path) is None:
            comm.respond({}, 404)
            return
        comm.call("Tools", path).get()
        comm.respond({})

    @EP("/all")
    def all(self, comm):
        for plan in sorted(Plan, key=lambda p: p.weight, reverse=True):
            if plan.path:
                comm.call("Tools", plan.path).get()
        comm.respond([plan.name for plan in Plan])

    @EP("/best")
    def best(self, comm):
        plan = max(Plan, key=lambda p: p.weight)
        if plan.path:
            comm.call("Tools", plan.path).get()
        comm.respond(plan.label)

    @EP("/named")
    def named(self, comm):
        plan = Plan.__members__.get(comm.params.get("name"))
        if plan and plan.path:
            comm.call("Tools", plan.path).get()
        comm.respond({})

    @EP("/pattern")
    def pattern(self, comm):
        plan = plan_of(comm.params.get("plan"))
        match plan:
            case Plan.FREE:
                comm.respond({}, 402)
                return
            case Plan(path=path):
                comm.call("Tools", path).get()
        comm.respond({})


class Kinds(MS):
    @EP("/outcome")
    def outcome(self, comm):
        try:
            outcome = Outcome(comm.params.get("code"))
        except ValueError:
            comm.respond({}, 400)
            return
        if outcome.path:
            comm.call("Tools", outcome.path).get()
        comm.respond({}, outcome.value)

    @EP("/outcome/known")
    def outcome_known(self, comm):
        outcome = Outcome(409)
        if outcome is Outcome.REFUSED and outcome.failed:
            comm.call("Tools", outcome.path).get()
        comm.respond(outcome.name)

    @EP("/topic")
    def topic(self, comm):
        topic = topic_named(comm.params.get("topic", "mail"))
        if topic == "mail":
            comm.call("Tools", topic.path).get()
        else:
            comm.call("Tools", Topic.CHAT.path).get()
        comm.respond({})

    @EP("/topic/text")
    def topic_text(self, comm):
        comm.call("Tools", "/" + Topic.MAIL.value).get()
        if Topic.CHAT == "chat":
            comm.call("Tools", Topic.CHAT.path).get()
        comm.respond({})

    @EP("/level")
    def level(self, comm):
        level = Level(comm.params.get("level", 10))
        if level >= Level.HIGH:
            comm.call("Tools", "/alarm").get()
        comm.call("Tools", level.path).get()
        comm.respond({})

    @EP("/place")
    def place(self, comm):
        place = Place.EAST if comm.params.get("east") else Place.WEST
        comm.call("Tools", place.path).get()
        if place.backup is not None:
            comm.call("Tools", place.backup).get()
        comm.respond(place.value.name_)

    @EP("/shipping")
    def shipping(self, comm):
        way = Shipping[comm.params.get("name", "NONE")]
        if way.value.path is not None:
            comm.call("Tools", way.value.path).get()
        if way.value.slow:
            comm.call("Tools", "/track").get()
        comm.respond({})

    @EP("/shipping/missing")
    def shipping_missing(self, comm):
        way = Shipping(comm.params.get("way"))
        carrier = way.value
        if carrier.path:
            comm.call("Tools", carrier.path).get()
        comm.respond(carrier.label)

    @EP("/tax")
    def tax(self, comm):
        tax = Tax.from_code(comm.params.get("code"))
        if tax is None:
            comm.respond({}, 404)
            return
        comm.call("Tools", tax.path).get()
        if Tax.STANDARD is Tax.NORMAL:
            comm.call("Tools", "/on", {"n": len(Tax)}).get()
        comm.respond(tax.name)

    @EP("/taxes")
    def taxes(self, comm):
        for tax in Tax:
            comm.call("Tools", tax.path).get()
        comm.respond({})

    @EP("/way")
    def way(self, comm):
        Way[comm.params.get("name", "POST")].run(comm, {})
        comm.respond({})

    @EP("/way/called")
    def way_called(self, comm):
        way = Way.BIKE if comm.params.get("fast") else Way.POST
        way(comm, {"way": way.label})
        comm.respond({})

    @EP("/steps")
    def steps(self, comm):
        for step in Step:
            comm.call("Tools", step.path).get()
        if comm.params.get("undo"):
            for step in reversed(Step):
                if step.undo:
                    comm.call("Tools", step.undo).get()
        comm.respond({})

    @EP("/cell")
    def cell(self, comm):
        for cell in Cell:
            comm.call("Tools", cell.path).get()
        comm.respond(f"{Cell.A}")

    @EP("/counted")
    def counted(self, comm):
        one = Counted.ONE.used()
        if one.uses > 2:
            comm.call("Tools", "/alarm").get()
        comm.call("Tools", one.path).get()
        comm.respond({})

    @EP("/moving")
    def moving(self, comm):
        comm.call("Tools", Moving.HERE.target).get()
        comm.respond({})

    @EP("/move")
    def move(self, comm):
        Moving.HERE.target = Moving.THERE.target
        comm.respond({})


class Events(MS):
    @EP("/create")
    def create(self, comm):
        events.bus.publish(comm, "created", {"id": 1, "mail": comm.params.get("mail")})
        comm.respond({})

    @EP("/delete")
    def delete(self, comm):
        bus.publish(comm, "deleted", {})
        comm.respond({})

    @EP("/expire")
    def expire(self, comm):
        bus.publish(comm, "expired" if comm.params.get("expired") else "unknown", {})
        comm.respond({})

    @EP("/any")
    def any(self, comm):
        bus.publish(comm, comm.params.get("event"), {})
        comm.respond({})

    @EP("/move")
    def move(self, comm):
        bus.publish(comm, "moved", {})
        comm.respond({})

    @EP("/other")
    def other(self, comm):
        events.other.publish(comm, "created", {})
        comm.respond({})

    @EP("/mailed")
    def mailed(self, comm):
        bus.publish(comm, "mailed", {})
        comm.respond({})

    @EP("/hooks")
    def hooks(self, comm):
        events.before.run(comm)
        comm.call("Tools", "/ship").get()
        events.after.run(comm)
        comm.respond({})

    @EP("/command")
    def command(self, comm):
        name = comm.params.get("command", "on")
        if name not in events.commands:
            comm.respond({}, 404)
            return
        comm.respond(events.commands.execute(comm, name))

    @EP("/command/known")
    def command_known(self, comm):
        comm.respond([events.commands["stop"](comm), events.admin.execute(comm, "admin-reset")])

    @EP("/route")
    def route(self, comm):
        events.router.dispatch(comm, comm.params.get("method"), "/pro")
        comm.respond({})

    @EP("/signals")
    def signals(self, comm):
        events.signals.send(comm, "sent")
        comm.respond({})

    @EP("/logged")
    def logged(self, comm):
        events.logged.publish(comm, "created", {"names": len(events.logged.names)})
        comm.respond({})

    @EP("/steps")
    def steps(self, comm):
        for step in events.steps:
            step(comm)
        comm.respond({})

    @EP("/platform")
    def platform(self, comm):
        events.platform.events.publish(comm, "started", {"by": events.platform.name})
        comm.respond({})

    @EP("/late")
    def late(self, comm):
        events.late.fire(comm, "x")
        events.late.when("x", answer_late)
        comm.respond({})

    @EP("/once")
    def once(self, comm):
        events.once.fire(comm)
        comm.respond({})


class Views(MS):
    @EP("/routes/{name}")
    def routes(self, comm, name):
        table = MappingProxyType({"a": "/east", "b": "/west"})
        path = table.get(name)
        if path:
            comm.call("Tools", path).get()
        comm.respond({})

    @EP("/constant")
    def constant(self, comm):
        name = comm.params.get("name")
        if name in views.ROUTES:
            comm.call("Tools", views.ROUTES[name]).get()
        for path in views.ROUTES.values():
            comm.call("Tools", path).get()
        comm.respond({})

    @EP("/registered")
    def registered(self, comm):
        answer = views.KNOWN.get(comm.params.get("name"))
        if answer is None:
            comm.respond({}, 404)
            return
        answer(comm)
        comm.respond({})

    @EP("/menu")
    def menu(self, comm):
        for item in views.menu.items.values():
            item(comm)
        comm.respond(list(views.menu.items))

    @EP("/paths")
    def paths(self, comm):
        comm.call("Tools", views.PATHS.mail).get()
        here = SimpleNamespace(where=views.SETTINGS.path, done=False)
        comm.call("Tools", here.where).get()
        here.where = views.SETTINGS.fallback
        comm.call("Tools", here.where).get()
        comm.respond({})

    @EP("/layers")
    def layers(self, comm):
        comm.call("Tools", views.LAYERS["path"]).get()
        layers = ChainMap({"path": "/high"}, views.LAYERS, views.DEFAULTS)
        comm.call("Tools", layers["path"]).get()
        comm.call("Tools", layers.get("fallback", "/on")).get()
        comm.respond({})

    @EP("/layers/changed")
    def layers_changed(self, comm):
        own = {"path": "/high"}
        layers = ChainMap(own, views.DEFAULTS)
        layers["path"] = "/low"
        comm.call("Tools", own["path"]).get()
        comm.respond({})


class Profiles(MS):
    @EP("/rename")
    def rename(self, comm):
        profile = Profile(comm, "old")
        profile.name = comm.params.get("name", "old")
        comm.respond(profile.name)

    @EP("/rename/twice")
    def rename_twice(self, comm):
        profile = Profile(comm, "old")
        profile.name = "new"
        profile.name = "new"
        profile.name = name = comm.params.get("name", "new")
        comm.respond({"name": name})

    @EP("/rename/try")
    def rename_try(self, comm):
        profile = Profile(comm, "old")
        try:
            profile.name = comm.params.get("name", "old")
        except CallError:
            comm.call("Tools", "/alarm").get()
        comm.respond({})

    @EP("/rename/either")
    def rename_either(self, comm):
        profile = Profile(comm, "old") if comm.params.get("old") else Profile(comm, "new")
        profile.name = comm.params.get("name", "new")
        comm.respond({})

    @EP("/rename/named")
    def rename_named(self, comm):
        profile = Profile(comm, "old")
        setattr(profile, "name", comm.params.get("name", "old"))
        comm.respond({})

    @EP("/visits")
    def visits(self, comm):
        profile = Profile(comm, "old")
        profile.visits += comm.params.get("visits", 1)
        comm.respond({})

    @EP("/mail")
    def mail(self, comm):
        account = Account(comm)
        account.email = comm.params.get("mail")
        account.phone = account.email
        comm.respond({})

    @EP("/cells")
    def cells(self, comm):
        cells = Cells(comm)
        for name in comm.params.get("names", []):
            cells[name] = comm.params.get("value")
        comm.respond({})

    @EP("/guarded")
    def guarded(self, comm):
        guarded = Guarded(comm)
        try:
            guarded.where = comm.params.get("where")
        except ValueError:
            comm.respond({}, 400)
            return
        comm.respond({})

    @EP("/both")
    def both(self, comm):
        profile = Profile(comm, "old")
        profile.name, profile.visits = comm.params.get("name", "old"), 10
        comm.respond({})


class News(MS):
    runtime = "async"

    @EP("/topics")
    async def topics(self, comm):
        await events.topics.emit(comm, "created", {})
        comm.respond({})


def answer_late(comm):
    comm.call("Tools", "/on").get()


class Tools(MS):
    @EP("/rename")
    def rename(self, comm):
        comm.respond({})

    @EP("/index")
    def index(self, comm):
        comm.respond({})

    @EP("/unindex")
    def unindex(self, comm):
        comm.respond({})

    @EP("/accepted")
    def accepted(self, comm):
        comm.respond({})

    @EP("/alarm")
    def alarm(self, comm):
        comm.respond({})

    @EP("/bike")
    def bike(self, comm):
        comm.respond({})

    @EP("/cell/a")
    def cell_a(self, comm):
        comm.respond({})

    @EP("/cell/b")
    def cell_b(self, comm):
        comm.respond({})

    @EP("/charge")
    def charge(self, comm):
        comm.respond({})

    @EP("/chat")
    def chat(self, comm):
        comm.respond({})

    @EP("/east")
    def east(self, comm):
        comm.respond({})

    @EP("/high")
    def high(self, comm):
        comm.respond({})

    @EP("/low")
    def low(self, comm):
        comm.respond({})

    @EP("/mail")
    def mail(self, comm):
        comm.respond({})

    @EP("/normal")
    def normal(self, comm):
        comm.respond({})

    @EP("/off")
    def off(self, comm):
        comm.respond({})

    @EP("/on")
    def on(self, comm):
        comm.respond({})

    @EP("/post")
    def post(self, comm):
        comm.respond({})

    @EP("/pro")
    def pro(self, comm):
        comm.respond({})

    @EP("/reduced")
    def reduced(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund(self, comm):
        comm.respond({})

    @EP("/refused")
    def refused(self, comm):
        comm.respond({})

    @EP("/release")
    def release(self, comm):
        comm.respond({})

    @EP("/reserve")
    def reserve(self, comm):
        comm.respond({})

    @EP("/ship")
    def ship(self, comm):
        comm.respond({})

    @EP("/team")
    def team(self, comm):
        comm.respond({})

    @EP("/track")
    def track(self, comm):
        comm.respond({})

    @EP("/west")
    def west(self, comm):
        comm.respond({})
