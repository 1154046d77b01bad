"""The three layered systems of Garbi's thesis, section 4.3.1: their calls; numbers are drawn per instance.

The thesis names them, cites where they come from and states ranges (its Table 1), not the models. So:

shop
    Tribastone, "A Fluid Model for Layered Queueing Networks", IEEE TSE 39(6), 2013. As the file
    ``tribastone.lqnx`` of the public test models of the LQN tools (github.com/layeredqueuing/V5): clients
    visit (an OR: from a cache or an external read), buy (an AND fork: pack and ship), are notified and save;
    a file server with second phases and a backup. The client's direct ``read`` is left out, its three visits
    are one.
msrv
    Gias, Casale, Woodside, "ATOM", ICDCS 2019, model the Sock Shop demonstration system. Built here from what
    is publicly known of that system: router, front end with home, catalogue and cart pages, catalogue and
    cart services, each with a database. How many activities ATOM's model has was not found: one per entry.
gcs
    Petriu, Shen, "Applying the UML Performance Profile", TOOLS 2002: a group communication server whose users
    subscribe, submit, update and retrieve documents of a server with disks. Its LQN was not found in text
    form; this one is built from that description alone, with an AND fork in the update.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Processor, Task

__all__ = ["RANGES", "TOPOLOGIES", "instance"]

ZERO = Constant(0.0)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Table 1 of the thesis: clients, threads, cores, and seconds of an activity."""

    clients: tuple[int, int]
    threads: tuple[int, int]
    cores: tuple[int, int]
    times: tuple[float, float]


RANGES: Mapping[str, Ranges] = {
    "shop": Ranges((10, 100), (2, 60), (1, 60), (0.002, 1.0)),
    "msrv": Ranges((50, 200), (1, 70), (1, 20), (0.004, 1.0)),
    "gcs": Ranges((80, 150), (5, 100), (5, 100), (0.002, 0.1)),
}

ASYNCHRONOUS = 0.25
"""Part of the calls that release the caller's thread; the thesis says "some"."""


class _Draw:
    """Draws the numbers of one instance, in the order in which the model is written down."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = np.random.default_rng([seed, *name.encode()])
        self.ranges = RANGES[name]

    def whole(self, bounds: tuple[int, int]) -> int:
        return int(self.rng.integers(bounds[0], bounds[1] + 1))

    def act(self, name: str, *calls: str, work: bool = True, replies: bool = False) -> Activity:
        low, high = self.ranges.times
        time = Exponential(float(self.rng.uniform(low, high))) if work else ZERO
        return Activity(
            name=name, demand=time, delay=ZERO, calls=tuple(map(self.call, calls)), replies=replies
        )

    def call(self, target: str) -> Call:
        task, entry = target.split(".")
        releases = self.rng.random() < ASYNCHRONOUS
        return Call(task=task, entry=entry, kind="releasing" if releases else "synchronous")

    def odds(self, count: int) -> tuple[float, ...]:
        draws = self.rng.random(count)
        values = [float(v) for v in draws / draws.sum()]
        return (*values[:-1], 1.0 - sum(values[:-1]))

    def task(self, name: str, *entries: Entry, processor: str | None = None) -> Task:
        return Task(
            name=name, threads=self.whole(self.ranges.threads), processor=processor or f"P{name}",
            entries=entries, admission="random",
        )  # fmt: skip

    def clients(self, entry: Entry) -> Task:
        # A client has no thread to release.
        activities = tuple(map(_waiting, entry.activities))
        return Task(
            name="Client", role="reference", threads=self.whole(self.ranges.clients),
            entries=(replace(entry, activities=activities),),
        )  # fmt: skip

    def model(self, name: str, *tasks: Task) -> Model:
        used = dict.fromkeys(t.processor for t in tasks if t.processor is not None)
        processors = tuple(Processor(name=p, cores=self.whole(self.ranges.cores)) for p in used)
        return Model(name=name, processors=processors, tasks=tasks)


def _waiting(activity: Activity) -> Activity:
    """Return an activity whose calls keep the thread, whatever was drawn for them."""
    return replace(activity, calls=tuple(replace(c, kind="synchronous") for c in activity.calls))


def _chain(name: str, *activities: Activity) -> Entry:
    names = [a.name for a in activities]
    arcs = tuple(Precedence(pre=(a,), post=(b,)) for a, b in itertools.pairwise(names))
    return Entry(name=name, start=names[0], activities=activities, precedences=arcs)


def _choice(name: str, first: Activity, odds: tuple[float, ...], *branches: Activity) -> Entry:
    fork = Precedence(pre=(first.name,), post=tuple(b.name for b in branches), fork="or", probabilities=odds)
    return Entry(name=name, start=first.name, activities=(first, *branches), precedences=(fork,))


def shop(seed: int) -> Model:
    """Return an instance of the distributed shop: 14 times."""
    d = _Draw("shop", seed)
    cycle = _chain(
        "cycle",
        d.act("think"),
        d.act("visit", "Server.visit", work=False),
        d.act("buy", "Server.buy", work=False),
        d.act("notify", "Server.notify", work=False),
        d.act("save", "Server.save", work=False),
    )
    visit = _choice("visit", d.act("cache"), d.odds(2), d.act("internal"), d.act("external", "Files.read"))
    buy = Entry(
        name="buy",
        start="prepare",
        activities=(d.act("prepare"), d.act("pack"), d.act("ship"), d.act("display")),
        precedences=(
            Precedence(pre=("prepare",), post=("pack", "ship"), fork="and"),
            Precedence(pre=("pack", "ship"), post=("display",), join="and"),
        ),
    )
    server = d.task(
        "Server", visit, buy, _chain("notify", d.act("notify")), _chain("save", d.act("save", "Files.write"))
    )
    write = _chain("write", d.act("write", replies=True), d.act("flush", "Backup.get", "Backup.update"))
    files = d.task("Files", _chain("read", d.act("read")), write, processor="PDisk")
    backup = d.task(
        "Backup", _chain("get", d.act("get")), _chain("update", d.act("update")), processor="PDisk"
    )
    return d.model("shop", d.clients(cycle), server, files, backup)


def msrv(seed: int) -> Model:
    """Return an instance of the microservices: 16 times."""
    d = _Draw("msrv", seed)
    pages = ("home", "catalogue", "cart")
    cycle = _choice("cycle", d.act("think"), d.odds(3), *(d.act(p, f"Router.{p}", work=False) for p in pages))
    router = d.task("Router", *(_chain(p, d.act(p, f"Front.{p}")) for p in pages))
    front = d.task(
        "Front",
        _chain("home", d.act("home")),
        _chain("catalogue", d.act("catalogue", "Catalogue.list", "Catalogue.item")),
        _choice(
            "cart",
            d.act("cart"),
            d.odds(2),
            d.act("show", "Carts.get", work=False),
            d.act("put", "Carts.add", work=False),
        ),
    )
    catalogue = d.task(
        "Catalogue",
        _chain("list", d.act("list", "CatalogueDb.query")),
        _chain("item", d.act("item", "CatalogueDb.query")),
    )
    carts = d.task(
        "Carts", _chain("get", d.act("get", "CartsDb.find")), _chain("add", d.act("add", "CartsDb.write"))
    )
    catalogue_db = d.task("CatalogueDb", _chain("query", d.act("query")))
    carts_db = d.task("CartsDb", _chain("find", d.act("find")), _chain("write", d.act("write")))
    return d.model("msrv", d.clients(cycle), router, front, catalogue, carts, catalogue_db, carts_db)


def gcs(seed: int) -> Model:
    """Return an instance of the group communication server: 15 times."""
    d = _Draw("gcs", seed)
    uses = ("subscribe", "submit", "update", "retrieve")
    cycle = _choice("cycle", d.act("think"), d.odds(4), *(d.act(u, f"Server.{u}", work=False) for u in uses))
    update = Entry(
        name="update",
        start="validate",
        activities=(
            d.act("validate"),
            d.act("store", "Documents.write"),
            _waiting(
                d.act("announce", "Sender.send")
            ),  # the second branch of a fork has no thread to release
            d.act("confirm"),
        ),
        precedences=(
            Precedence(pre=("validate",), post=("store", "announce"), fork="and"),
            Precedence(pre=("store", "announce"), post=("confirm",), join="and"),
        ),
    )
    server = d.task(
        "Server",
        _chain("subscribe", d.act("subscribe")),
        _chain("submit", d.act("submit", "Documents.write")),
        update,
        _chain("retrieve", d.act("retrieve", "Documents.read"), d.act("reply", "Sender.send")),
    )
    documents = d.task(
        "Documents", _chain("read", d.act("read", "Disk.get")), _chain("write", d.act("write", "Disk.put"))
    )
    disk = d.task("Disk", _chain("get", d.act("get")), _chain("put", d.act("put")))
    sender = d.task("Sender", _chain("send", d.act("send")))
    return d.model("gcs", d.clients(cycle), server, documents, disk, sender)


TOPOLOGIES = {"shop": shop, "msrv": msrv, "gcs": gcs}


def instance(name: str, seed: int) -> Model:
    """Return one random instance of a system."""
    return TOPOLOGIES[name](seed)
