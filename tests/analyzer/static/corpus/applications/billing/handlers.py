from mup import Communication
from registry import DEFAULTS, Exporter, Provider, check, command, on


@command("charge")
def charge(comm: Communication, amount):
    return comm.call("Bank", "/charge", {"amount": amount}).get()


@command("refund")
def refund(comm: Communication, amount):
    balance = comm.query("billing", "balance", "accounts", {}).get()
    if not balance:
        return None
    return comm.call("Bank", "/refund", {"amount": amount}).get()


@command("preview")
def preview(comm: Communication, amount):
    return {"amount": amount, **DEFAULTS}


@on("paid", "refunded")
def book(comm: Communication, number):
    comm.query("billing", "book", "entries", {"$insert": [{"number": number}]}).get()


@on("paid")
def thank(comm: Communication, number):
    comm.call("Mail", "/send", {"number": number}).get()


@check
def known_customer(comm: Communication, number):
    return bool(comm.query("billing", "customer", "customers", {"_id": number}).get())


@check
def not_blocked(comm: Communication, number):
    return not comm.call("Risk", "/blocked", {"number": number}).get()


@Provider.register("card")
class Card(Provider):
    def pay(self, comm, amount):
        return comm.call("Bank", "/card", {"amount": amount}).get()


@Provider.register("invoice")
class Invoice(Provider):
    fee = 2

    def pay(self, comm, amount):
        row = {"amount": amount + self.fee}
        return comm.query("billing", "invoice", "invoices", {"$insert": [row]}).get()


class Csv(Exporter, suffix="csv"):
    def export(self, comm, number):
        return comm.query("billing", "lines", "entries", {"number": number}).get()


class Pdf(Exporter, suffix="pdf"):
    def export(self, comm, number):
        lines = comm.query("billing", "lines", "entries", {"number": number}).get()
        return comm.call("Printer", "/pdf", {"lines": len(lines)}).get()
