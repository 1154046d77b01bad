import json
import time
from contextlib import ExitStack, closing, nullcontext, suppress

from lib import (
    TRANSIENT,
    BadReading,
    Breaker,
    BreakerOpen,
    Err,
    GridDown,
    Ok,
    TariffMissing,
    Tolerate,
    answered,
    attempt,
    compensated,
    log,
    retry,
    translated,
)
from mup import EP, MS, Communication
from mup.errors import (
    BrokenCallError,
    CallError,
    CallTimeoutError,
    CommunicationError,
    DatabaseDownError,
    MupError,
    NoReplicaError,
    QueryError,
    QueryTimeoutError,
)


class Meters(MS):
    pool_size = 4

    def setup(self):
        self.breaker = Breaker(2)

    @EP("/meter")
    @answered
    @translated
    def meter(self, comm: Communication) -> None:
        found = comm.call("Registry", "/find", {"id": comm.params.get("id")}).get()
        if not found.get("active"):
            comm.call("Registry", "/activate", {}).get()
        comm.respond(found)

    @EP("/latest")
    def latest(self, comm: Communication) -> None:
        @retry(attempts=2, errors=(*TRANSIENT, BrokenCallError))
        def primary():
            return comm.call("Head", "/latest", {}, timeout=0.5).get()

        @retry(2)
        def secondary():
            return comm.call("Mirror", "/latest", {}).get()

        def cached():
            rows = comm.query("grid", "cached", "latest", {}).get()
            if not rows:
                raise TariffMissing("cache")
            return rows[0]

        errors = []
        for source in (primary, secondary, cached):
            try:
                value = source()
            except (MupError, LookupError) as error:
                errors.append(error)
            else:
                comm.respond({"value": value, "failed": len(errors)})
                break
        else:
            comm.call("Pager", "/page", {"errors": [str(e) for e in errors]})
            raise GridDown("latest") from errors[-1]

    @EP("/parse")
    def parse(self, comm: Communication) -> None:
        text = comm.params.get("text", "")
        try:
            if not text.startswith("{"):
                raise BadReading(text)
            reading = json.loads(text)
            kwh = reading["kwh"]
        except BadReading:
            comm.call("DeadLetters", "/raw", {"text": text}).get()
            comm.respond({}, status=415)
            return
        except ValueError:
            comm.call("DeadLetters", "/broken", {"text": text}).get()
            comm.respond({}, status=422)
            return
        except KeyError as error:
            comm.call("DeadLetters", "/partial", {"key": error.args[0]}).get()
            kwh = 0
        finally:
            comm.call("Audit", "/parsed", {})
        comm.call("Store", "/reading", {"kwh": kwh}).get()
        comm.respond({"kwh": kwh}, status=201)

    @EP("/guarded")
    def guarded(self, comm: Communication) -> None:
        try:
            with self.breaker:
                level = comm.call("Grid", "/load", {}).get()
        except BreakerOpen as error:
            rows = comm.query("grid", "load", "latest", {}).get()
            comm.respond(rows, status=error.status)
        except Exception as error:
            if isinstance(error, CallError) and error.status < 500:
                raise
            comm.call("Grid", "/estimate", {"failures": self.breaker.failures}).get()
            comm.respond({}, status=203)
        else:
            comm.respond(level)

    @EP("/tolerant")
    def tolerant(self, comm: Communication) -> None:
        with Tolerate(404, 409) as guard:
            comm.call("Registry", "/remove", {}).get()
            comm.query("grid", "remove", "meters", {}).get()
            comm.call("Audit", "/removed", {}).get()
        if guard.error is not None and guard.error.status == 409:
            comm.call("Registry", "/force", {}).get()
        with suppress(CallError, NoReplicaError):
            comm.call("Audit", "/done", {}).get()
        comm.respond(status=204)

    @EP("/batch")
    def batch(self, comm: Communication) -> None:
        asked = []
        failed = []
        for number in comm.params.get("meters", []):
            try:
                asked.append((number, comm.call("Store", "/batch", {"meter": number})))
            except CommunicationError as error:
                failed.append((number, error))
        for number, future in asked:
            answer = None
            try:
                answer = future.get(check=False)
            except (CallTimeoutError, BrokenCallError) as error:
                failed.append((number, error))
                continue
            if answer.status == 409:
                comm.call("Store", "/merge", {"meter": number}).get()
            elif not answer.ok:
                failed.append((number, None))
        for number, error in failed:
            comm.call("DeadLetters", "/put", {"meter": number, "lost": isinstance(error, BrokenCallError)})
        comm.respond({"failed": len(failed)}, status=207 if failed else 200)

    @EP("/bill")
    def bill(self, comm: Communication) -> None:
        problem = None
        with ExitStack() as stack:
            stack.callback(lambda: comm.call("Audit", "/billed", {}))
            stack.enter_context(suppress(QueryError))
            if comm.params.get("test"):
                stack.enter_context(nullcontext())
            else:
                stack.enter_context(compensated(comm, "bill"))
            rows = comm.query("grid", "usage", "readings", {}).get()
            try:
                comm.call("Tariffs", "/price", {"rows": len(rows)}).get()
            except CallError as error:
                problem = error
            comm.call("Billing", "/create", {}).get()
        if problem:
            raise problem
        comm.respond({}, status=201)

    def _pages(self, comm):
        page = 0
        try:
            while page < 3:
                rows = comm.query("grid", "page", "readings", {"page": page}).get()
                if not rows:
                    return
                yield rows
                page += 1
        except QueryTimeoutError:
            comm.call("Audit", "/slow", {}).get()
        finally:
            comm.call("Store", "/close", {"pages": page}).get()

    @EP("/export")
    def export(self, comm: Communication) -> None:
        with closing(self._pages(comm)) as pages:
            for rows in pages:
                try:
                    comm.call("Export", "/send", {"rows": len(rows)}).get()
                except CallError as error:
                    log.error("export: %s", error)
                    break
        comm.respond({})

    @EP("/result")
    def result(self, comm: Communication) -> None:
        outcome = attempt(self._tariff, comm).then(lambda t: attempt(self._cost, comm, t))
        match outcome:
            case Ok(value):
                comm.respond({"cost": value})
            case Err(CallError(status=404)):
                comm.call("Tariffs", "/default", {}).get()
                comm.respond({}, status=203)
            case Err(error=QueryError() | DatabaseDownError()):
                comm.respond({}, status=503)
            case Err(error):
                comm.call("Pager", "/page", {"error": str(error)})
                raise error

    def _tariff(self, comm):
        return comm.call("Tariffs", "/of", {}).get()

    def _cost(self, comm, tariff):
        return len(comm.query("grid", "cost", "readings", tariff).get())

    @EP("/handlers")
    def handlers(self, comm: Communication) -> None:
        table = {
            CallError: self._refused,
            CallTimeoutError: self._late,
            QueryError: lambda comm, error: comm.respond({}, status=422),
        }
        try:
            comm.call("Outages", "/report", {}).get()
            comm.query("grid", "outage", "outages", {}).get()
            comm.respond({}, status=201)
        except MupError as error:
            handler = table.get(type(error))
            if handler is None:
                comm.call("DeadLetters", "/outage", {}).get()
                raise
            handler(comm, error)

    def _refused(self, comm, error):
        if error.status in (400, 409):
            comm.call("Outages", "/known", {}).get()
        comm.respond(error.body, status=error.status)

    def _late(self, comm, error):
        comm.call("Outages", "/cancel", {})
        comm.respond({}, status=504)

    @EP("/deadline")
    def deadline(self, comm: Communication) -> None:
        until = time.monotonic() + 5
        last: Exception | None = None
        tries = 0
        while tries < 3 and time.monotonic() < until:
            tries += 1
            try:
                state = self._state(comm)
                break
            except (CallError, *TRANSIENT) as e:
                if isinstance(e, (CallTimeoutError, NoReplicaError)):
                    last = e
                    continue
                if e.status == 503:
                    last = GridDown("state")
                    last.__cause__ = e
                    comm.call("Grid", "/wake", {}).get()
                    continue
                raise
        else:
            comm.call("Audit", "/gave-up", {"tries": tries})
            raise last or GridDown("no time")
        comm.respond(state)

    @retry(attempts=2, errors=BrokenCallError)
    def _state(self, comm):
        future = comm.call("Grid", "/state", {})
        try:
            return future.get(timeout=0.5)
        except CallTimeoutError:
            comm.call("Audit", "/waiting", {})
            return future.get(timeout=1)
