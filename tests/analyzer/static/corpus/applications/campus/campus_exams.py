"""Registrations for exams, grades, results, appeals."""

import campus_signals as signals
from campus_forms import Form, FormError, IntegerField, Serializer, TextField
from campus_http import (
    Conflict,
    NotFound,
    ValidationFailed,
    api_errors,
    feature_required,
    login_required,
    own_or_permission,
    permission_required,
)
from campus_models import GradeScheme, grade_average
from campus_repositories import Grades
from campus_utils import TTLCache, chunked, get_or
from campus_views import BatchView, CampusService, PermissionRequiredMixin
from mup import EP
from mup.errors import CallError, CommunicationError

MAX_ATTEMPTS = 3


class RegistrationForm(Form):
    course = TextField(max_length=20)
    sitting = TextField(max_length=20)


class GradeForm(Form):
    student = TextField()
    course = TextField(max_length=20)
    points = IntegerField(minimum=0, maximum=100)
    comment = TextField(required=False, default="", max_length=1000)


class AppealForm(Form):
    course = TextField(max_length=20)
    reason = TextField(max_length=4000)

    def clean_reason(self, value):
        if len(value.split()) < 3:
            raise FormError("please give a reason")
        return value


class ResultSerializer(Serializer):
    fields = ("course", "term", "grade", "credits", "title")
    rename = {"title": "name"}

    def get_title(self, item):
        return self.context.get("titles", {}).get(item.get("course"), item.get("course"))


class GradeImport(PermissionRequiredMixin, BatchView):
    """Grades of a whole exam, as the examiner exports them from a sheet."""

    permission = "grades.edit"
    batch_size = 10

    def get_items(self):
        rows = self.params.get("rows") or []
        problems = {}
        for number, row in enumerate(rows, start=1):
            form = GradeForm({**row, "course": self.params.get("course")}, comm=self.comm, user=self.user)
            if form.is_valid():
                yield form.cleaned
            else:
                problems[number] = form.errors
        if problems:
            self.service.log.warning("%d rows of %s were left out", len(problems), self.params.get("course"))

    def start(self, item):
        scheme = self.service.scheme(self.comm, item["course"])
        return Grades(self.comm).start_save(
            f"{item['student']}:{item['course']}",
            points=item["points"],
            grade=scheme.grade(item["points"]),
            by=self.user.id,
        )

    def finish(self, item, result):
        signals.grade_published.send_robust(self.comm, student=item["student"], course=item["course"])
        return item["student"]

    def describe(self, item):
        return item["student"]


class Exams(CampusService):
    pool_size = 6

    def setup(self):
        super().setup()
        self._schemes = TTLCache(300)

    def scheme(self, comm, course):
        """The grade scheme of a course; the default one where it has none."""

        def load():
            try:
                return GradeScheme.from_answer(comm.call("GradeBook", "/scheme", {"course": course}).get())
            except CallError as error:
                if error.status == 404:
                    return GradeScheme()
                raise

        return self._schemes.get_or_set(course, load)

    @EP("/register", method="POST")
    @api_errors
    @permission_required("exams.self")
    def register(self, comm, user):
        form = RegistrationForm(comm.params, user=user)
        form.validated()
        enrolled = comm.call("EnrolmentStore", "/get", {"id": f"{user.id}:{form['course']}"})
        attempts = comm.call("GradeBook", "/attempts", {"student": user.id, "course": form["course"]})
        sittings = comm.call("ExamBoard", "/sittings", {"course": form["course"]})
        try:
            if not enrolled.get():
                raise NotFound("you are not in this course")
        except CallError as error:
            raise NotFound("you are not in this course") from error
        if attempts.get().get("count", 0) >= MAX_ATTEMPTS:
            raise Conflict("no attempt is left")
        sitting = next(
            (one for one in sittings.get().get("sittings", ()) if one["id"] == form["sitting"]), None
        )
        if sitting is None:
            raise NotFound("no such sitting")
        if sitting.get("closed"):
            raise Conflict("the registration is closed")
        place = comm.call("ExamBoard", "/register", {"sitting": sitting["id"], "student": user.id}).get()
        comm.call(
            "Mailer", "/send", {"to": user.id, "template": "exams/registered", "sitting": sitting["id"]}
        )
        comm.respond({"sitting": sitting["id"], "seat": place.get("seat")}, status=201)

    @EP("/grades/enter", method="POST")
    @api_errors
    @permission_required("grades.edit")
    def enter_grade(self, comm, user):
        form = GradeForm(comm.params, user=user)
        form.validated()
        key = f"{form['student']}:{form['course']}"
        previous = comm.call("GradeBook", "/get", {"id": key}).get(check=False)
        if previous.status == 200 and previous.body.get("locked"):
            raise Conflict("the grade is final")
        grade = self.scheme(comm, form["course"]).grade(form["points"])
        Grades(comm).save(key, points=form["points"], grade=grade, comment=form["comment"], by=user.id)
        if previous.status == 200 and previous.body.get("grade") not in (None, grade):
            comm.call(
                "Audit",
                "/record",
                {"event": "grade.changed", "key": key, "from": previous.body["grade"], "to": grade},
            ).get()
        signals.grade_published.send(comm, student=form["student"], course=form["course"])
        comm.respond({"student": form["student"], "grade": grade})

    @EP("/grades/import", method="POST")
    def import_grades(self, comm):
        return GradeImport.as_view()(self, comm)

    @EP("/results/{student_id}", method="GET")
    @api_errors
    @login_required
    def results(self, comm, user):
        student = comm.params["student_id"]
        own_or_permission(user, student, "grades.view")
        rows = list(Grades(comm).of_student(student, comm.params.get("term")))
        titles = {}
        for batch in chunked(sorted({row["course"] for row in rows}), 10):
            futures = [(code, comm.call("Catalogue", "/courses/{code}", {"code": code})) for code in batch]
            titles.update((code, get_or(future, {}).get("title", code)) for code, future in futures)
        comm.respond(
            {
                "student": student,
                "results": ResultSerializer(rows, many=True, context={"titles": titles}).data,
                "average": grade_average(rows),
            }
        )

    @EP("/appeals", method="POST")
    @api_errors
    @feature_required("online-appeals")
    @login_required
    def appeal(self, comm, user):
        form = AppealForm(comm.params, user=user)
        form.validated()
        grade = Grades(comm).get(f"{user.id}:{form['course']}")
        if grade.get("appealed"):
            raise ValidationFailed("there is an appeal already", course=form["course"])
        case = comm.call(
            "ExamBoard",
            "/cases/open",
            {"student": user.id, "course": form["course"], "reason": form["reason"]},
        ).get()
        notified = []
        for member in case.get("board", ()):
            try:
                comm.call(
                    "Mailer", "/send", {"to": member, "template": "exams/appeal", "case": case["case"]}
                ).get()
                notified.append(member)
            except CommunicationError:
                self.log.warning("%s was not told of %s", member, case["case"])
        Grades(comm).save(f"{user.id}:{form['course']}", appealed=True)
        comm.respond({"case": case["case"], "notified": notified}, status=201)
