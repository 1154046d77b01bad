import re
import uuid
from typing import Annotated

import msgspec
from mup import EP, MS, Communication
from mup.errors import QueryError
from tokens import encode


class Contact(msgspec.Struct):
    user: str
    label: Annotated[str, msgspec.Meta(min_length=1, max_length=30)]
    account: str
    external: bool = False


class Transfer(msgspec.Struct, rename={"source": "from", "target": "to"}):
    source: str
    target: str
    amount: int


class Users(MS):
    @EP("/login", method="POST")
    def login(self, comm: Communication) -> None:
        users = comm.query(
            "accounts", "user_by_name", "users", {"name": comm.params.get("username", "")}
        ).get()
        if not users:
            comm.respond({"error": "no such user"}, status=404)
            return
        user = users[0]
        if user["password"] != comm.params.get("password"):
            comm.respond({"error": "wrong password"}, status=401)
            return
        comm.respond({"token": encode({"user": user["name"], "acct": user["account"], "name": user["name"]})})

    @EP("/users", method="POST")
    def create(self, comm: Communication) -> None:
        fields = ("username", "password", "name")
        missing = [f for f in fields if not comm.params.get(f)]
        if missing:
            comm.respond({"error": f"missing: {', '.join(missing)}"}, status=400)
            return
        if not re.fullmatch(r"[a-z0-9_]{2,15}", comm.params["username"]):
            comm.respond({"error": "invalid username"}, status=400)
            return
        known = comm.query("accounts", "user_by_name", "users", {"name": comm.params["username"]}).get()
        if known:
            comm.respond({"error": "user exists"}, status=409)
            return
        user = {"_id": uuid.uuid4().hex, **{f: comm.params[f] for f in fields}}
        comm.query("accounts", "insert_user", "users", {"$insert": [user]}).get()
        comm.respond({"id": user["_id"]}, status=201)


class Contacts(MS):
    def _of(self, comm, user):
        return comm.query("accounts", "contacts", "contacts", {"user": user}).get()

    @EP("/contacts/{user}", method="GET", name="contacts")
    def contacts(self, comm: Communication, user: str) -> None:
        try:
            comm.respond(self._of(comm, user))
        except QueryError:
            comm.respond({"error": "failed to retrieve contacts"}, status=500)

    @EP("/contacts/{user}", method="POST", name="add")
    def add(self, comm: Communication, user: str, contact: Contact) -> None:
        try:
            if not re.fullmatch(r"[0-9]{1,10}", contact.account):
                raise ValueError("invalid account number")
            for known in self._of(comm, user):
                if known["account"] == contact.account:
                    raise ValueError("account already exists as a contact")
                if known["label"] == contact.label:
                    raise ValueError("contact already exists with that label")
            comm.query(
                "accounts", "insert_contact", "contacts", {"$insert": [msgspec.to_builtins(contact)]}
            ).get()
            comm.respond({}, status=201)
        except ValueError as error:
            comm.respond({"error": str(error)}, status=409)
        except QueryError:
            comm.respond({"error": "failed to add contact"}, status=500)


class Balances(MS):
    def setup(self) -> None:
        self.cache = {}

    @EP("/balances/{account}")
    def balance(self, comm: Communication, account: str) -> None:
        if account in self.cache:
            comm.respond({"balance": self.cache[account]})
            return
        rows = comm.query("ledger", "of_account", "transactions", {"account": account}).get()
        balance = sum(row.get("amount", 0) for row in rows)
        if len(self.cache) < 1000:
            self.cache[account] = balance
        comm.respond({"balance": balance})


class History(MS):
    @EP("/transactions/{account}")
    def history(self, comm: Communication, account: str, limit: int = 100) -> None:
        sent = comm.query("ledger", "sent", "transactions", {"from": account})
        received = comm.query("ledger", "received", "transactions", {"to": account})
        rows = sent.get() + received.get()
        rows.sort(key=lambda row: row.get("at", 0), reverse=True)
        comm.respond(rows[:limit])


class Ledger(MS):
    @EP("/transactions", method="POST")
    def transfer(self, comm: Communication, transfer: Transfer) -> None:
        if transfer.amount <= 0 or transfer.source == transfer.target:
            comm.respond({"error": "invalid transfer"}, status=400)
            return
        balance = comm.call("Balances", "/balances/{account}", {"account": transfer.source}).get()["balance"]
        if balance < transfer.amount:
            comm.respond({"error": "insufficient balance"}, status=400)
            return
        comm.query("ledger", "insert", "transactions", {"$insert": [msgspec.to_builtins(transfer)]}).get()
        comm.respond({"status": "ok"}, status=201)
