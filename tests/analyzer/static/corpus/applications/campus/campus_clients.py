"""Clients of what is no store: catalogue, seats, rooms, money, mail, documents."""

import uuid

from campus_http import Conflict, NotFound, Unavailable
from campus_utils import chunked, retry
from mup.errors import BrokenCallError, CallError, CallTimeoutError, CommunicationError


class Client:
    service = ""
    timeout = 5.0

    def __init__(self, comm, user=None):
        self.comm = comm
        self.user = user

    @property
    def headers(self):
        if self.user is not None and self.user.token:
            return {"Authorization": f"Bearer {self.user.token}"}
        return {}

    def start(self, path, params=None, timeout=None):
        return self.comm.call(
            self.service, path, params or {}, headers=self.headers, timeout=timeout or self.timeout
        )

    def ask(self, path, params=None, timeout=None):
        return self.start(path, params, timeout).get()


class CatalogueClient(Client):
    service = "Catalogue"

    def course(self, code):
        try:
            return self.ask("/courses/{code}", {"code": code})
        except CallError as error:
            if error.status == 404:
                raise NotFound("no such course", course=code) from error
            raise

    def courses(self, codes):
        """All courses at once, by code; codes without a course are left out."""
        futures = {code: self.start("/courses/{code}", {"code": code}) for code in dict.fromkeys(codes)}
        found = {}
        for code, future in futures.items():
            response = future.get(check=False)
            if response.status == 200 and response.body:
                found[code] = response.body
        return found

    def sections(self, code, term):
        return self.ask("/sections", {"code": code, "term": term}).get("sections", [])


class SeatsClient(Client):
    service = "Seats"

    def reserve(self, course, student):
        try:
            answer = self.ask("/reserve", {"course": course, "student": student})
        except CallError as error:
            if error.status == 409:
                return None
            raise
        return answer.get("seat")

    def release(self, course, student):
        self.ask("/release", {"course": course, "student": student})

    def join_waitlist(self, course, student):
        return self.ask("/waitlist/join", {"course": course, "student": student}).get("position")

    def waitlist(self, course):
        return self.ask("/waitlist", {"course": course}).get("students", [])


class RoomsClient(Client):
    service = "Rooms"

    def free(self, building, start, end):
        return self.ask("/availability", {"building": building, "start": start, "end": end}).get("rooms", [])

    def book(self, room, start, end, by):
        return self.ask("/book", {"room": room, "start": start, "end": end, "by": by})["booking"]

    def cancel(self, booking):
        self.ask("/cancel", {"booking": booking})


class LedgerClient(Client):
    service = "Ledger"

    def balance(self, student):
        return self.ask("/balance", {"student": student}).get("balance", 0)

    def entries(self, student):
        cursor = None
        while True:
            answer = self.ask("/entries", {"student": student, "cursor": cursor})
            yield from answer.get("entries", [])
            cursor = answer.get("cursor")
            if not cursor:
                break

    @retry(attempts=2)
    def post(self, student, amount, kind, reference):
        return self.ask(
            "/post", {"student": student, "amount": str(amount), "kind": kind, "reference": reference}
        )


class PaymentClient(Client):
    service = "Payments"
    timeout = 10.0

    def charge(self, student, amount, method):
        """Charges once: if the answer is lost, the gateway is asked what became of it."""
        key = uuid.uuid4().hex
        try:
            answer = self.ask(
                "/charge", {"key": key, "student": student, "amount": str(amount), "method": method}
            )
        except (BrokenCallError, CallTimeoutError):
            answer = self.ask("/status", {"key": key})
        except CallError as error:
            if error.status == 402:
                raise Conflict("the payment was declined") from error
            raise
        if answer.get("state") not in ("captured", "pending"):
            raise Conflict("the payment was declined", reason=answer.get("reason"))
        return answer

    @retry(attempts=3)
    def refund(self, charge, amount):
        return self.ask("/refund", {"charge": charge, "amount": str(amount)})


class MailClient(Client):
    service = "Mailer"
    batch_size = 25

    def send_many(self, messages):
        """Sends in batches, all under way at once; returns how many were accepted and how many not."""
        batches = list(chunked(messages, self.batch_size))
        futures = [self.start("/batch", {"messages": batch}) for batch in batches]
        accepted = rejected = 0
        for batch, future in zip(batches, futures):
            try:
                answer = future.get()
            except CommunicationError:
                rejected += len(batch)
                continue
            accepted += answer.get("accepted", len(batch))
        return accepted, rejected


class DocumentClient(Client):
    service = "Documents"

    def scan(self, name, content):
        return self.ask("/scan", {"name": name, "content": content}, timeout=8.0).get("clean", False)

    def store(self, owner, name, content):
        return self.ask("/upload", {"owner": owner, "name": name, "content": content})["id"]

    def remove(self, document):
        self.ask("/remove", {"id": document})


class SigningClient(Client):
    """The signing service has a spare one on the other campus."""

    services = ("Signing", "SigningBackup")

    def sign(self, digest):
        for service in self.services:
            try:
                return self.comm.call(service, "/sign", {"digest": digest}, timeout=2.0).get()["signature"]
            except CommunicationError:
                continue
        raise Unavailable("nothing can be signed now")

    def check(self, digest, signature):
        answer = self.comm.call("Signing", "/check", {"digest": digest, "signature": signature}).get()
        return answer.get("valid", False)
