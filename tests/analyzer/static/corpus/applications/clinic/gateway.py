import time
from enum import Enum

from mup import EP, MS, Communication
from mup.errors import CommunicationError


class State(Enum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class CircuitBreaker:
    def __init__(self, threshold: int = 3, reset: float = 5.0) -> None:
        self.threshold = threshold
        self.reset = reset
        self.failures = 0
        self.state = State.CLOSED
        self.opened = 0.0

    def allows(self) -> bool:
        if self.state is State.OPEN and time.monotonic() - self.opened > self.reset:
            self.state = State.HALF_OPEN
        return self.state is not State.OPEN

    def succeeded(self) -> None:
        self.failures = 0
        self.state = State.CLOSED

    def failed(self) -> None:
        self.failures += 1
        if self.failures >= self.threshold:
            self.state = State.OPEN
            self.opened = time.monotonic()

    def run(self, call, fallback):
        if not self.allows():
            return fallback()
        try:
            result = call()
        except CommunicationError:
            self.failed()
            return fallback()
        self.succeeded()
        return result


class ApiGateway(MS):
    runtime = "thread"
    pool_size = 16

    def setup(self) -> None:
        self.visits_breaker = CircuitBreaker()
        self.genai_breaker = CircuitBreaker(threshold=1)

    @EP("/owners/{owner}", method="GET")
    def owner(self, comm: Communication, owner: int) -> None:
        details = comm.call("Customers", "/owners/{owner}", {"owner": owner}).get()
        pets = [pet["id"] for pet in details["pets"]]
        visits = self.visits_breaker.run(
            lambda: comm.call("Visits", "/pets/visits", {"pets": pets}).get(), lambda: {"items": []}
        )
        for pet in details["pets"]:
            pet["visits"] = [v for v in visits["items"] if v["pet"] == pet["id"]]
        comm.respond(details)

    @EP("/owners/{owner}/plain", method="GET")
    def plain(self, comm: Communication, owner: int) -> None:
        """Without the breaker."""
        details = comm.call("Customers", "/owners/{owner}", {"owner": owner}).get()
        pets = [pet["id"] for pet in details["pets"]]
        visits = {"items": []}
        if pets:
            try:
                visits = comm.call("Visits", "/pets/visits", {"pets": pets}).get(timeout=1.0)
            except CommunicationError:
                pass
        comm.respond({**details, "visits": visits["items"]})

    @EP("/chat", method="POST")
    def chat(self, comm: Communication, question: str) -> None:
        if not self.genai_breaker.allows():
            comm.respond({"error": "the chat is not available"}, status=503)
            return
        try:
            answer = comm.call("GenAi", "/chat", {"question": question}).get()
        except CommunicationError:
            self.genai_breaker.failed()
            comm.respond({"error": "the chat is not available"}, status=503)
        else:
            self.genai_breaker.succeeded()
            comm.respond(answer)

    @EP("/vets", method="GET")
    def vets(self, comm: Communication) -> None:
        comm.respond(comm.call("Vets", "/vets", method="GET").get())


class Customers(MS):
    @EP("/owners/{owner}")
    def owner(self, comm: Communication, owner: int) -> None:
        found = comm.query("customers", "owner", "owners", {"_id": owner})
        pets = comm.query("customers", "pets", "pets", {"owner": owner})
        rows = found.get()
        if not rows:
            comm.respond({"error": f"owner {owner} not found"}, status=404)
            return
        comm.respond({**rows[0], "pets": pets.get()})

    @EP("/owners", method="POST")
    def create(self, comm: Communication, first: str, last: str, telephone: str = "") -> None:
        errors = {}
        if not first:
            errors["first"] = "must not be empty"
        if not last:
            errors["last"] = "must not be empty"
        if telephone and not telephone.isdigit():
            errors["telephone"] = "digits only"
        if errors:
            comm.respond({"errors": errors}, status=400)
            return
        row = {"first": first, "last": last, "telephone": telephone}
        comm.query("customers", "insert_owner", "owners", {"$insert": [row]}).get()
        comm.respond(row, status=201)

    @EP("/owners/{owner}/pets/{pet}", method="PUT")
    def update_pet(self, comm: Communication, owner: int, pet: int) -> None:
        known = comm.query("customers", "pets", "pets", {"owner": owner}).get()
        if pet not in {p["id"] for p in known}:
            comm.respond({"error": "no such pet"}, status=404)
            return
        change = {"filter": {"id": pet}, "update": {"$set": {"name": comm.params.get("name", "")}}}
        comm.query("customers", "update_pet", "pets", {"$update": change}).get()
        comm.respond(None, status=204)


class Visits(MS):
    @EP("/pets/visits")
    def visits(self, comm: Communication, pets: list[int]) -> None:
        comm.respond({"items": comm.query("visits", "of_pets", "visits", {"pet": {"$in": pets}}).get()})

    @EP("/owners/{owner}/pets/{pet}/visits", method="POST")
    def create(self, comm: Communication, owner: int, pet: int) -> None:
        row = {"pet": pet, "date": comm.params.get("date"), "text": comm.params.get("text", "")}
        comm.query("visits", "insert", "visits", {"$insert": [row]}).get()
        comm.respond(row, status=201)


class Vets(MS):
    def setup(self) -> None:
        self._vets = None

    @EP("/vets", method="GET")
    def vets(self, comm: Communication) -> None:
        if self._vets is None:
            self._vets = comm.query("vets", "all", "vets", {}).get()
        comm.respond(self._vets)


class GenAi(MS):
    @EP("/chat")
    def chat(self, comm: Communication, question: str) -> None:
        words = question.lower().split()
        if "vet" in words or "vets" in words:
            vets = comm.call("Vets", "/vets", method="GET").get()
            comm.respond({"answer": f"we have {len(vets)} vets"})
        elif "owner" in words:
            owner = comm.call("Customers", "/owners/{owner}", {"owner": 1}).get(check=False)
            comm.respond({"answer": owner.body if owner.ok else "I do not know"})
        else:
            comm.respond({"answer": "I do not understand"})
