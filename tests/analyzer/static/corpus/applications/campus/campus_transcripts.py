"""Transcripts: issued once, signed, and verifiable by anybody."""

import hashlib
import json
from contextlib import ExitStack
from datetime import date, datetime, timezone
from enum import Enum

import campus_signals as signals
from campus_clients import SigningClient
from campus_forms import BooleanField, ChoiceField, Form, TextField
from campus_http import (
    BadRequest,
    Conflict,
    NotFound,
    api_errors,
    login_required,
    own_or_permission,
    permission_required,
)
from campus_models import GRADE_POINTS, grade_average
from campus_repositories import Grades, Students
from campus_utils import as_list, chunked, respond_csv, settle
from campus_views import CampusService
from mup import EP
from mup.errors import CallError, CommunicationError


class Language(str, Enum):
    ENGLISH = "en"
    GERMAN = "de"


class IssueForm(Form):
    student = TextField(required=False)
    language = ChoiceField(Language, required=False, default=Language.ENGLISH)
    express = BooleanField()

    def clean_student(self, value):
        return value or self.user.id


class TranscriptBuilder:
    """Collects what a transcript consists of."""

    def __init__(self, comm, user, student):
        self.comm = comm
        self.user = user
        self.student = student

    def collect(self):
        headers = {"Authorization": f"Bearer {self.user.token}"}
        parts, missing = settle(
            {
                "person": self.comm.call("Students", "/get", {"id": self.student}),
                "results": self.comm.call(
                    "Exams", "/results/{student_id}", {"student_id": self.student}, headers=headers
                ),
            }
        )
        if missing:
            raise Conflict("the records are not complete now", missing=missing)
        return parts

    def build(self, language):
        parts = self.collect()
        results = [row for row in parts["results"].get("results", []) if row.get("grade") in GRADE_POINTS]
        if not results:
            raise Conflict("there are no results yet")
        return {
            "student": self.student,
            "name": parts["person"].get("name"),
            "language": language.value,
            "results": results,
            "average": grade_average(results),
            "issued": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }


def digest_of(document):
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


class Transcripts(CampusService):
    pool_size = 3

    def _archive(self, comm, reference, document, signature):
        comm.call("Archive", "/put", {"key": reference, "document": document, "signature": signature}).get()

    @EP("/issue", method="POST")
    @api_errors
    @login_required
    def issue(self, comm, user):
        form = IssueForm(comm.params, user=user)
        form.validated()
        student = form["student"]
        own_or_permission(user, student, "transcripts.issue")
        if holds := Students(comm).holds(student):
            raise Conflict("there is a hold on the student", holds=holds)
        document = TranscriptBuilder(comm, user, student).build(form["language"])
        digest = digest_of(document)
        reference = digest[:16]
        with ExitStack() as undo:
            if form["express"]:
                comm.call(
                    "Ledger",
                    "/post",
                    {"student": student, "amount": "15.00", "kind": "express", "reference": reference},
                ).get()
                undo.callback(
                    comm.call,
                    "Ledger",
                    "/post",
                    {"student": student, "amount": "-15.00", "kind": "express", "reference": reference},
                )
            self._archive(comm, reference, document, SigningClient(comm).sign(digest))
            undo.pop_all()
        signals.transcript_issued.send_robust(comm, student=student, reference=reference)
        comm.respond(
            {"reference": reference, "document": document},
            status=201,
            headers={"Location": f"/verify/{reference}"},
        )

    @EP("/verify/{reference}", method="GET")
    @api_errors
    def verify(self, comm):
        """For employers: without login."""
        reference = comm.params["reference"]
        try:
            stored = comm.call("Archive", "/get", {"key": reference}).get()
        except CallError as error:
            if error.status != 404:
                raise
            stored = None
        if not stored or "document" not in stored:
            raise NotFound("no such transcript")
        if stored.get("revoked"):
            comm.respond({"valid": False, "revoked": stored["revoked"]})
            return
        valid = SigningClient(comm).check(digest_of(stored["document"]), stored.get("signature"))
        body = {"valid": valid, "issued": stored["document"].get("issued")}
        if valid and comm.params.get("name"):
            body["name_matches"] = (
                stored["document"].get("name", "").casefold() == comm.params["name"].casefold()
            )
        comm.respond(body)

    @EP("/batch/graduation", method="POST")
    @api_errors
    @permission_required("transcripts.issue")
    def graduation(self, comm, user):
        """Transcripts for a whole class; those with holds are left out."""
        students = as_list(comm.params.get("students"))
        if not students:
            cohort = comm.params.get("cohort") or date.today().year
            students = Students(comm).filter(cohort=cohort, state="graduating").values_list("id")
        issued, skipped = {}, {}
        for batch in chunked(students, 5):
            holds = {student: comm.call("Students", "/holds", {"student": student}) for student in batch}
            for student, future in holds.items():
                try:
                    if future.get().get("holds"):
                        skipped[student] = "hold"
                        continue
                    document = TranscriptBuilder(comm, user, student).build(Language.ENGLISH)
                    digest = digest_of(document)
                    self._archive(comm, digest[:16], document, SigningClient(comm).sign(digest))
                except (CommunicationError, Conflict) as error:
                    skipped[student] = str(error)
                else:
                    issued[student] = digest[:16]
        comm.respond({"issued": issued, "skipped": skipped})

    @EP("/export", method="GET")
    @api_errors
    @permission_required("grades.view")
    def export(self, comm, user):
        """One line per student of a cohort, with average and credits."""
        cohort = comm.params.get("cohort")
        if not cohort:
            raise BadRequest("cohort is missing")
        respond_csv(
            comm, self._rows(comm, cohort), ("student", "name", "average", "credits"), f"cohort-{cohort}.csv"
        )

    def _rows(self, comm, cohort):
        for student in Students(comm).filter(cohort=cohort):
            results = list(Grades(comm).of_student(student["id"]))
            yield {
                "student": student["id"],
                "name": student.get("name"),
                "average": grade_average(results),
                "credits": sum(result.get("credits", 0) for result in results),
            }
