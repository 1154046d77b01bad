"""Exams: who takes which, and what it asks."""

from __future__ import annotations

import secrets

from mup import EP, MS, Communication
from tms.documents import respond_pretty
from tms.questions import groups_of, questions_of_group
from tms.work import compute, milliseconds


class Ems(MS):
    """Exams."""

    pool_size = 1
    port = 9101

    def setup(self) -> None:
        """Read how much work a request is, once per worker."""
        self.work_ms = milliseconds("MUP_EMS_MS", 8)

    @EP("/createExam", name="CreateExam", method="POST")
    def create_exam(
        self,
        comm: Communication,
        examinee: str,
        configId: str,  # noqa: N803 - as callers call it
        examDate: str,  # noqa: N803
    ) -> None:
        """Add an exam."""
        compute(self.work_ms)
        exam = {
            "_id": secrets.token_hex(12),
            "examinee": examinee,
            "configId": configId,
            "examDate": examDate,
        }
        comm.query("tms", "insertExam", "exams", {"$command": "insert", "documents": [exam]}).get()
        comm.respond(exam)

    @EP("/deleteExam", name="DeleteExam", method="DELETE")
    def delete_exam(self, comm: Communication, id: str) -> None:  # noqa: A002 - as callers call it
        """Remove an exam."""
        compute(self.work_ms)
        comm.query("tms", "deleteExam", "exams", {"$command": "delete", "filter": {"_id": id}}).get()
        comm.respond(status=204)

    @EP("/getQuestions", name="GetQuestions", method="GET")
    def get_questions(self, comm: Communication, id: str) -> None:  # noqa: A002
        """Return the questions of an exam with this configuration."""
        compute(self.work_ms)
        comm.respond(comm.call("qms", "/createTest", {"configId": id}).get())

    @EP("/listAllExams", name="ListAllExams", method="GET")
    def list_all_exams(self, comm: Communication) -> None:
        """Return all exams."""
        exams = comm.query("tms", "allExams", "exams", {}).get()
        compute(self.work_ms)
        respond_pretty(comm, exams)

    @EP("/listAllQuestionsForExam", name="ListAllQuestionsForExam", method="GET")
    def list_all_questions(self, comm: Communication, id: str) -> None:  # noqa: A002
        """Return everything an exam may ask; nothing if there is no such exam or configuration."""
        exams = comm.query("tms", "examById", "exams", {"_id": id}).get()
        if not exams:
            comm.respond([])
            return
        configurations = comm.query("tms", "confById", "confs", {"_id": exams[0]["configId"]}).get()
        if not configurations:
            comm.respond([])
            return
        groups = groups_of(comm, configurations[0])
        questions = [question for group in groups for question in questions_of_group(comm, group)]
        compute(self.work_ms)
        respond_pretty(comm, questions)
