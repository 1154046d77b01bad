"""Students in courses: places, waiting lists, rosters."""

from collections import Counter, defaultdict

import campus_signals as signals
from campus_clients import CatalogueClient, MailClient, SeatsClient
from campus_forms import BooleanField, Form, FormError, ListField, TextField
from campus_http import (
    BadRequest,
    Conflict,
    NotFound,
    PermissionDenied,
    api_errors,
    own_or_permission,
    permission_required,
)
from campus_models import HoldKind
from campus_repositories import Enrolments, Students
from campus_utils import Undo, as_list, truthy
from campus_views import CampusService
from mup import EP
from mup.errors import CallError, CommunicationError

MAX_CREDITS = 30


class EnrolForm(Form):
    course = TextField(max_length=20)
    student = TextField(required=False)
    waitlist = BooleanField()

    def clean_student(self, value):
        return value or self.user.id


class BasketForm(Form):
    student = TextField()
    courses = ListField(of=TextField(max_length=20), max_items=12)

    def clean_courses(self, codes):
        twice = [code for code, count in Counter(codes).items() if count > 1]
        if twice:
            raise FormError("given twice: " + ", ".join(twice))
        return codes


class PrerequisitesMixin:
    """Who may take a course."""

    def check_holds(self, comm, student):
        kinds = Students(comm).holds(student)
        blocking = [kind for kind in kinds if kind in (HoldKind.FEES.value, HoldKind.CONDUCT.value)]
        if blocking:
            raise Conflict("there is a hold on the student", holds=blocking)

    def check_prerequisites(self, comm, student, course):
        needed = set(course.get("requires", ()))
        if not needed:
            return
        passed = comm.call("GradeBook", "/passed", {"student": student, "courses": sorted(needed)}).get()
        missing = needed - set(passed.get("courses", ()))
        if missing:
            raise Conflict("prerequisites are missing", courses=sorted(missing))


class Enrolment(PrerequisitesMixin, CampusService):
    pool_size = 8
    default_flags = {"late-drop": True}

    @EP("/enrol", method="POST")
    @api_errors
    @permission_required("enrolment.self", "enrolment.manage", any_of=True)
    def enrol(self, comm, user):
        form = EnrolForm(comm.params, user=user)
        form.validated()
        student, code = form["student"], form["course"]
        own_or_permission(user, student, "enrolment.manage")
        course = CatalogueClient(comm).course(code)
        self.check_holds(comm, student)
        self.check_prerequisites(comm, student, course)

        seats = SeatsClient(comm, user)
        seat = seats.reserve(code, student)
        if seat is None:
            if not form["waitlist"]:
                raise Conflict("the course is full", course=code)
            position = seats.join_waitlist(code, student)
            comm.respond({"course": code, "waitlist": position}, status=202)
            return
        with Undo() as undo:
            undo.push(seats.release, code, student)
            Enrolments(comm).save(
                f"{student}:{code}", student=student, course=code, seat=seat, state="active"
            )
            signals.student_enrolled.send(comm, student=student, course=code, fee=course.get("fee", 0))
        comm.respond({"course": code, "seat": seat}, status=201)

    @EP("/enrol/basket", method="POST")
    @api_errors
    @permission_required("enrolment.manage")
    def enrol_basket(self, comm, user):
        """All courses of a basket, or none."""
        form = BasketForm(comm.params, user=user)
        basket = form.validated()
        self.check_holds(comm, basket["student"])
        courses = CatalogueClient(comm).courses(basket["courses"])
        if unknown := [code for code in basket["courses"] if code not in courses]:
            raise NotFound("no such course", courses=unknown)
        if sum(course.get("credits", 0) for course in courses.values()) > MAX_CREDITS:
            raise BadRequest(f"more than {MAX_CREDITS} credits")

        futures = {
            code: comm.call("Seats", "/reserve", {"course": code, "student": basket["student"]})
            for code in courses
        }
        reserved, full = {}, []
        for code, future in futures.items():
            try:
                seat = future.get().get("seat")
            except CallError as error:
                self.log.info("no seat in %s: %s", code, error.status)
                seat = None
            if seat is None:
                full.append(code)
            else:
                reserved[code] = seat
        if full:
            releases = [
                comm.call("Seats", "/release", {"course": code, "student": basket["student"]})
                for code in reserved
            ]
            for release in releases:
                release.get()
            raise Conflict("some courses are full", courses=full)

        enrolments = Enrolments(comm)
        saves = [
            enrolments.start_save(
                f"{basket['student']}:{code}", student=basket["student"], course=code, seat=seat
            )
            for code, seat in reserved.items()
        ]
        for save in saves:
            save.get()
        for code in reserved:
            signals.student_enrolled.send_robust(
                comm, student=basket["student"], course=code, fee=courses[code].get("fee", 0)
            )
        comm.respond({"student": basket["student"], "seats": reserved}, status=201)

    @EP("/drop", method="POST")
    @api_errors
    @permission_required("enrolment.self", "enrolment.manage", any_of=True)
    def drop(self, comm, user):
        form = EnrolForm(comm.params, user=user)
        form.validated()
        student, code = form["student"], form["course"]
        own_or_permission(user, student, "enrolment.manage")
        enrolment = Enrolments(comm).get(f"{student}:{code}")
        if enrolment.get("graded"):
            raise Conflict("the course has been graded")
        if not user.is_staff:
            terms = comm.call("Calendar", "/terms", {"current": True}).get()
            if terms.get("drop_over") and not self.flags.enabled(comm, "late-drop"):
                raise PermissionDenied("the time to drop courses is over")
        Enrolments(comm).delete(student, code)
        SeatsClient(comm, user).release(code, student)
        signals.student_dropped.send_robust(comm, student=student, course=code)
        comm.respond(status=204)

    @EP("/roster/{course_code}", method="GET")
    @api_errors
    @permission_required("roster.view")
    def roster(self, comm, user):
        code = comm.params["course_code"]
        page = Enrolments(comm).active(code).limit(50).page(int(comm.params.get("page", 1)))
        people = {
            item["student"]: comm.call("Students", "/get", {"id": item["student"]}) for item in page.items
        }
        rows = []
        for student, future in people.items():
            try:
                rows.append({"student": student, "name": future.get().get("name", student)})
            except CommunicationError:
                rows.append({"student": student, "name": None})
        if truthy(comm.params.get("photos", "")):
            photos = comm.call("Documents", "/photos", {"students": list(people)}).get().get("photos", {})
            for row in rows:
                row["photo"] = photos.get(row["student"])
        comm.respond(page.as_dict(sorted(rows, key=lambda row: row["name"] or "")))

    @EP("/batch/promote", method="POST")
    @api_errors
    @permission_required("enrolment.manage")
    def promote_waitlists(self, comm, user):
        """Nightly: gives free seats to those who wait longest."""
        seats = SeatsClient(comm, user)
        promoted = defaultdict(list)
        for code in as_list(comm.params.get("courses")):
            for student in seats.waitlist(code):
                if Students(comm).holds(student):
                    continue
                if seats.reserve(code, student) is None:
                    break
                Enrolments(comm).save(f"{student}:{code}", student=student, course=code, state="active")
                promoted[code].append(student)
        messages = (
            {"to": student, "template": "enrolment/promoted", "course": code}
            for code, students in promoted.items()
            for student in students
        )
        accepted, rejected = MailClient(comm).send_many(messages)
        comm.respond({"promoted": promoted, "mails": accepted, "mails_failed": rejected})
