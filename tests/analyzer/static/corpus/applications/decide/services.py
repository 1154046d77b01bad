"""Decisions that cover every case."""

import sys
from functools import singledispatch
from typing import assert_never

from kinds import (
    STEPS,
    TARGETS,
    Card,
    Cash,
    Channel,
    Invoice,
    Payment,
    Size,
    Status,
    digest,
    dumps,
    geoip,
    payment_of,
)
from mup import EP, MS, Communication
from mup.errors import MupError


@singledispatch
def charge(payment, comm):
    raise NotImplementedError(type(payment))


@charge.register
def _(payment: Card, comm):
    return comm.call("Mailer", "/mail", {"card": payment.number}).get()


@charge.register
def _(payment: Invoice, comm):
    return comm.call("Texter", "/sms", {"address": payment.address}).get()


@charge.register
def _(payment: Cash, comm):
    return None


class Decide(MS):
    @EP("/enum/match")
    def enum_match(self, comm: Communication, channel: Channel) -> None:
        match channel:
            case Channel.MAIL:
                result = comm.call("Mailer", "/mail").get()
            case Channel.SMS:
                result = comm.call("Texter", "/sms").get()
            case Channel.PUSH:
                result = comm.call("Pusher", "/push").get()
        comm.respond(result)

    @EP("/enum/respond")
    def enum_respond(self, comm: Communication, channel: Channel) -> None:
        match channel:
            case Channel.MAIL:
                comm.respond(comm.call("Mailer", "/mail").get())
            case Channel.SMS:
                comm.respond(comm.call("Texter", "/sms").get())
            case Channel.PUSH:
                comm.respond(comm.call("Pusher", "/push").get())

    @EP("/enum/never")
    def enum_never(self, comm: Communication, channel: Channel) -> None:
        match channel:
            case Channel.MAIL:
                comm.respond(comm.call("Mailer", "/mail").get())
            case Channel.SMS | Channel.PUSH:
                comm.respond(None)
            case _:
                assert_never(channel)

    @EP("/enum/elif")
    def enum_elif(self, comm: Communication, paid: bool = False) -> None:
        status = Status.PAID if paid else Status.NEW
        if status is Status.NEW:
            comm.respond("new")
        elif status is Status.PAID:
            comm.respond(comm.call("Mailer", "/mail").get())
        elif status is Status.SENT:
            comm.respond("sent")

    @EP("/literal/match")
    def literal_match(self, comm: Communication, size: Size = "small") -> None:
        match size:
            case "small":
                comm.respond(comm.query("db", "one", "rows", {}).get())
            case "large":
                comm.respond(
                    [comm.query("db", "all", "rows", {}).get(), comm.query("db", "more", "rows", {}).get()]
                )

    @EP("/literal/elif")
    def literal_elif(self, comm: Communication, size: Size = "small") -> None:
        if size == "small":
            comm.respond(comm.query("db", "one", "rows", {}).get())
        elif size == "large":
            comm.respond(comm.query("db", "all", "rows", {}).get())

    @EP("/bool/match")
    def bool_match(self, comm: Communication, urgent: bool) -> None:
        match urgent:
            case True:
                comm.respond(comm.call("Pusher", "/push").get())
            case False:
                comm.respond(comm.call("Mailer", "/mail").get())

    @EP("/union/match")
    def union_match(self, comm: Communication) -> None:
        payment: Payment = payment_of(comm.params)
        match payment:
            case Card(number=number):
                comm.respond(comm.call("Mailer", "/mail", {"card": number}).get())
            case Invoice(address):
                comm.respond(comm.call("Texter", "/sms", {"address": address}).get())
            case Cash():
                comm.respond("thanks")

    @EP("/union/isinstance")
    def union_isinstance(self, comm: Communication) -> None:
        payment = payment_of(comm.params)
        if isinstance(payment, Card):
            comm.respond(comm.call("Mailer", "/mail").get())
        elif isinstance(payment, Invoice):
            comm.respond(comm.call("Texter", "/sms").get())
        elif isinstance(payment, Cash):
            comm.respond("thanks")
        else:
            assert_never(payment)

    @EP("/union/dispatch")
    def union_dispatch(self, comm: Communication) -> None:
        charge(payment_of(comm.params), comm)
        comm.respond({})

    @EP("/assert")
    def asserted(self, comm: Communication, n: int = 0) -> None:
        if n == 0:
            comm.respond("none")
        elif n > 0:
            comm.respond(comm.query("db", "some", "rows", {"n": n}).get())
        else:
            assert False, "n is never negative"

    @EP("/exit")
    def exits(self, comm: Communication) -> None:
        if comm.params.get("stop"):
            sys.exit("stopped")
        comm.respond(comm.query("db", "one", "rows", {}).get())

    @EP("/unreachable")
    def unreachable(self, comm: Communication, n: int = 1) -> None:
        while True:
            rows = comm.query("db", "poll", "rows", {}).get()
            if rows:
                comm.respond(rows)
                return
            n += 1
            if n > 5:
                raise TimeoutError("nothing came")

    @EP("/table")
    def table(self, comm: Communication, channel: Channel) -> None:
        target = TARGETS[channel]
        comm.respond(comm.call(target.service, target.path).get())

    @EP("/table/unpacked")
    def table_unpacked(self, comm: Communication, channel: Channel) -> None:
        service, path = TARGETS[channel]
        comm.respond(comm.call(service, path).get())

    @EP("/table/all")
    def table_all(self, comm: Communication) -> None:
        for service, path in STEPS:
            comm.call(service, path).get()
        comm.respond({})

    @EP("/table/items")
    def table_items(self, comm: Communication, skip: list[str] = []) -> None:
        sent = {}
        for channel, target in TARGETS.items():
            if channel.value in skip:
                continue
            try:
                sent[channel.value] = comm.call(*target).get()
            except MupError:
                sent[channel.value] = None
        comm.respond(sent)

    @EP("/table/get")
    def table_get(self, comm: Communication, name: str = "") -> None:
        handler = {"a": self._a, "b": self._b}.get(name)
        if handler is None:
            comm.respond({"error": "no such handler"}, status=404)
            return
        handler(comm)

    def _a(self, comm):
        comm.respond(comm.query("db", "a", "rows", {}).get())

    def _b(self, comm):
        comm.respond(comm.query("db", "b", "rows", {}).get())

    @EP("/imports")
    def imports(self, comm: Communication, name: str = "") -> None:
        where = (
            geoip.lookup(name)
            if geoip is not None
            else comm.call("Mailer", "/mail", {"name": digest(name)}).get()
        )
        comm.respond(dumps(where))

    @EP("/ternary")
    def ternary(self, comm: Communication, kind: str = "") -> None:
        path = "/sms" if kind == "sms" else "/mms"
        comm.respond(comm.call("Texter", path).get())

    @EP("/guards")
    def guards(self, comm: Communication) -> None:
        match comm.params:
            case {"op": "add", "value": int(value)} if value > 0:
                comm.query("db", "add", "rows", {"$insert": [{"v": value}]}).get()
            case {"op": "clear"}:
                comm.query("db", "clear", "rows", {"$delete": {"filter": {}}}).get()
            case {"op": str(other)}:
                comm.respond({"error": f"no operation {other}"}, status=400)
                return
            case _:
                comm.respond({"error": "no operation"}, status=400)
                return
        comm.respond({})


class Mailer(MS):
    @EP("/mail")
    def mail(self, comm: Communication) -> None:
        comm.respond({"sent": True})


class Texter(MS):
    @EP("/sms")
    def sms(self, comm: Communication) -> None:
        comm.respond({"sent": True})

    @EP("/mms")
    def mms(self, comm: Communication) -> None:
        comm.respond({"sent": True})


class Pusher(MS):
    @EP("/push")
    def push(self, comm: Communication) -> None:
        devices = comm.query("push", "devices", "devices", {}).get()
        comm.respond({"devices": len(devices)})
