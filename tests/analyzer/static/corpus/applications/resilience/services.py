import time

from mup import EP, MS, Communication
from mup.errors import BrokenCallError, CallError, CallTimeoutError, CommunicationError, NoReplicaError
from retrying import Deadline, RetryError, Retrying, fallback, on_exception, retry, retry_async


@retry(attempts=3)
def rate(comm, currency):
    return comm.call("Rates", "/rate", {"currency": currency}).get()["rate"]


@on_exception(CommunicationError, max_tries=4)
def stored_rate(comm, currency):
    return comm.query("rates", "stored", "rates", {"currency": currency}).get()


@fallback({"rate": 1.0})
def rate_or_one(comm, currency):
    return comm.call("Rates", "/rate", {"currency": currency}).get()


@retry_async(3)
async def rate_async(comm, currency):
    answer = await comm.call("Rates", "/rate", {"currency": currency})
    return answer["rate"]


class Client:
    """A client of the rates with retries inside."""

    def __init__(self, comm: Communication, attempts: int = 3) -> None:
        self.comm = comm
        self.attempts = attempts

    @retry(attempts=2, on=(CallTimeoutError, NoReplicaError))
    def rate(self, currency: str) -> float:
        return self.comm.call("Rates", "/rate", {"currency": currency}).get()["rate"]

    def request(self, service: str, path: str, params: dict) -> dict:
        last = None
        for _ in range(self.attempts):
            try:
                return self.comm.call(service, path, params).get()
            except CallError as error:
                if error.status not in (502, 503, 504):
                    raise
                last = error
            except (CallTimeoutError, BrokenCallError) as error:
                last = error
        raise last


class Exchange(MS):
    runtime = "thread"
    pool_size = 8

    @EP("/retried")
    def retried(self, comm: Communication, currency: str = "EUR") -> None:
        comm.respond(rate(comm, currency))

    @EP("/backoff")
    def backoff(self, comm: Communication, currency: str = "EUR") -> None:
        comm.respond(stored_rate(comm, currency))

    @EP("/fallback")
    def fallback(self, comm: Communication, currency: str = "EUR") -> None:
        comm.respond(rate_or_one(comm, currency))

    @EP("/method")
    def method(self, comm: Communication, currency: str = "EUR") -> None:
        try:
            comm.respond(Client(comm).rate(currency))
        except CommunicationError as error:
            comm.respond({"error": str(error)}, status=503)

    @EP("/client")
    def client(self, comm: Communication, currency: str = "EUR") -> None:
        comm.respond(Client(comm).request("Rates", "/rate", {"currency": currency}))

    @EP("/retrying")
    def retrying(self, comm: Communication, currency: str = "EUR") -> None:
        answer = None
        for attempt in Retrying(3):
            with attempt:
                answer = comm.call("Rates", "/rate", {"currency": currency}).get()
        comm.respond(answer)

    @EP("/loop")
    def loop(self, comm: Communication, currency: str = "EUR") -> None:
        attempts = 0
        while True:
            try:
                answer = comm.call("Rates", "/rate", {"currency": currency}).get()
                break
            except CommunicationError:
                attempts += 1
                if attempts == 3:
                    comm.respond({"error": "not available"}, status=503)
                    return
                time.sleep(0.1)
        comm.respond(answer)

    @EP("/replicas")
    def by_replica(self, comm: Communication, currency: str = "EUR") -> None:
        """One after the other, until one knows."""
        for service in ("Rates", "Archive"):
            try:
                comm.respond(comm.call(service, "/rate", {"currency": currency}).get())
                return
            except CommunicationError:
                continue
        comm.respond({"error": "nobody knows"}, status=404)

    @EP("/deadline")
    def deadline(self, comm: Communication, currency: str = "EUR") -> None:
        deadline = Deadline(2.0)
        try:
            first = comm.call("Rates", "/rate", {"currency": currency}, timeout=deadline.left).get()
            second = comm.call("Archive", "/rate", {"currency": currency}, timeout=deadline.left).get()
        except CallTimeoutError:
            comm.respond({"error": "too late"}, status=504)
            return
        comm.respond([first, second])

    @EP("/statuses")
    def statuses(self, comm: Communication, currency: str = "EUR") -> None:
        answer = comm.call("Rates", "/rate", {"currency": currency}).get(check=False)
        match answer.status:
            case 200:
                comm.respond(answer.body)
            case 404:
                comm.respond(comm.call("Archive", "/rate", {"currency": currency}).get())
            case 503 | 504:
                comm.respond({"error": "try again"}, status=503, headers={"Retry-After": "1"})
            case status if status >= 500:
                comm.respond({"error": "broken"}, status=502)
            case _:
                comm.respond(answer.body, status=answer.status)

    @EP("/cleanup")
    def cleanup(self, comm: Communication, currency: str = "EUR") -> None:
        lock = comm.query("locks", "take", "locks", {"$insert": [{"_id": currency}]}).get()
        try:
            answer = comm.call("Rates", "/rate", {"currency": currency}).get()
        finally:
            comm.query("locks", "release", "locks", {"$delete": {"filter": {"_id": currency}}}).get()
        comm.respond({"rate": answer, "lock": len(lock)})


class AsyncExchange(MS):
    runtime = "async"
    pool_size = 32

    @EP("/retried")
    async def retried(self, comm: Communication, currency: str = "EUR") -> None:
        try:
            comm.respond(await rate_async(comm, currency))
        except RetryError as error:
            comm.respond({"error": str(error)}, status=503)

    @EP("/loop")
    async def loop(self, comm: Communication, currency: str = "EUR") -> None:
        for attempt in range(3):
            try:
                comm.respond(await comm.call("Rates", "/rate", {"currency": currency}))
            except CommunicationError:
                if attempt == 2:
                    raise
            else:
                return


class Rates(MS):
    @EP("/rate")
    def rate(self, comm: Communication, currency: str) -> None:
        rows = comm.query("rates", "one", "rates", {"_id": currency}).get()
        if not rows:
            comm.respond({"error": "unknown currency"}, status=404)
            return
        comm.respond({"rate": rows[0].get("rate", 1)})


class Archive(MS):
    @EP("/rate")
    def rate(self, comm: Communication, currency: str) -> None:
        comm.respond({"rate": 1})
