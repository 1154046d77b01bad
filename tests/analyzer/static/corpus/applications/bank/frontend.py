import logging
from decimal import Decimal, InvalidOperation

from mup import EP, MS, Communication
from mup.communication import Cookie
from mup.errors import CallError, CommunicationError
from tokens import TokenError, decode

log = logging.getLogger(__name__)

TOKEN = "token"
LOCAL_ROUTING = "883745000"
TIMEOUT = 4.0


class PaymentFailed(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Frontend(MS):
    runtime = "thread"
    pool_size = 16

    def _claims(self, comm):
        try:
            return decode(comm.cookies.get(TOKEN))
        except TokenError:
            return None

    def _redirect(self, comm, place, message=None):
        target = place if message is None else f"{place}?msg={message}"
        comm.respond(None, status=303, headers={"Location": target})

    @EP("/version", method="GET")
    def version(self, comm: Communication) -> None:
        comm.respond("v0.6.4")

    @EP("/ready", method="GET")
    def ready(self, comm: Communication) -> None:
        comm.respond("ok")

    @EP("/home", method="GET")
    def home(self, comm: Communication) -> None:
        claims = self._claims(comm)
        if claims is None:
            self._redirect(comm, "/login")
            return
        account = claims["acct"]

        balance = None
        try:
            balance = comm.call(
                "Balances", "/balances/{account}", {"account": account}, timeout=TIMEOUT
            ).get()
        except CommunicationError as error:
            log.error("cannot get the balance: %s", error)

        history = None
        try:
            history = comm.call("History", "/transactions/{account}", {"account": account}).get()
        except CommunicationError as error:
            log.error("cannot get the history: %s", error)

        contacts = []
        try:
            contacts = comm.call("Contacts", "/contacts/{user}", {"user": claims["user"]}, method="GET").get()
        except CommunicationError as error:
            log.error("cannot get the contacts: %s", error)

        self._label(account, history, contacts)
        comm.respond({"name": claims["name"], "balance": balance, "history": history, "contacts": contacts})

    def _label(self, account, transactions, contacts):
        if transactions is None or contacts is None:
            return
        labels = {c["account"]: c.get("label") for c in contacts}
        for transaction in transactions:
            if transaction["to"] == account:
                transaction["label"] = labels.get(transaction["from"])
            elif transaction["from"] == account:
                transaction["label"] = labels.get(transaction["to"])

    @EP("/dashboard", method="GET")
    def dashboard(self, comm: Communication) -> None:
        """All three at the same time."""
        claims = self._claims(comm)
        if claims is None:
            return self._redirect(comm, "/login")
        parts = {
            "balance": comm.call("Balances", "/balances/{account}", {"account": claims["acct"]}),
            "history": comm.call("History", "/transactions/{account}", {"account": claims["acct"]}),
            "contacts": comm.call("Contacts", "/contacts/{user}", {"user": claims["user"]}, method="GET"),
        }
        page = {}
        for name, future in parts.items():
            try:
                page[name] = future.get()
            except CommunicationError:
                log.exception("%s is not available", name)
                page[name] = None
        comm.respond(page)

    @EP("/payment", method="POST")
    def payment(self, comm: Communication) -> None:
        claims = self._claims(comm)
        if claims is None:
            comm.respond({"error": "not authenticated"}, status=401)
            return
        form = comm.params
        try:
            recipient = form["account_num"]
            if recipient == "add":
                recipient = form["contact_account_num"]
                label = form.get("contact_label")
                if label:
                    self._add_contact(comm, claims, label, recipient)
            self._submit(comm, claims["acct"], recipient, form["amount"])
            self._redirect(comm, "/home", "Payment initiated")
            return
        except CommunicationError as error:
            log.error("payment failed: %s", error)
        except PaymentFailed as failure:
            self._redirect(comm, "/home", f"Payment failed: {failure.reason}")
            return
        self._redirect(comm, "/home", "Payment failed")

    @EP("/deposit", method="POST")
    def deposit(self, comm: Communication) -> None:
        claims = self._claims(comm)
        if claims is None:
            comm.respond({"error": "not authenticated"}, status=401)
            return
        form = comm.params
        try:
            if form["account"] == "add":
                routing = form["routing"]
                if routing == LOCAL_ROUTING:
                    raise PaymentFailed("invalid routing number")
                if form.get("label"):
                    self._add_contact(comm, claims, form["label"], form["external"])
                source = form["external"]
            else:
                source = form["account"]
            self._submit(comm, source, claims["acct"], form["amount"])
        except PaymentFailed as failure:
            message = f"Deposit failed: {failure.reason}"
        except CommunicationError:
            message = "Deposit failed"
        else:
            message = "Deposit accepted"
        self._redirect(comm, "/home", message)

    def _submit(self, comm, source, target, amount):
        try:
            cents = int(Decimal(amount) * 100)
        except InvalidOperation as error:
            raise PaymentFailed("no amount") from error
        try:
            comm.call("Ledger", "/transactions", {"from": source, "to": target, "amount": cents}).get()
        except CallError as error:
            if error.status < 500:
                raise PaymentFailed(str(error.body)) from error
            raise

    def _add_contact(self, comm, claims, label, account):
        contact = {"user": claims["user"], "label": label, "account": account}
        answer = comm.call("Contacts", "/contacts/{user}", contact, method="POST").get(check=False)
        if answer.status >= 400:
            raise PaymentFailed("cannot add the contact")

    @EP("/login", method="POST")
    def login(self, comm: Communication) -> None:
        try:
            answer = comm.call("Users", "/login", dict(comm.params)).get()
        except CallError as error:
            status = error.status if error.status in (401, 404) else 502
            comm.respond({"error": "login failed"}, status=status)
        except CommunicationError:
            comm.respond({"error": "try again later"}, status=503)
        else:
            comm.respond(
                None,
                status=303,
                headers={"Location": "/home"},
                cookies={TOKEN: Cookie(value=answer["token"], max_age=3600)},
            )

    @EP("/signup", method="POST")
    def signup(self, comm: Communication) -> None:
        try:
            created = comm.call("Users", "/users", dict(comm.params)).get(check=False)
            if created.status == 201 or created.ok:
                return self.login(comm)
        except CommunicationError as error:
            log.error("signup failed: %s", error)
        self._redirect(comm, "/login", "Account creation failed")

    @EP("/logout", method="POST")
    def logout(self, comm: Communication) -> None:
        comm.respond(None, 303, {"Location": "/login"}, {TOKEN: Cookie(value="", max_age=0)})
