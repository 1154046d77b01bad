"""Class-based views: one object per request, put together from mixins."""

import logging

from campus_http import BadRequest, Conflict, PermissionDenied, api_errors, authenticate
from campus_utils import Flags, chunked, respond_csv
from mup import MS
from mup.errors import CommunicationError

logger = logging.getLogger("campus.views")


class CampusService(MS):
    """What all services of the campus have."""

    pool_size = 4
    default_flags: dict = {}

    def setup(self):
        self.flags = Flags(self.default_flags)
        self.log = logging.getLogger(f"campus.{type(self).__name__.lower()}")


class View:
    status = 200

    def __init__(self, service, comm):
        self.service = service
        self.comm = comm
        self.params = comm.params
        self.user = None

    @classmethod
    def as_view(cls):
        @api_errors
        def view(service, comm):
            cls(service, comm).dispatch()

        view.__name__ = cls.__name__
        view.__doc__ = cls.__doc__
        return view

    def dispatch(self):
        self.respond(self.handle())

    def handle(self):
        raise NotImplementedError

    def respond(self, body):
        self.comm.respond(body, status=self.status)


class LoginRequiredMixin:
    def dispatch(self):
        self.user = authenticate(self.comm)
        self.check_access()
        super().dispatch()

    def check_access(self):
        """Raises PermissionDenied for users that may not come in."""


class PermissionRequiredMixin(LoginRequiredMixin):
    permission = None

    def get_permission(self):
        return self.permission

    def check_access(self):
        super().check_access()
        if not self.user.has_perm(self.get_permission()):
            self.handle_no_permission()

    def handle_no_permission(self):
        raise PermissionDenied("you may not do this", needed=self.get_permission())


class AuditMixin:
    """Writes down what was done, after the response."""

    audit_event = ""

    def dispatch(self):
        super().dispatch()
        who = self.user.id if self.user else None
        try:
            self.comm.call("Audit", "/record", {"event": self.audit_event, "user": who}).get(timeout=1.0)
        except CommunicationError:
            logger.warning("no audit record of %s", self.audit_event)


class SingleObjectMixin:
    manager = None
    key_param = "id"

    def get_object(self):
        return self.manager(self.comm).get(self.params[self.key_param])


class DetailView(SingleObjectMixin, View):
    serializer = None

    def handle(self):
        item = self.get_object()
        self.check_object_permissions(item)
        context = self.get_context(item)
        body = self.serializer(item, context=context).data if self.serializer else dict(item)
        body.update(context)
        return body

    def check_object_permissions(self, item):
        """For subclasses."""

    def get_context(self, item):
        return {}


class PaginationMixin:
    page_size = 20
    max_page_size = 100

    def page_number(self):
        try:
            return max(1, int(self.params.get("page", 1)))
        except ValueError:
            raise BadRequest("page has to be a number") from None

    def get_page_size(self):
        try:
            asked = int(self.params.get("size", self.page_size))
        except ValueError:
            raise BadRequest("size has to be a number") from None
        return min(max(asked, 1), self.max_page_size)


class ListView(PaginationMixin, View):
    manager = None
    serializer = None
    filter_params: tuple = ()
    ordering = None

    def get_queryset(self):
        conditions = {name: self.params.get(name) for name in self.filter_params}
        return self.manager(self.comm).filter(**conditions).order_by(self.params.get("order", self.ordering))

    def handle(self):
        page = self.get_queryset().limit(self.get_page_size()).page(self.page_number())
        rows = self.serializer(page.items, many=True, context=self.get_context(page)).data
        return page.as_dict(rows)

    def get_context(self, page):
        return {}


class ExportMixin:
    """With format=csv everything instead of a page."""

    columns: tuple = ()
    filename = "export.csv"

    def export_rows(self):
        for item in self.get_queryset().limit(200):
            yield self.serializer(item).data

    def dispatch(self):
        self.export = self.params.get("format") == "csv"
        super().dispatch()

    def handle(self):
        return self.export_rows() if self.export else super().handle()

    def respond(self, body):
        if self.export:
            respond_csv(self.comm, body, self.columns, self.filename)
        else:
            super().respond(body)


class FormView(View):
    form = None

    def get_form(self):
        return self.form(self.params, comm=self.comm, user=self.user)

    def handle(self):
        form = self.get_form()
        form.validated()
        return self.form_valid(form)

    def form_valid(self, form):
        raise NotImplementedError


class BatchView(View):
    """A management command behind an endpoint: work through many items, report on each."""

    batch_size = 20
    stop_after_failures = 10

    def get_items(self):
        raise NotImplementedError

    def start(self, item):
        """Starts the work on one item, returns a future."""
        raise NotImplementedError

    def finish(self, item, result):
        """What to do with an item's result; the report's line."""
        return result

    def handle(self):
        done, failed = [], {}
        for batch in chunked(self.get_items(), self.batch_size):
            started = [(item, self.start(item)) for item in batch]
            for item, future in started:
                try:
                    done.append(self.finish(item, future.get()))
                except CommunicationError as error:
                    failed[self.describe(item)] = str(error)
            if len(failed) >= self.stop_after_failures:
                raise Conflict("too many failures, stopped", done=len(done), failed=failed)
        return {"done": len(done), "failed": failed}

    def describe(self, item):
        return str(item.get("id")) if isinstance(item, dict) else str(item)
