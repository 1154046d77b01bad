"""Loans and reminders. The old library system is slow: threads wait for it."""

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

from campus_http import (
    BadRequest,
    Conflict,
    api_errors,
    login_required,
    own_or_permission,
    permission_required,
)
from campus_models import ReminderLevel
from campus_repositories import Loans
from campus_utils import TTLCache, chunked
from campus_views import CampusService
from mup import EP
from mup.errors import CallError, CommunicationError

RENEWAL_DAYS = 14
MAX_RENEWALS = 3

titles = TTLCache(3600)
reminding = threading.Lock()


class Library(CampusService):
    runtime = "thread"
    pool_size = 10

    def _titles(self, comm, items):
        """Titles by item, from the cache as far as it has them."""
        known = {item: title for item in items if (title := titles.get(item)) is not None}
        futures = [
            (item, comm.call("LibraryCatalogue", "/title", {"item": item}))
            for item in items
            if item not in known
        ]
        for item, future in futures:
            try:
                known[item] = future.get().get("title", item)
            except CommunicationError:
                known[item] = item
            else:
                titles.set(item, known[item])
        return known

    @EP("/loans/{student_id}", method="GET")
    @api_errors
    @login_required
    def loans(self, comm, user):
        student = comm.params["student_id"]
        own_or_permission(user, student, "loans.manage")
        loans = list(Loans(comm).filter(student=student))
        names = self._titles(comm, [loan["item"] for loan in loans])
        today = date.today().isoformat()
        comm.respond(
            {
                "loans": [
                    {**loan, "title": names[loan["item"]], "overdue": loan.get("due", today) < today}
                    for loan in loans
                ]
            }
        )

    @EP("/renew", method="POST")
    @api_errors
    @login_required
    def renew(self, comm, user):
        numbers = comm.params.get("loans")
        if not isinstance(numbers, list) or not numbers:
            raise BadRequest("no loans")
        renewed, refused = {}, {}
        for number in numbers:
            try:
                renewed[number] = self._renew(comm, user, number)
            except Conflict as error:
                refused[number] = error.detail
        if refused and not renewed:
            raise Conflict("nothing was renewed", loans=refused)
        comm.respond({"renewed": renewed, "refused": refused})

    def _renew(self, comm, user, number):
        loan = Loans(comm).get(number)
        own_or_permission(user, loan.get("student"), "loans.manage")
        if loan.get("renewals", 0) >= MAX_RENEWALS:
            raise Conflict("renewed too often")
        requests = comm.call("LibraryCatalogue", "/requests", {"item": loan["item"]}).get()
        if requests.get("waiting"):
            raise Conflict("somebody waits for it")
        due = (date.today() + timedelta(days=RENEWAL_DAYS)).isoformat()
        Loans(comm).save(number, due=due, renewals=loan.get("renewals", 0) + 1)
        return due

    @EP("/reserve", method="POST")
    @api_errors
    @login_required
    def reserve(self, comm, user):
        """The first branch library that has the item keeps it for the student."""
        item = comm.params.get("item")
        if not item:
            raise BadRequest("no item")
        branches = comm.call("LibraryCatalogue", "/branches", {"item": item}).get().get("branches", [])
        preferred = comm.params.get("branch")
        for branch in sorted(branches, key=lambda name: name != preferred):
            try:
                kept = comm.call(
                    "LibraryCatalogue", "/keep", {"item": item, "branch": branch, "for": user.id}, timeout=3.0
                ).get()
            except CallError:
                continue
            if kept.get("kept"):
                break
        else:
            place = comm.call("LibraryCatalogue", "/requests/add", {"item": item, "for": user.id}).get()
            comm.respond({"item": item, "place": place.get("place")}, status=202)
            return
        comm.respond({"item": item, "branch": branch}, status=201)

    @EP("/batch/reminders", method="POST")
    @api_errors
    @permission_required("loans.manage")
    def reminders(self, comm, user):
        if not reminding.acquire(blocking=False):
            raise Conflict("reminders are under way")
        try:
            by_student = defaultdict(list)
            for loan in Loans(comm).overdue():
                days = (date.today() - date.fromisoformat(loan["due"])).days
                by_student[loan["student"]].append((ReminderLevel.for_days(days), loan["item"]))
            fined = self._fine(comm, by_student)
            mailed = 0
            with ThreadPoolExecutor(max_workers=4) as pool:
                for batch in chunked(by_student.items(), 8):
                    mailed += sum(pool.map(lambda entry: self._remind(comm, *entry), batch))
        finally:
            reminding.release()
        comm.respond({"students": len(by_student), "mailed": mailed, "fined": fined})

    def _fine(self, comm, by_student):
        fines = [
            comm.call(
                "Ledger",
                "/post",
                {"student": student, "amount": "5.00", "kind": "library-fine", "reference": item},
            )
            for student, loans in by_student.items()
            for level, item in loans
            if level is ReminderLevel.FINAL
        ]
        for fine in fines:
            fine.get()
        return len(fines)

    def _remind(self, comm, student, loans):
        level = max(level for level, _ in loans)
        message = {
            "to": student,
            "template": f"library/{level.name.lower()}",
            "items": [item for _, item in loans],
        }
        try:
            comm.call("Mailer", "/send", message).get()
        except CommunicationError:
            self.log.warning("%s was not reminded", student)
            return False
        return True
