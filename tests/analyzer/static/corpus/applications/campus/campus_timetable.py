"""Weeks of students, bookings of rooms, the plan of a term."""

from collections import defaultdict
from itertools import combinations
from operator import itemgetter

from campus_clients import CatalogueClient, MailClient, RoomsClient
from campus_forms import Form, FormError, IntegerField, RegexField, TextField
from campus_http import BadRequest, Conflict, own_or_permission
from campus_repositories import Enrolments
from campus_utils import TTLCache, as_list, ignoring_outage
from campus_views import (
    AuditMixin,
    CampusService,
    FormView,
    LoginRequiredMixin,
    PermissionRequiredMixin,
    View,
)
from mup import EP
from mup.errors import CallError, CommunicationError

TIME = r"[0-2]\d:[0-5]\d"
terms = TTLCache(600)


def current_term(comm):
    return terms.get_or_set(
        "current", lambda: comm.call("Calendar", "/terms", {"current": True}).get().get("term", "?")
    )


def overlap(one, other):
    return one["day"] == other["day"] and one["start"] < other["end"] and other["start"] < one["end"]


class BookingForm(Form):
    building = TextField(max_length=10)
    start = RegexField(TIME)
    end = RegexField(TIME)
    seats = IntegerField(minimum=1, maximum=800)
    purpose = TextField(required=False, default="")

    def clean(self):
        if self["start"] >= self["end"]:
            raise FormError("it ends before it starts")


class WeekView(LoginRequiredMixin, View):
    def handle(self):
        student = self.params["student_id"]
        own_or_permission(self.user, student, "roster.view")
        term = current_term(self.comm)
        codes = Enrolments(self.comm).filter(student=student, state="active").values_list("course")
        lessons = list(self.lessons(codes, term))
        week = defaultdict(list)
        for lesson in sorted(lessons, key=itemgetter("day", "start")):
            week[lesson["day"]].append(lesson)
        body = {"term": term, "week": week}
        with ignoring_outage("events"):
            body["events"] = (
                self.comm.call("Calendar", "/events", {"audience": "student"}, timeout=1.0)
                .get()
                .get("events", [])
            )
        return body

    def lessons(self, codes, term):
        catalogue = CatalogueClient(self.comm, self.user)
        started = [(code, catalogue.start("/sections", {"code": code, "term": term})) for code in codes]
        for code, future in started:
            for section in future.get().get("sections", ()):
                yield {"course": code, **section}


class BookRoomView(AuditMixin, PermissionRequiredMixin, FormView):
    permission = "rooms.book"
    form = BookingForm
    status = 201
    audit_event = "room.booked"

    def candidates(self, form, rooms):
        fitting = [
            room
            for room in rooms.free(form["building"], form["start"], form["end"])
            if room["seats"] >= form["seats"]
        ]
        return sorted(fitting, key=itemgetter("seats"))

    def form_valid(self, form):
        rooms = RoomsClient(self.comm, self.user)
        for room in self.candidates(form, rooms):
            try:
                booking = rooms.book(room["room"], form["start"], form["end"], self.user.id)
            except CallError as error:
                if error.status != 409:
                    raise
                continue  # somebody was faster
            return {"room": room["room"], "booking": booking}
        raise Conflict("no room is free")


class PublishView(PermissionRequiredMixin, View):
    """Assigns rooms to the sections of all courses, and publishes the plan if there are no clashes."""

    permission = "timetable.publish"

    def get_sections(self, codes, term):
        catalogue = CatalogueClient(self.comm, self.user)
        for code in codes:
            for section in catalogue.sections(code, term):
                yield {"course": code, **section}

    def find_clashes(self, sections):
        for one, other in combinations(sections, 2):
            if overlap(one, other) and one.get("teacher") == other.get("teacher"):
                yield {"teacher": one.get("teacher"), "courses": [one["course"], other["course"]]}

    def handle(self):
        codes = as_list(self.params.get("courses"))
        if not codes:
            raise BadRequest("no courses")
        term = self.params.get("term") or current_term(self.comm)
        sections = list(self.get_sections(codes, term))
        clashes = list(self.find_clashes(sections))
        if clashes and not self.params.get("force"):
            raise Conflict("teachers are in two places", clashes=clashes)

        rooms = RoomsClient(self.comm, self.user)
        bookings = []
        try:
            for section in sections:
                bookings.append(
                    rooms.book(
                        section.get("room", "any"), section["start"], section["end"], section["course"]
                    )
                )
            self.comm.call("Calendar", "/publish", {"term": term, "bookings": bookings}).get()
        except CommunicationError:
            for booking in reversed(bookings):
                with ignoring_outage("cancellation"):
                    rooms.cancel(booking)
            raise
        teachers = {section["teacher"] for section in sections if section.get("teacher")}
        MailClient(self.comm).send_many(
            {"to": teacher, "template": "timetable/published"} for teacher in sorted(teachers)
        )
        return {"term": term, "bookings": len(bookings), "clashes": clashes}


class Timetable(CampusService):
    week = EP("/week/{student_id}", method="GET")(WeekView.as_view())
    book_room = EP("/rooms/book", method="POST")(BookRoomView.as_view())
    publish = EP("/publish", method="POST")(PublishView.as_view())
