"""Users and their items, with current user, permissions and pages."""

import datetime
import uuid
from typing import Any

import msgspec
from deps import Forbidden, HTTPException, current_user, error_answers, superuser
from mup import EP, MS, Communication


class ItemCreate(msgspec.Struct):
    title: str
    description: str | None = None


class ItemUpdate(msgspec.Struct):
    title: str | None = None
    description: str | None = None


class Items(MS):
    pool_size = 4

    def _get(self, comm: Communication, user: dict[str, Any], id: str) -> dict[str, Any]:
        rows = comm.query("app", "item", "items", {"_id": id}).get()
        if not rows:
            raise HTTPException(404, "Item not found")
        item = rows[0]
        if not user.get("superuser") and item.get("owner") != user["_id"]:
            raise HTTPException(403, "Not enough permissions")
        return item

    @EP("/items", method="GET", name="list")
    def read_items(self, comm: Communication, skip: int = 0, limit: int = 100) -> None:
        with error_answers(comm):
            user = current_user(comm)
            where = {} if user.get("superuser") else {"owner": user["_id"]}
            count = comm.query("app", "count_items", "items", where)
            rows = comm.query("app", "items", "items", where)
            comm.respond({"data": rows.get()[skip : skip + limit], "count": len(count.get())})

    @EP("/items/{id}", method="GET", name="read")
    def read_item(self, comm: Communication, id: str) -> None:
        with error_answers(comm):
            comm.respond(self._get(comm, current_user(comm), id))

    @EP("/items", method="POST", name="create")
    def create_item(self, comm: Communication, item: ItemCreate) -> None:
        try:
            user = current_user(comm)
        except HTTPException as error:
            comm.respond({"detail": error.detail}, status=error.status)
            return
        row = {"_id": str(uuid.uuid4()), "owner": user["_id"], **msgspec.to_builtins(item)}
        comm.query("app", "insert_item", "items", {"$insert": [row]}).get()
        comm.respond(row, status=201)

    @EP("/items/{id}", method="PUT", name="update")
    def update_item(self, comm: Communication, id: str, change: ItemUpdate) -> None:
        try:
            item = self._get(comm, current_user(comm), id)
            new = {k: v for k, v in msgspec.to_builtins(change).items() if v is not None}
            if new:
                query = {"$update": {"filter": {"_id": id}, "update": {"$set": new}}}
                comm.query("app", "update_item", "items", query).get()
            comm.respond({**item, **new})
        except HTTPException as error:
            comm.respond({"detail": error.detail}, status=error.status)

    @EP("/items/{id}", method="DELETE", name="delete")
    def delete_item(self, comm: Communication, id: str) -> None:
        try:
            self._get(comm, current_user(comm), id)
        except Forbidden:
            comm.respond({"detail": "forbidden"}, status=403)
        except HTTPException as error:
            comm.respond({"detail": error.detail}, status=error.status)
        else:
            comm.query("app", "delete_item", "items", {"$delete": {"filter": {"_id": id}}}).get()
            comm.respond({"message": "Item deleted successfully"})


class Users(MS):
    @EP("/users", method="GET", name="list")
    def read_users(self, comm: Communication, skip: int = 0, limit: int = 100) -> None:
        if not superuser(comm):
            comm.respond({"detail": "The user doesn't have enough privileges"}, status=403)
            return
        rows = comm.query("app", "users", "users", {}).get()
        comm.respond({"data": rows[skip : skip + limit], "count": len(rows)})

    @EP("/users/me", method="GET", name="me")
    def me(self, comm: Communication) -> None:
        with error_answers(comm):
            comm.respond(current_user(comm))

    @EP("/users/signup", method="POST", name="signup")
    def signup(self, comm: Communication, email: str, password: str) -> None:
        if comm.query("app", "user_by_email", "users", {"email": email}).get():
            comm.respond({"detail": "The user with this email already exists"}, status=400)
            return
        user = {"_id": str(uuid.uuid4()), "email": email, "password": password}
        comm.query("app", "insert_user", "users", {"$insert": [user]}).get()
        comm.call("Emails", "/welcome", {"email": email})
        comm.respond({"id": user["_id"]}, status=201)

    @EP("/users/{id}", method="DELETE", name="delete")
    def delete(self, comm: Communication, id: str) -> None:
        try:
            user = current_user(comm)
        except HTTPException as error:
            return comm.respond({"detail": error.detail}, status=error.status)
        if user["_id"] == id and user.get("superuser"):
            return comm.respond({"detail": "Super users are not allowed to delete themselves"}, status=403)
        for name in ("items", "users"):
            key = "owner" if name == "items" else "_id"
            comm.query("app", f"delete_{name}", name, {"$delete": {"filter": {key: id}}}).get()
        return comm.respond(None, status=204)

    @EP("/login/access-token", method="POST", name="login")
    def login(self, comm: Communication) -> None:
        form = comm.params
        users = comm.query("app", "user_by_email", "users", {"email": form.get("username")}).get()
        user = users[0] if users and users[0].get("password") == form.get("password") else None
        if user is None:
            comm.respond({"detail": "Incorrect email or password"}, status=400)
        elif not user.get("active", True):
            comm.respond({"detail": "Inactive user"}, status=400)
        else:
            until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=30)
            comm.respond({"access_token": f"{user['_id']}.{until.timestamp()}", "token_type": "bearer"})

    @EP("/password-recovery/{email}", method="POST", name="recover")
    def recover(self, comm: Communication, email: str) -> None:
        users = comm.query("app", "user_by_email", "users", {"email": email}).get()
        if users:
            comm.call("Emails", "/recovery", {"email": email}).get()
        comm.respond({"message": "If that email is registered, we sent a link"})


class Emails(MS):
    @EP("/welcome")
    def welcome(self, comm: Communication, email: str) -> None:
        comm.respond({"to": email})

    @EP("/recovery")
    def recovery(self, comm: Communication, email: str) -> None:
        comm.respond({"to": email})
