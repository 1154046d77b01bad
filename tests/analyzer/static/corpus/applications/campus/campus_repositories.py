"""Lazy query sets over the stores behind, in the manner of an ORM."""

from dataclasses import dataclass

from campus_http import NotFound
from mup.errors import CallError


@dataclass
class Page:
    items: list
    number: int
    size: int
    has_next: bool
    total: int | None = None

    def as_dict(self, items=None):
        body = {
            "items": self.items if items is None else items,
            "page": self.number,
            "size": self.size,
            "next": self.number + 1 if self.has_next else None,
        }
        if self.total is not None:
            body["total"] = self.total
        return body


class QuerySet:
    def __init__(self, comm, service, path, filters=None, ordering=None, page_size=50):
        self.comm = comm
        self.service = service
        self.path = path
        self.filters = filters or {}
        self.ordering = ordering
        self.page_size = page_size

    def _clone(self, **changes):
        values = {
            "filters": dict(self.filters),
            "ordering": self.ordering,
            "page_size": self.page_size,
            **changes,
        }
        return type(self)(self.comm, self.service, self.path, **values)

    def filter(self, **conditions):
        given = {name: value for name, value in conditions.items() if value not in (None, "")}
        return self._clone(filters={**self.filters, **given})

    def order_by(self, ordering):
        return self._clone(ordering=ordering)

    def limit(self, page_size):
        return self._clone(page_size=page_size)

    def _fetch(self, number):
        query = {"filters": self.filters, "page": number, "size": self.page_size}
        if self.ordering:
            query["order"] = self.ordering
        return self.comm.call(self.service, self.path, query)

    def page(self, number):
        answer = self._fetch(number).get()
        return Page(
            items=answer.get("items", []),
            number=number,
            size=self.page_size,
            has_next=bool(answer.get("next")),
            total=answer.get("total"),
        )

    def pages(self):
        number = 1
        while True:
            page = self.page(number)
            yield page
            if not page.has_next:
                return
            number += 1

    def __iter__(self):
        for page in self.pages():
            yield from page.items

    def first(self):
        items = self.limit(1).page(1).items
        return items[0] if items else None

    def exists(self):
        return self.first() is not None

    def values_list(self, name):
        return [item[name] for item in self if name in item]


class Manager:
    """Where the objects of one kind are; subclasses name service and paths."""

    service = ""
    list_path = "/find"
    get_path = "/get"
    save_path = "/save"
    label = "object"

    def __init__(self, comm):
        self.comm = comm

    def all(self):
        return QuerySet(self.comm, self.service, self.list_path)

    def filter(self, **conditions):
        return self.all().filter(**conditions)

    def get(self, key):
        try:
            found = self.comm.call(self.service, self.get_path, {"id": key}).get()
        except CallError as error:
            if error.status == 404:
                raise NotFound(f"no such {self.label}", id=key) from error
            raise
        if not found:
            raise NotFound(f"no such {self.label}", id=key)
        return found

    def save(self, key, **values):
        return self.start_save(key, **values).get()

    def start_save(self, key, **values):
        """As save, but returns the future, for many at once."""
        return self.comm.call(self.service, self.save_path, {"id": key, **values})


class Applications(Manager):
    service = "ApplicationStore"
    label = "application"


class Enrolments(Manager):
    service = "EnrolmentStore"
    label = "enrolment"

    def delete(self, student, course):
        return self.comm.call(self.service, "/delete", {"student": student, "course": course}).get()

    def active(self, course):
        return self.filter(course=course, state="active").order_by("student")


class Students(Manager):
    service = "Students"
    label = "student"

    def holds(self, student):
        answer = self.comm.call("Students", "/holds", {"student": student}).get()
        return [hold["kind"] for hold in answer.get("holds", [])]


class Grades(Manager):
    service = "GradeBook"
    label = "grade"

    def of_student(self, student, term=None):
        return self.filter(student=student, term=term).order_by("-term")


class Loans(Manager):
    service = "LoanStore"
    label = "loan"

    def overdue(self):
        return self.filter(overdue=True).order_by("due").limit(100)
