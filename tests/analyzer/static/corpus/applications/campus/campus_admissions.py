"""Applications: from the form of the applicant to the decision of the faculty."""

import uuid
from datetime import date

import campus_signals as signals
from campus_clients import CatalogueClient, DocumentClient
from campus_forms import (
    ChoiceField,
    DateField,
    EmailField,
    Form,
    FormError,
    IntegerField,
    ListField,
    Serializer,
    TextField,
)
from campus_http import BadRequest, Conflict, PermissionDenied
from campus_models import ApplicationStatus, Decision
from campus_repositories import Applications
from campus_utils import Undo, get_or
from campus_views import (
    AuditMixin,
    BatchView,
    CampusService,
    DetailView,
    ExportMixin,
    FormView,
    ListView,
    LoginRequiredMixin,
    PermissionRequiredMixin,
    SingleObjectMixin,
)
from mup import EP
from mup.errors import CommunicationError

STATUS_AFTER = {
    Decision.OFFER: ApplicationStatus.OFFERED,
    Decision.REJECT: ApplicationStatus.REJECTED,
    Decision.INTERVIEW: ApplicationStatus.INTERVIEW,
}


class ApplicationForm(Form):
    name = TextField()
    email = EmailField()
    born = DateField()
    programme = TextField(max_length=20)
    year = IntegerField(minimum=2000, maximum=2100)
    choices = ListField(of=TextField(max_length=20), required=False, max_items=3, default=())

    def clean_born(self, value):
        if (date.today() - value).days < 16 * 365:
            raise FormError("applicants are at least 16")
        return value

    def clean(self):
        if self["programme"] in self["choices"]:
            raise FormError("the alternatives repeat the programme")
        rules = self.comm.call(
            "Admission", "/rules", {"programme": self["programme"], "year": self["year"]}
        ).get()
        if rules.get("closed"):
            raise FormError("applications for this programme are closed")


class DecisionForm(Form):
    application = TextField()
    decision = ChoiceField(Decision)
    note = TextField(required=False, max_length=2000, default="")

    def clean(self):
        if self["decision"] is Decision.REJECT and not self["note"]:
            raise FormError("a rejection needs a reason")


class DocumentForm(Form):
    application = TextField()
    files = ListField(max_items=10)

    def clean_files(self, files):
        for file in files:
            if not isinstance(file, dict) or "name" not in file:
                raise FormError("every file has a name and content")
        return files


class ApplicationSerializer(Serializer):
    fields = ("id", "name", "programme", "status", "score", "final")

    def get_final(self, item):
        try:
            return ApplicationStatus(item.get("status")).final
        except ValueError:
            return False

    def get_score(self, item):
        return self.context.get("scores", {}).get(item.get("id"), item.get("score"))


class SubmitApplication(AuditMixin, FormView):
    """Open to everybody."""

    form = ApplicationForm
    status = 201
    audit_event = "application.submitted"

    def form_valid(self, form):
        applications = Applications(self.comm)
        if applications.filter(email=form["email"], year=form["year"]).exists():
            raise Conflict("there is an application already")
        number = uuid.uuid4().hex[:12]
        codes = [form["programme"], *form["choices"]]
        programmes = CatalogueClient(self.comm).courses(codes)
        unknown = [code for code in codes if code not in programmes]
        if unknown:
            raise BadRequest("unknown programme", codes=unknown)
        applications.save(
            number,
            name=form["name"],
            email=form["email"],
            born=form["born"].isoformat(),
            choices=codes,
            year=form["year"],
            status=ApplicationStatus.SUBMITTED.value,
        )
        signals.application_submitted.send_robust(self.comm, application=number, email=form["email"])
        return {"application": number, "status": ApplicationStatus.SUBMITTED.value}


class ApplicationList(ExportMixin, PermissionRequiredMixin, ListView):
    permission = "admissions.view"
    manager = Applications
    serializer = ApplicationSerializer
    filter_params = ("status", "programme", "year")
    ordering = "-submitted"
    columns = ("id", "name", "programme", "status")
    filename = "applications.csv"

    def get_context(self, page):
        ids = [item["id"] for item in page.items if "id" in item]
        if not ids:
            return {}
        scores = self.comm.call("Admission", "/scores", {"applications": ids})
        return {"scores": get_or(scores, {}).get("scores", {})}


class ApplicationDetail(LoginRequiredMixin, DetailView):
    manager = Applications
    serializer = ApplicationSerializer
    key_param = "application_id"

    def check_object_permissions(self, item):
        if item.get("applicant") != self.user.id and not self.user.has_perm("admissions.view"):
            raise PermissionDenied("not your application")

    def get_context(self, item):
        documents = self.comm.call("Documents", "/list", {"owner": item["id"]})
        history = self.comm.call("Audit", "/history", {"key": item["id"]}) if self.user.is_staff else None
        context = {"documents": documents.get().get("documents", [])}
        if history is not None:
            context["history"] = get_or(history, {}).get("records", [])
        return context


class UploadDocuments(LoginRequiredMixin, FormView):
    form = DocumentForm
    status = 201

    def form_valid(self, form):
        application = Applications(self.comm).get(form["application"])
        if ApplicationStatus(application.get("status", "draft")).final:
            raise Conflict("the application is closed")
        documents = DocumentClient(self.comm, self.user)
        stored = []
        with Undo() as undo:
            for file in form["files"]:
                if not documents.scan(file["name"], file.get("content", "")):
                    raise BadRequest("the file is not clean", file=file["name"])
                document = documents.store(application["id"], file["name"], file.get("content", ""))
                undo.push(documents.remove, document)
                stored.append(document)
            Applications(self.comm).save(application["id"], documents=stored)
        return {"documents": stored}


class DecideApplication(AuditMixin, PermissionRequiredMixin, SingleObjectMixin, FormView):
    permission = "admissions.decide"
    form = DecisionForm
    manager = Applications
    key_param = "application"
    audit_event = "application.decided"

    def form_valid(self, form):
        application = self.get_object()
        status = ApplicationStatus(application.get("status", "draft"))
        if status.final:
            raise Conflict("it is decided already", status=status.value)
        after = STATUS_AFTER[form["decision"]]
        if form["decision"] is Decision.OFFER:
            place = self.comm.call(
                "Admission", "/places/take", {"programme": application.get("programme")}
            ).get()
            if not place.get("taken"):
                raise Conflict("no place is left")
        try:
            Applications(self.comm).save(
                application["id"], status=after.value, note=form["note"], by=self.user.id
            )
        except CommunicationError:
            if form["decision"] is Decision.OFFER:
                self.comm.call(
                    "Admission", "/places/return", {"programme": application.get("programme")}
                ).get()
            raise
        signals.application_decided.send_robust(
            self.comm,
            application=application["id"],
            decision=form["decision"].value,
            email=application.get("email"),
        )
        return {"application": application["id"], "status": after.value}


class RejectLeftovers(PermissionRequiredMixin, BatchView):
    """At the end of the round: everything without a decision is rejected."""

    permission = "admissions.decide"
    batch_size = 25

    def get_items(self):
        waiting = Applications(self.comm).filter(status="submitted", year=self.params.get("year"))
        return (item for item in waiting if not item.get("pinned"))

    def start(self, item):
        return Applications(self.comm).start_save(
            item["id"], status=ApplicationStatus.REJECTED.value, by=self.user.id
        )

    def finish(self, item, result):
        signals.application_decided.send_robust(
            self.comm, application=item["id"], decision="reject", email=item.get("email")
        )
        return item["id"]


class Admissions(CampusService):
    pool_size = 6

    @EP("/applications/submit", method="POST")
    def submit(self, comm):
        return SubmitApplication.as_view()(self, comm)

    @EP("/applications/list", method="GET")
    def list_applications(self, comm):
        return ApplicationList.as_view()(self, comm)

    @EP("/applications/{application_id}", method="GET")
    def application(self, comm):
        return ApplicationDetail.as_view()(self, comm)

    @EP("/applications/documents", method="POST")
    def documents(self, comm):
        return UploadDocuments.as_view()(self, comm)

    @EP("/applications/decide", method="POST")
    def decide(self, comm):
        return DecideApplication.as_view()(self, comm)

    @EP("/applications/batch/reject", method="POST")
    def reject_leftovers(self, comm):
        return RejectLeftovers.as_view()(self, comm)
