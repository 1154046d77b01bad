"""Logins, roles, and the start page of a user."""

from datetime import date

import campus_signals as signals
from campus_forms import (
    BooleanField,
    ChoiceField,
    EmailField,
    Form,
    FormError,
    TextField,
)
from campus_http import (
    NotAuthenticated,
    TooManyRequests,
    api_errors,
    login_required,
    permission_required,
)
from campus_models import Role
from campus_utils import TTLCache, settle
from campus_views import CampusService
from mup import EP
from mup.communication import Cookie
from mup.errors import CallError, CommunicationError

MAX_FAILURES = 50
SESSION_SECONDS = 8 * 3600


class LoginForm(Form):
    email = EmailField()
    password = TextField(max_length=128)
    code = TextField(required=False, max_length=6)
    remember = BooleanField()


class RoleForm(Form):
    user = TextField()
    role = ChoiceField(Role)

    def clean_user(self, value):
        if value == self.user.id:
            raise FormError("nobody changes the own role")
        return value


class Accounts(CampusService):
    def setup(self):
        super().setup()
        self.failures = TTLCache(60)

    def _throttle(self, email):
        if self.failures.get(email, 0) >= MAX_FAILURES:
            raise TooManyRequests("too many attempts, wait a minute")

    def _check_credentials(self, comm, form):
        try:
            return comm.call(
                "Identity", "/credentials", {"email": form["email"], "password": form["password"]}
            ).get()
        except CallError as error:
            if error.status not in (400, 401, 403):
                raise
            self.failures.set(form["email"], self.failures.get(form["email"], 0) + 1)
            signals.login_failed.send_robust(comm, email=form["email"])
            raise NotAuthenticated("e-mail or password is wrong") from error

    @EP("/login", method="POST")
    @api_errors
    def login(self, comm):
        form = LoginForm(comm.params)
        form.validated()
        self._throttle(form["email"])
        account = self._check_credentials(comm, form)
        if account.get("second_factor"):
            if not form["code"]:
                comm.respond({"second_factor": True}, status=202)
                return
            verified = comm.call(
                "Identity", "/second-factor", {"user": account["user"], "code": form["code"]}
            ).get()
            if not verified.get("ok"):
                raise NotAuthenticated("the code is wrong")
        seconds = SESSION_SECONDS * 30 if form["remember"] else SESSION_SECONDS
        token = comm.call("Identity", "/tokens", {"user": account["user"], "seconds": seconds}).get()["token"]
        self.failures.delete(form["email"])
        signals.logged_in.send(comm, user=account["user"])
        cookie = Cookie(value=token, max_age=seconds, secure=True)
        comm.respond({"user": account["user"], "token": token}, cookies={"session": cookie})

    @EP("/me", method="GET")
    @api_errors
    @login_required
    def start_page(self, comm, user):
        """The tiles of the start page. What is down is left out."""
        headers = {"Authorization": f"Bearer {user.token}"}
        futures = {"profile": comm.call("Students", "/get", {"id": user.id})}
        if user.role is Role.STUDENT:
            futures["fees"] = comm.call(
                "Fees", "/statement/{student_id}", {"student_id": user.id}, headers=headers
            )
            futures["loans"] = comm.call(
                "Library", "/loans/{student_id}", {"student_id": user.id}, headers=headers
            )
            futures["week"] = comm.call(
                "Timetable", "/week/{student_id}", {"student_id": user.id}, headers=headers
            )
        elif user.role is Role.TEACHER:
            futures["courses"] = comm.call(
                "Catalogue", "/taught", {"teacher": user.id, "year": date.today().year}
            )
        if self.flags.enabled(comm, "announcements"):
            futures["news"] = comm.call("Calendar", "/events", {"audience": user.role.value})
        tiles, missing = settle(futures, timeout=3.0)
        comm.respond({"user": user.id, "role": user.role.value, "tiles": tiles, "missing": missing})

    @EP("/roles/grant", method="POST")
    @api_errors
    @permission_required("roles.edit")
    def grant_role(self, comm, user):
        form = RoleForm(comm.params, user=user)
        form.validated()
        roles = (
            comm.call("Identity", "/users/{user_id}/roles", {"user_id": form["user"]}, method="GET")
            .get()
            .get("roles", [])
        )
        if form["role"].value in roles:
            comm.respond({"user": form["user"], "roles": roles})
            return
        roles = sorted({*roles, form["role"].value})
        comm.call("Identity", "/users/{user_id}/roles/set", {"user_id": form["user"], "roles": roles}).get()
        try:
            signals.role_granted.send(comm, user=form["user"], role=form["role"].value, by=user.id)
        except CommunicationError:
            self.log.exception("role of %s was changed without a record", form["user"])
        comm.respond({"user": form["user"], "roles": roles}, status=201)
