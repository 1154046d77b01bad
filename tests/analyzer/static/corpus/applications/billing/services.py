import handlers  # noqa: F401  (registers)
from handlers import Csv
from mup import EP, MS, Communication
from registry import CHECKS, COMMANDS, LISTENERS, Exporter, Provider

REPORTS = {}


def _totals(comm):
    return comm.query("billing", "totals", "entries", {}).get()


def _open(comm):
    return comm.query("billing", "open", "invoices", {"paid": False}).get()


REPORTS["totals"] = _totals
REPORTS.update(open=_open)


class Billing(MS):
    pool_size = 4

    @EP("/command/{name}", method="POST")
    def command(self, comm: Communication, name: str, amount: int = 1) -> None:
        if name not in COMMANDS:
            comm.respond({"error": "unknown command"}, status=404)
            return
        comm.respond(COMMANDS[name](comm, amount))

    @EP("/refund", method="POST")
    def refund(self, comm: Communication, amount: int = 1) -> None:
        comm.respond(COMMANDS["refund"](comm, amount))

    @EP("/paid/{number}", method="POST")
    def paid(self, comm: Communication, number: str) -> None:
        for listener in LISTENERS["paid"]:
            listener(comm, number)
        comm.respond({})

    @EP("/event/{name}", method="POST")
    def event(self, comm: Communication, name: str) -> None:
        for listener in LISTENERS.get(name, ()):
            listener(comm, name)
        comm.respond({})

    @EP("/allowed/{number}")
    def allowed(self, comm: Communication, number: str) -> None:
        comm.respond({"allowed": all(check(comm, number) for check in CHECKS)})

    @EP("/pay/{provider}", method="POST")
    def pay(self, comm: Communication, provider: str, amount: int = 1) -> None:
        kind = Provider.known.get(provider)
        if kind is None:
            comm.respond({"error": "unknown provider"}, status=400)
            return
        comm.respond(kind().pay(comm, amount))

    @EP("/export/{number}")
    def export(self, comm: Communication, number: str, suffix: str = "csv") -> None:
        exporter = Exporter.formats[suffix]
        comm.respond({"lines": exporter.export(comm, number)})

    @EP("/report/{name}")
    def report(self, comm: Communication, name: str) -> None:
        try:
            report = REPORTS[name]
        except KeyError:
            comm.respond({"error": "no such report"}, status=404)
            return
        comm.respond(report(comm))

    @EP("/csv/{number}")
    def csv(self, comm: Communication, number: str) -> None:
        comm.respond(Csv().export(comm, number))


class Bank(MS):
    @EP("/charge")
    def charge(self, comm: Communication, amount: int = 1) -> None:
        comm.respond({"charged": amount})

    @EP("/refund")
    def refund(self, comm: Communication, amount: int = 1) -> None:
        comm.respond({"refunded": amount})

    @EP("/card")
    def card(self, comm: Communication, amount: int = 1) -> None:
        comm.respond(comm.call("Risk", "/score", {"amount": amount}).get())


class Risk(MS):
    @EP("/blocked")
    def blocked(self, comm: Communication, number: str = "") -> None:
        comm.respond(bool(comm.query("risk", "blocked", "customers", {"_id": number}).get()))

    @EP("/score")
    def score(self, comm: Communication, amount: int = 1) -> None:
        comm.respond({"score": 1 / max(1, amount)})


class Mail(MS):
    @EP("/send")
    def send(self, comm: Communication, number: str = "") -> None:
        comm.respond({})


class Printer(MS):
    @EP("/pdf")
    def pdf(self, comm: Communication, lines: int = 0) -> None:
        comm.respond({"pages": 1 + lines // 40})
