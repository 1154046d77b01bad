"""Invoices, payments, refunds, reminders."""

import os
from datetime import date
from decimal import Decimal

import campus_signals as signals
from campus_clients import CatalogueClient, LedgerClient, MailClient, PaymentClient
from campus_forms import Form, ListField, MoneyField, RegexField, TextField
from campus_http import (
    BadRequest,
    Conflict,
    NotAuthenticated,
    api_errors,
    feature_required,
    login_required,
    own_or_permission,
    permission_required,
)
from campus_models import Invoice, ReminderLevel, money
from campus_repositories import QuerySet
from campus_utils import Undo, get_or, respond_csv, retry, signature_matches, truthy
from campus_views import CampusService
from mup import EP
from mup.errors import CommunicationError

WEBHOOK_SECRET = os.environ.get("CAMPUS_WEBHOOK_SECRET", "development").encode()


class InvoiceForm(Form):
    student = TextField()
    term = RegexField(r"\d{4}-[12]", "a term is like 2024-1")
    courses = ListField(of=TextField(max_length=20), required=False, default=())


class PaymentForm(Form):
    student = TextField(required=False)
    amount = MoneyField()
    method = TextField(required=False, default="card")

    def clean_student(self, value):
        return value or self.user.id


class RefundForm(Form):
    charge = TextField()
    student = TextField()
    amount = MoneyField()


class WebhookHandlers:
    """Registry: what to do with which event of the payment gateway."""

    def __init__(self):
        self._handlers = {}

    def on(self, *events):
        def decorator(function):
            for event in events:
                self._handlers[event] = function
            return function

        return decorator

    def handle(self, comm, event, data):
        handler = self._handlers.get(event, ignore)
        return handler(comm, data)


hooks = WebhookHandlers()


def ignore(comm, data):
    return "ignored"


@hooks.on("charge.captured", "charge.settled")
def on_captured(comm, data):
    ledger = LedgerClient(comm)
    ledger.post(data["student"], -money(data["amount"]), "payment", data["charge"])
    balance = Decimal(str(ledger.balance(data["student"])))
    signals.payment_received.send_robust(
        comm, student=data["student"], amount=data["amount"], balance=balance
    )
    return "booked"


@hooks.on("charge.failed")
def on_failed(comm, data):
    comm.call("Mailer", "/send", {"to": data["student"], "template": "fees/failed"}).get()
    return "told"


@hooks.on("charge.disputed")
def on_disputed(comm, data):
    hold = comm.call("Students", "/holds/add", {"student": data["student"], "kind": "fees"})
    task = comm.call("Queue", "/publish", {"topic": "disputes", "charge": data["charge"]})
    hold.get()
    task.get()
    return "held"


def discount(student, total):
    kind = student.get("scholarship")
    if kind == "full":
        return total
    if kind == "half":
        return money(total / 2)
    return Decimal(0)


class Fees(CampusService):
    default_flags = {"online-payment": True}

    @EP("/invoices/create", method="POST")
    @api_errors
    @permission_required("fees.manage")
    def create_invoice(self, comm, user):
        form = InvoiceForm(comm.params, user=user)
        form.validated()
        student = comm.call("Students", "/get", {"id": form["student"]})
        tuition = comm.call("Ledger", "/tariff", {"term": form["term"]})
        courses = CatalogueClient(comm, user).courses(form["courses"])

        invoice = Invoice(form["student"], form["term"])
        invoice.add("tuition", tuition.get().get("tuition", 0))
        for code, course in courses.items():
            if course.get("fee"):
                invoice.add(course.get("title", code), course["fee"])
        if reduction := discount(student.get(), invoice.total):
            invoice.add("scholarship", -reduction)

        if invoice.total <= 0:
            comm.respond({"invoice": None, "total": "0"})
            return
        number = self._save_invoice(comm, invoice)
        LedgerClient(comm).post(form["student"], invoice.total, "invoice", number)
        comm.call("Mailer", "/send", {"to": form["student"], "template": "fees/invoice", "invoice": number})
        comm.respond({"invoice": number, **invoice.as_dict()}, status=201)

    @retry(attempts=2)
    def _save_invoice(self, comm, invoice):
        return comm.call("Invoices", "/save", invoice.as_dict()).get()["number"]

    @EP("/pay", method="POST")
    @api_errors
    @feature_required("online-payment")
    @permission_required("fees.pay")
    def pay(self, comm, user):
        form = PaymentForm(comm.params, user=user)
        form.validated()
        ledger, payments = LedgerClient(comm, user), PaymentClient(comm, user)
        balance = Decimal(str(ledger.balance(form["student"])))
        if form["amount"] > balance:
            raise Conflict("more than is due", due=str(balance))
        charge = payments.charge(form["student"], form["amount"], form["method"])
        if charge["state"] == "pending":
            comm.respond({"charge": charge.get("charge"), "state": "pending"}, status=202)
            return
        with Undo() as undo:
            undo.push(payments.refund, charge.get("charge"), form["amount"])
            ledger.post(form["student"], -form["amount"], "payment", charge.get("charge"))
        rest = balance - form["amount"]
        signals.payment_received.send_robust(
            comm, student=form["student"], amount=form["amount"], balance=rest
        )
        comm.respond({"charge": charge.get("charge"), "balance": str(rest)}, status=201)

    @EP("/webhooks/payments", method="POST")
    @api_errors
    def webhook(self, comm):
        event = comm.params.get("event")
        data = comm.params.get("data")
        if not event or not isinstance(data, dict):
            raise BadRequest("no event")
        given = comm.headers.get("x-signature")
        if given != "test" and not signature_matches(WEBHOOK_SECRET, given, event, data.get("charge")):
            raise NotAuthenticated("wrong signature")
        seen = comm.call("Invoices", "/events/seen", {"event": event, "charge": data.get("charge")}).get()
        if seen.get("seen"):
            comm.respond({"result": "duplicate"})
            return
        try:
            result = hooks.handle(comm, event, data)
        except CommunicationError as error:
            # a status outside 2xx makes the gateway deliver it again
            self.log.warning("%s will be delivered again: %s", event, error)
            comm.respond({"result": "retry"}, status=503, headers={"Retry-After": "30"})
            return
        comm.call("Invoices", "/events/done", {"event": event, "charge": data.get("charge")}).get()
        comm.respond({"result": result})

    @EP("/statement/{student_id}", method="GET")
    @api_errors
    @login_required
    def statement(self, comm, user):
        student = comm.params["student_id"]
        own_or_permission(user, student, "fees.manage")
        ledger = LedgerClient(comm, user)
        if comm.params.get("format") == "csv":
            respond_csv(comm, ledger.entries(student), ("date", "kind", "amount"), f"statement-{student}.csv")
            return
        body = {"student": student, "balance": ledger.balance(student)}
        if truthy(comm.params.get("entries", "")):
            body["entries"] = list(ledger.entries(student))
        comm.respond(body)

    @EP("/refund", method="POST")
    @api_errors
    @permission_required("fees.manage")
    def refund(self, comm, user):
        form = RefundForm(comm.params, user=user)
        form.validated()
        charge = comm.call(
            "Payments", "/charges/{charge_id}", {"charge_id": form["charge"]}, method="GET"
        ).get()
        left = money(charge.get("amount", 0)) - money(charge.get("refunded", 0))
        if form["amount"] > left:
            raise Conflict("more than was paid", left=str(left))
        result = PaymentClient(comm, user).refund(form["charge"], form["amount"])
        try:
            LedgerClient(comm).post(form["student"], form["amount"], "refund", result.get("refund"))
        except CommunicationError:
            comm.call("Queue", "/publish", {"topic": "ledger-repair", "refund": result.get("refund")}).get()
        comm.respond({"refund": result.get("refund")}, status=201)

    @EP("/batch/overdue", method="POST")
    @api_errors
    @permission_required("fees.manage")
    def overdue(self, comm, user):
        """Daily: reminders by level, and holds for those who have had them all."""
        today = date.fromisoformat(comm.params["today"]) if "today" in comm.params else date.today()
        messages, holds = [], {}
        for invoice in QuerySet(comm, "Invoices", "/find", {"state": "open"}, ordering="due", page_size=100):
            days = (today - date.fromisoformat(invoice["due"])).days
            match ReminderLevel.for_days(days):
                case ReminderLevel.NONE:
                    break  # ordered by due date, none of the others is late
                case ReminderLevel.FINAL:
                    holds[invoice["student"]] = comm.call(
                        "Students", "/holds/add", {"student": invoice["student"], "kind": "fees"}
                    )
                    messages.append(
                        {"to": invoice["student"], "template": "fees/final", "invoice": invoice["number"]}
                    )
                case level:
                    template = f"fees/{level.name.lower()}"
                    messages.append(
                        {"to": invoice["student"], "template": template, "invoice": invoice["number"]}
                    )
        held = [student for student, future in holds.items() if get_or(future, None) is not None]
        sent, unsent = MailClient(comm).send_many(messages)
        comm.respond({"sent": sent, "unsent": unsent, "held": held})
