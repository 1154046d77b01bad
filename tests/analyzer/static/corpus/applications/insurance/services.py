"""Insurance platform: quotes, policies, claims, fraud checks, billing and the portal of the brokers."""

from __future__ import annotations

import asyncio
import functools
import hmac
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar

from building_blocks import (
    CircuitBreaker,
    Conflict,
    DomainError,
    Err,
    Forbidden,
    NotFound,
    Ok,
    Result,
    Saga,
    Unavailable,
    ValidationFailed,
    async_secured,
    forwarded,
    log,
    retry,
    secured,
    user,
)
from carriers import CarrierAdapter, Offer, Risk
from fraud_rules import Finding, FraudRule
from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError
from policy_domain import CancelPolicy, EndorsePolicy, IssuePolicy, PolicyRepository, RenewPolicy, bus

E = TypeVar("E")


# --- quotes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quote:
    id: str
    risk: Risk
    offers: list[Offer]
    status: str = "open"

    @property
    def best(self) -> Offer | None:
        return min(self.offers, key=lambda offer: offer.premium, default=None)


class QuoteRepository:
    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    async def get(self, quote_id: str) -> Quote:
        row = await self.comm.call("QuoteStore", "/get", {"id": quote_id})
        if not row:
            raise NotFound("no such quote", quote=quote_id)
        offers = [Offer(**offer) for offer in row.get("offers", [])]
        return Quote(quote_id, Risk(**row["risk"]), offers, row.get("status", "open"))

    async def save(self, quote: Quote) -> None:
        await self.comm.call("QuoteStore", "/put", asdict(quote))


class Quotes(MS):
    runtime = "async"
    pool_size = 32

    def setup(self) -> None:
        self.breakers: defaultdict[str, CircuitBreaker] = defaultdict(CircuitBreaker)

    async def _panel(self, comm: Communication, risk: Risk) -> list[CarrierAdapter]:
        """The carriers that are switched on for the tenant and like the risk."""
        try:
            flags = await comm.call("Features", "/flags", {"tenant": user.get().tenant}, timeout=0.3)
        except CommunicationError:
            flags = {}
        return [
            adapter(comm)
            for name, adapter in CarrierAdapter.registry.items()
            if name not in flags.get("disabled", ())
            and adapter.appetite.is_satisfied_by(risk)
            and self.breakers[name].allows()
        ]

    async def _price(self, adapter: CarrierAdapter, risk: Risk) -> Result[Offer]:
        breaker = self.breakers[adapter.name]
        try:
            async with asyncio.timeout(3.0):
                result = await adapter.price(risk)
        except (CommunicationError, TimeoutError) as error:
            breaker.record(success=False)
            return Err(Unavailable(f"{adapter.name}: {type(error).__name__}"))
        breaker.record(success=True)
        return result

    @EP("/quotes", method="POST")
    @async_secured("customer", "broker")
    async def compare(self, comm: Communication) -> None:
        risk = Risk.parse(comm.params).unwrap()
        panel = await self._panel(comm, risk)
        results = await asyncio.gather(*(self._price(adapter, risk) for adapter in panel))
        offers = [result.value for result in results if isinstance(result, Ok)]
        if not offers:
            raise Unavailable("no offers", refusals=[r.error.problem for r in results if isinstance(r, Err)])
        quote = Quote(uuid.uuid4().hex, risk, sorted(offers, key=lambda offer: offer.premium))
        await QuoteRepository(comm).save(quote)
        comm.respond(asdict(quote), 201)
        if comm.params.get("remind"):
            comm.call("Notifications", "/schedule", {"template": "quote_reminder", "quote": quote.id})

    @EP("/quotes/{quote_id}", method="GET")
    @async_secured()
    async def quote(self, comm: Communication, quote_id: str) -> None:
        cached = await comm.call("Cache", "/get", {"key": f"quote:{quote_id}"})
        if value := cached.get("value"):
            comm.respond(value, headers={"X-Cache": "hit"})
            return
        quote = await QuoteRepository(comm).get(quote_id)
        comm.respond(asdict(quote), headers={"X-Cache": "miss"})
        if quote.status == "open":
            with suppress(CommunicationError):
                await comm.call(
                    "Cache", "/put", {"key": f"quote:{quote_id}", "value": asdict(quote), "ttl": 60}
                )

    @EP("/quotes/{quote_id}/accept", method="POST")
    @async_secured("customer", "broker")
    async def accept(self, comm: Communication, quote_id: str) -> None:
        quote = await QuoteRepository(comm).get(quote_id)
        if quote.status != "open":
            raise Conflict("quote is not open", state=quote.status)
        wanted = comm.params.get("carrier")
        offer = next((o for o in quote.offers if o.carrier == wanted), None) if wanted else quote.best
        if offer is None:
            raise ValidationFailed("no such offer", carrier=wanted)
        adapter = CarrierAdapter.registry[offer.carrier](comm)
        async with AsyncExitStack() as undo:
            binding = await adapter.bind(offer)
            undo.push_async_callback(adapter.unbind, binding)
            order = {"holder": quote.risk.holder, "product": quote.risk.product, "premium": offer.premium}
            policy = await comm.call("Policies", "/policies/issue", order, headers=forwarded(comm))
            await QuoteRepository(comm).save(Quote(quote.id, quote.risk, quote.offers, "accepted"))
            undo.pop_all()
        comm.respond({"policy": policy.get("id"), "binding": binding}, 201)

    @EP("/quotes/fleet", method="POST")
    @async_secured("broker")
    async def fleet(self, comm: Communication) -> None:
        """Price many vehicles at one carrier, a few at a time."""
        vehicles = comm.params.get("vehicles", [])
        if not 1 <= len(vehicles) <= 10:
            raise ValidationFailed("1 to 10 vehicles", got=len(vehicles))
        adapter = CarrierAdapter.registry[comm.params.get("carrier", "nordic")](comm)
        gate = asyncio.Semaphore(2)
        premiums: dict[str, float | None] = {}

        async def price(vehicle: str) -> None:
            async with gate:
                history = await comm.call("Vehicles", "/history", {"vin": vehicle})
                if history.get("stolen"):
                    premiums[vehicle] = None
                    return
                result = await self._price(adapter, Risk("motor", user.get().subject, 20_000, vehicle))
            premiums[vehicle] = result.value.premium if isinstance(result, Ok) else None

        async with asyncio.TaskGroup() as group:
            for vehicle in vehicles:
                group.create_task(price(vehicle))
        comm.respond({"premiums": premiums})


# --- policies ----------------------------------------------------------------------------------------------------


class Policies(MS):
    runtime = "process"
    pool_size = 8

    def _reply(self, comm: Communication, result: Result[dict[str, Any]], status: int = 200) -> None:
        match result:
            case Ok(value):
                comm.respond(value, 200 if value.get("replayed") else status)
            case Err(error):
                comm.respond(error.problem, error.status)

    @EP("/policies/issue", method="POST")
    @secured("customer", "broker")
    def issue(self, comm: Communication) -> None:
        try:
            premium = float(comm.params["premium"])
            command = IssuePolicy(comm.params["holder"], comm.params.get("product", "home"), premium)
        except (KeyError, ValueError) as error:
            raise ValidationFailed(f"bad command: {error}") from error
        self._reply(comm, bus.dispatch(command, comm), 201)

    @EP("/policies/{policy_id}", method="GET")
    @secured()
    def policy(self, comm: Communication, policy_id: str) -> None:
        policy = PolicyRepository(comm).get(policy_id)
        if user.get().roles == {"customer"} and policy.holder != user.get().subject:
            raise NotFound("no such policy", policy=policy_id)
        comm.respond(policy.as_dict())

    @EP("/policies/{policy_id}/endorse", method="POST")
    @secured("broker", "underwriter")
    def endorse(self, comm: Communication, policy_id: str) -> None:
        change = comm.params.get("change", "")
        if change not in {"address", "driver", "cover"}:
            raise ValidationFailed("unknown change", change=change)
        command = EndorsePolicy(policy_id, change, float(comm.params.get("delta", 0)))
        self._reply(comm, bus.dispatch(command, comm))

    @EP("/policies/{policy_id}/cancel", method="POST")
    @secured("customer", "broker", "operator")
    def cancel(self, comm: Communication, policy_id: str) -> None:
        result = bus.dispatch(CancelPolicy(policy_id, comm.params.get("reason", "customer")), comm)
        self._reply(comm, result)
        if isinstance(result, Ok):
            comm.call("Notifications", "/email", {"template": "cancelled", "policy": policy_id})

    @EP("/policies/{policy_id}/history", method="GET")
    @secured()
    def history(self, comm: Communication, policy_id: str) -> None:
        """Audit trail; stops reading when the page is full."""
        limit = min(int(comm.params.get("limit", 3)), 50)
        kinds = set(filter(None, comm.params.get("kinds", "").split(",")))
        trail = []
        for row in PolicyRepository(comm).events(policy_id):
            if kinds and row["type"] not in kinds:
                continue
            trail.append(row)
            if len(trail) == limit:
                break
        comm.respond({"policy": policy_id, "events": trail})

    @EP("/renewals/run", method="POST")
    @secured("operator", bucket="renewals")
    def run_renewals(self, comm: Communication) -> None:
        due = comm.call("Calendar", "/due", {"kind": "renewal", "before": comm.params.get("before")}).get()
        letters, failed = {}, {}
        for policy_id in due.get("policies", []):
            try:
                result = bus.dispatch(RenewPolicy(policy_id), comm)
            except CommunicationError as error:
                failed[policy_id] = type(error).__name__
                continue
            if isinstance(result, Err):
                failed[policy_id] = str(result.error)
            else:
                letters[policy_id] = comm.call(
                    "Documents", "/render", {"template": "renewal", **result.value}
                )
        documents = {policy_id: letter.get().get("url") for policy_id, letter in letters.items()}
        comm.respond({"renewed": documents, "failed": failed}, 207 if failed else 200)


# --- claims ------------------------------------------------------------------------------------------------------


class ClaimState(StrEnum):
    REPORTED = "reported"
    INSPECTION = "inspection"
    APPROVED = "approved"
    REJECTED = "rejected"
    SETTLED = "settled"


TRANSITIONS: dict[tuple[ClaimState, str], ClaimState] = {
    (ClaimState.REPORTED, "inspect"): ClaimState.INSPECTION,
    (ClaimState.REPORTED, "approve"): ClaimState.APPROVED,
    (ClaimState.REPORTED, "reject"): ClaimState.REJECTED,
    (ClaimState.INSPECTION, "approve"): ClaimState.APPROVED,
    (ClaimState.INSPECTION, "reject"): ClaimState.REJECTED,
    (ClaimState.REJECTED, "appeal"): ClaimState.REPORTED,
}


@dataclass(slots=True)
class Claim:
    id: str
    policy: str
    amount: float = 0.0
    state: ClaimState = ClaimState.REPORTED
    parties: list[str] = field(default_factory=list)


class Repository(ABC, Generic[E]):
    """Rows of a document store as entities."""

    store: ClassVar[str]

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    @abstractmethod
    def to_entity(self, row: dict[str, Any]) -> E: ...

    def get(self, key: str) -> E:
        answer = self.comm.call(self.store, "/get", {"id": key}).get(check=False)
        if answer.status == 404 or not answer.body:
            raise NotFound(f"nothing in {self.store}", key=key)
        if not answer.ok:
            raise Unavailable(f"{self.store} answers {answer.status}")
        return self.to_entity(answer.body)

    def save(self, entity: E) -> None:
        self.comm.call(self.store, "/put", asdict(entity)).get()


class ClaimRepository(Repository[Claim]):
    store = "ClaimStore"

    def to_entity(self, row: dict[str, Any]) -> Claim:
        return Claim(**{**row, "state": ClaimState(row.get("state", "reported"))})


@contextmanager
def locked(comm: Communication, name: str) -> Iterator[None]:
    lock = comm.call("Locks", "/acquire", {"name": name}).get()
    if not lock.get("granted", True):
        raise Conflict("somebody else works on it", name=name)
    try:
        yield
    finally:
        comm.call("Locks", "/release", {"name": name})


class Claims(MS):
    runtime = "thread"
    pool_size = 16

    def setup(self) -> None:
        self.effects: dict[str, Callable[[Communication, Claim], None]] = {
            "inspect": self._send_assessor,
            "approve": self._reserve,
            "reject": functools.partial(self._tell, template="claim_rejected"),
        }

    def _send_assessor(self, comm: Communication, claim: Claim) -> None:
        for assessor in comm.call("Assessors", "/near", {"policy": claim.policy}).get().get("assessors", []):
            try:
                comm.call("Assessors", "/book", {"assessor": assessor, "claim": claim.id}).get()
            except CallError as error:
                log.info("%s is not free: %s", assessor, error)
            else:
                break
        else:
            raise Unavailable("no assessor is free")

    def _reserve(self, comm: Communication, claim: Claim) -> None:
        limit = 50_000 if "senior" in user.get().roles else 5_000
        if claim.amount > limit:
            raise Forbidden("above your limit", limit=limit)
        comm.call("Reserves", "/set", {"claim": claim.id, "amount": claim.amount}).get()

    def _tell(self, comm: Communication, claim: Claim, template: str) -> None:
        comm.call("Notifications", "/email", {"template": template, "claim": claim.id})

    @EP("/claims", method="POST")
    @secured("customer", "broker")
    def report(self, comm: Communication) -> None:
        """First notice of loss."""
        if not (policy_id := comm.params.get("policy")):
            raise ValidationFailed("policy is missing")
        claim = Claim(uuid.uuid4().hex, policy_id, float(comm.params.get("amount", 0)))
        claim.parties = comm.params.get("parties", [])
        path = "/policies/{policy_id}"
        policy = comm.call("Policies", path, {"policy_id": policy_id}, headers=forwarded(comm)).get()
        if policy["status"] != "active":
            raise ValidationFailed("not covered", state=policy["status"])
        verdict = {"decision": "review"}
        with suppress(CommunicationError):
            verdict = comm.call("Fraud", "/assess", asdict(claim), timeout=2.0).get()
        if verdict["decision"] == "block":
            claim.state = ClaimState.REJECTED
        elif verdict["decision"] == "pass" and claim.amount <= 500:
            claim.state = ClaimState.APPROVED
            self._reserve(comm, claim)
        ClaimRepository(comm).save(claim)
        comm.respond({"id": claim.id, "state": claim.state}, 201)
        self._tell(comm, claim, "claim_reported")

    @EP("/claims/{claim_id}", method="GET")
    @secured()
    def claim(self, comm: Communication, claim_id: str) -> None:
        claim = ClaimRepository(comm).get(claim_id)
        loaders = {
            "documents": ("Documents", "/list"),
            "payments": ("Payments", "/list"),
            "assessors": ("Assessors", "/of_claim"),
        }
        wanted = comm.params.get("include", "").split(",")
        parts = {name: comm.call(*loaders[name], {"claim": claim_id}) for name in wanted if name in loaders}
        body: dict[str, Any] = {**asdict(claim), "incomplete": []}
        for name, part in parts.items():
            try:
                body[name] = part.get(timeout=1.0)
            except CommunicationError:
                body["incomplete"].append(name)
        comm.respond(body)

    @EP("/claims/{claim_id}/transition", method="POST")
    @secured("adjuster", "senior")
    def transition(self, comm: Communication, claim_id: str) -> None:
        event = comm.params.get("event", "")
        claims = ClaimRepository(comm)
        with locked(comm, f"claim-{claim_id}"):
            claim = claims.get(claim_id)
            target = TRANSITIONS.get((claim.state, event))
            if target is None:
                raise Conflict(f"cannot {event} now", state=claim.state)
            if effect := self.effects.get(event):
                effect(comm, claim)
            claim.state = target
            claims.save(claim)
        comm.respond({"id": claim_id, "state": claim.state})

    @EP("/claims/{claim_id}/settle", method="POST")
    @secured("adjuster", "senior")
    def settle(self, comm: Communication, claim_id: str) -> None:
        claims = ClaimRepository(comm)
        claim = claims.get(claim_id)
        if claim.state is not ClaimState.APPROVED:
            raise Conflict("only approved claims are settled", state=claim.state)
        money = {"claim": claim_id, "amount": claim.amount}
        saga = Saga("settlement")
        saga.step(
            "reserve",
            lambda _: comm.call("Reserves", "/draw", money).get(),
            lambda _: comm.call("Reserves", "/set", money).get(),
        )
        saga.step(
            "payout",
            lambda _: comm.call("Payments", "/payout", money).get(),
            lambda done: comm.call("Payments", "/recall", {"id": done["payout"].get("id")}).get(),
        )
        saga.step("ledger", lambda _: comm.call("Ledger", "/post", money).get())
        if comm.params.get("repair"):
            saga.step("garage", lambda _: comm.call("Garages", "/book", {"claim": claim_id}).get())
        outcome = saga.run().unwrap()
        claim.state = ClaimState.SETTLED
        claims.save(claim)
        comm.respond({"id": claim_id, "payout": outcome["payout"].get("id")})

    @EP("/claims/{claim_id}/documents", method="POST")
    @secured()
    def add_documents(self, comm: Communication, claim_id: str) -> None:
        """Take the documents; read them when the client has its answer."""
        names = comm.params.get("documents", [])
        ids = comm.call("Documents", "/store", {"claim": claim_id, "names": names}).get().get("ids", [])
        comm.respond({"accepted": ids}, 202)
        for document in ids:
            try:
                text = comm.call("Documents", "/ocr", {"id": document}, timeout=10).get()
            except CommunicationError:
                comm.call("Tasks", "/create", {"kind": "read_manually", "document": document})
                continue
            if text.get("kind") == "invoice" and (total := text.get("total")):
                comm.call("ClaimStore", "/evidence", {"id": claim_id, "total": total}).get()

    @EP("/claims/import", method="POST")
    @secured("operator")
    def import_claims(self, comm: Communication) -> None:
        rows: list[dict[str, Any]] = comm.params.get("rows", [])
        valid = [row for row in rows if row.get("id") and row.get("policy")]
        imported, failed = 0, []
        for start in range(0, len(valid), 2):
            pending = {row["id"]: comm.call("ClaimStore", "/put", row) for row in valid[start : start + 2]}
            for key, future in pending.items():
                try:
                    future.get()
                    imported += 1
                except CommunicationError as error:
                    failed.append({"id": key, "error": str(error)})
            if len(failed) > 2:
                break
        if comm.params.get("notify") and failed:
            comm.call("Notifications", "/email", {"template": "import_failed", "failed": failed}).get()
        comm.respond({"imported": imported, "failed": failed, "invalid": len(rows) - len(valid)})


# --- fraud -------------------------------------------------------------------------------------------------------


class Fraud(MS):
    runtime = "async"
    pool_size = 16

    async def setup(self) -> None:
        self.rules = [rule() for rule in FraudRule.registry]
        self.clear: set[str] = set()

    async def _safely(self, rule: FraudRule, claim: Mapping[str, Any], comm: Communication) -> Finding:
        try:
            return await asyncio.wait_for(rule.evaluate(claim, comm), 1.5)
        except (CommunicationError, TimeoutError):
            return Finding(type(rule).__name__, 0.1, "no answer")

    @EP("/assess", method="POST")
    async def assess(self, comm: Communication) -> None:
        """Cheap rules first; the others are only asked if those have not decided."""
        claim = comm.params
        findings = [await rule.evaluate(claim, comm) for rule in self.rules if not rule.remote]
        if max(f.score for f in findings) < 0.9:
            findings += await asyncio.gather(*(self._safely(r, claim, comm) for r in self.rules if r.remote))
        score = max(f.score for f in findings)
        decision = "block" if score >= 0.9 else "review" if score >= 0.5 else "pass"
        comm.respond({"decision": decision, "findings": [asdict(f) for f in findings]})
        if decision != "pass":
            await comm.call("CaseStore", "/open", {"claim": claim.get("id"), "decision": decision})

    @EP("/screen", method="POST")
    @async_secured()
    async def screen(self, comm: Communication) -> None:
        """Screen parties against all lists; the answer is known with the first hit."""
        for party in comm.params.get("parties", []):
            if party in self.clear:
                continue
            sanctions, watch = await asyncio.gather(
                comm.call("Sanctions", "/screen", {"name": party}),
                comm.call("Watchlist", "/contains", {"name": party}),
                return_exceptions=True,
            )
            if isinstance(sanctions, BaseException):
                raise Unavailable("sanctions cannot be checked")
            if sanctions.get("hit") or (isinstance(watch, dict) and watch.get("hit")):
                comm.respond({"clear": False, "party": party})
                return
            self.clear.add(party)
        comm.respond({"clear": True})

    @EP("/cases/{case_id}/decide", method="POST")
    @async_secured("analyst")
    async def decide(self, comm: Communication, case_id: str) -> None:
        case = await comm.call("CaseStore", "/get", {"id": case_id})
        if case.get("assignee") not in (None, user.get().subject):
            raise Forbidden("case of a colleague", assignee=case["assignee"])
        match comm.params:
            case {"decision": "fraud", "reason": str(reason)} if reason:
                async with asyncio.TaskGroup() as group:
                    for party in case.get("parties", []):
                        group.create_task(comm.call("Watchlist", "/add", {"name": party, "reason": reason}))
                    group.create_task(comm.call("CaseStore", "/close", {"id": case_id, "outcome": "fraud"}))
                comm.call("Notifications", "/email", {"template": "fraud_confirmed", "case": case_id})
            case {"decision": "clear"}:
                await comm.call("CaseStore", "/close", {"id": case_id, "outcome": "clear"})
            case {"decision": "escalate", "to": to}:
                await comm.call("CaseStore", "/assign", {"id": case_id, "assignee": to})
            case _:
                raise ValidationFailed("decision is incomplete")
        comm.respond({"case": case_id})

    @EP("/rescore", method="POST")
    @async_secured("analyst")
    async def rescore(self, comm: Communication) -> None:
        """Start a job that scores open claims again with a new model."""
        job = await comm.call("Jobs", "/create", {"kind": "rescore", "model": comm.params.get("model")})
        if job.get("exists"):
            raise Conflict("is running already", job=job.get("id"))
        comm.respond({"job": job.get("id")}, 202, headers={"Location": f"/jobs/{job.get('id')}"})
        found = await comm.call("Search", "/claims", {"state": "open"})
        gate = asyncio.Semaphore(4)

        async def score(claim_id: str) -> float:
            async with gate:
                return (await comm.call("Models", "/score", {"id": claim_id})).get("score", 0.0)

        scores = await asyncio.gather(*map(score, found.get("ids", [])), return_exceptions=True)
        failed = sum(isinstance(s, BaseException) for s in scores)
        await comm.call(
            "Jobs", "/finish", {"id": job.get("id"), "scored": len(scores) - failed, "failed": failed}
        )


# --- billing -----------------------------------------------------------------------------------------------------


class Gateway:
    """The payment providers: the second one is asked when the first one is down."""

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    @retry(attempts=2)
    def _charge(self, provider: str, order: dict[str, Any]) -> dict[str, Any]:
        return self.comm.call(provider, "/charge", order, timeout=2.0).get()

    def charge(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._charge("Payments", order)
        except CommunicationError as error:
            if isinstance(error, CallError) and error.status == 402:
                raise ValidationFailed("card declined") from error
            log.warning("main provider: %s", error)
        return self._charge("BackupPayments", order)


class DunningStep(ABC):
    days: ClassVar[int]

    @abstractmethod
    def take(self, comm: Communication, invoice: Mapping[str, Any]) -> None: ...


class Terminate(DunningStep):
    days = 60

    def take(self, comm: Communication, invoice: Mapping[str, Any]) -> None:
        params = {"policy_id": invoice.get("policy", "p"), "reason": "unpaid"}
        comm.call("Policies", "/policies/{policy_id}/cancel", params, headers=forwarded(comm)).get()


class Collect(DunningStep):
    days = 30

    def take(self, comm: Communication, invoice: Mapping[str, Any]) -> None:
        comm.call("Collections", "/hand_over", {"invoice": invoice["id"]}).get()
        comm.call("Notifications", "/letter", {"invoice": invoice["id"]})


class Remind(DunningStep):
    days = 7

    def take(self, comm: Communication, invoice: Mapping[str, Any]) -> None:
        channel = "/sms" if invoice.get("phone") else "/email"
        comm.call("Notifications", channel, {"template": "reminder", "invoice": invoice["id"]}).get()


DUNNING: tuple[DunningStep, ...] = (Terminate(), Collect(), Remind())


class Billing(MS):
    runtime = "thread"
    pool_size = 12

    webhook_token = "whsec"

    def setup(self) -> None:
        self.hooks: dict[str, Callable[[Communication, dict[str, Any]], None]] = {
            "charge.succeeded": self._on_paid,
            "charge.failed": self._on_failed,
            "dispute.opened": lambda comm, event: comm.call(
                "Tasks", "/create", {"kind": "dispute", **event}
            ).get(),
        }

    def _on_paid(self, comm: Communication, event: dict[str, Any]) -> None:
        comm.call("InvoiceStore", "/mark", {"id": event.get("invoice"), "state": "paid"}).get()
        comm.call("Ledger", "/post", {"invoice": event.get("invoice"), "amount": event.get("amount")}).get()

    def _on_failed(self, comm: Communication, event: dict[str, Any]) -> None:
        attempts = comm.call("InvoiceStore", "/attempts", {"id": event.get("invoice")}).get().get("count", 0)
        if attempts < 3:
            comm.call("Calendar", "/add", {"kind": "charge", "invoice": event.get("invoice")}).get()
        else:
            comm.call("InvoiceStore", "/mark", {"id": event.get("invoice"), "state": "overdue"}).get()

    @EP("/invoices/{invoice_id}/pay", method="POST")
    @secured("customer", bucket="payments")
    def pay(self, comm: Communication, invoice_id: str) -> None:
        key = comm.headers.get("idempotency-key")
        if not key:
            raise ValidationFailed("Idempotency-Key is missing")
        earlier = comm.call("Idempotency", "/begin", {"key": key}).get()
        if earlier.get("done"):
            comm.respond(earlier.get("result", {}))
            return
        invoice = comm.call("InvoiceStore", "/get", {"id": invoice_id}).get()
        if invoice.get("state") == "paid":
            raise Conflict("paid already")
        receipt = Gateway(comm).charge({"invoice": invoice_id, "amount": invoice.get("amount", 0)})
        if receipt.get("pending"):
            comm.respond({"state": "pending", "payment": receipt.get("id")}, 202)
        else:
            comm.call("InvoiceStore", "/mark", {"id": invoice_id, "state": "paid"}).get()
            comm.respond({"state": "paid", **receipt})
        comm.call("Idempotency", "/finish", {"key": key, "result": receipt})

    @EP("/payments/{payment_id}/wait", method="GET")
    @secured()
    def wait_for_payment(self, comm: Communication, payment_id: str) -> None:
        deadline = time.monotonic() + 5.0
        state, tries = "pending", 0
        while state == "pending" and tries < 4 and time.monotonic() < deadline:
            state = comm.call("Payments", "/status", {"id": payment_id}).get().get("state", "pending")
            tries += 1
            time.sleep(0.2)
        comm.respond({"payment": payment_id, "state": state}, 200 if state != "pending" else 202)

    @EP("/webhooks/psp", method="POST")
    def webhook(self, comm: Communication) -> None:
        if not hmac.compare_digest(comm.headers.get("x-webhook-token", ""), self.webhook_token):
            comm.respond({"error": "bad signature"}, 401)
            return
        event = comm.params
        hook = self.hooks.get(event.get("type", ""))
        if hook is None:
            comm.respond(status=204)
            return
        if comm.call("Idempotency", "/begin", {"key": f"psp:{event.get('id')}"}).get().get("done"):
            comm.respond({"duplicate": True})
            return
        hook(comm, event)
        comm.respond({"handled": event["type"]})

    @EP("/invoices/{invoice_id}/refund", method="POST")
    @secured("operator")
    def refund(self, comm: Communication, invoice_id: str) -> None:
        paid = float(comm.call("InvoiceStore", "/get", {"id": invoice_id}).get().get("amount", 0))
        amount = float(comm.params.get("amount") or paid)
        if amount > paid:
            raise ValidationFailed("more than was paid")
        reversal = comm.call("Ledger", "/reverse", {"invoice": invoice_id, "amount": amount}).get()
        try:
            comm.call("Payments", "/refund", {"invoice": invoice_id, "amount": amount}).get()
        except CommunicationError as error:
            comm.call("Ledger", "/post", {"reversal": reversal.get("id"), "amount": amount}).get()
            raise Unavailable("refund failed, nothing was booked") from error
        comm.respond({"refunded": amount})

    @EP("/dunning/run", method="POST")
    @secured("operator")
    def run_dunning(self, comm: Communication) -> None:
        overdue = comm.call("InvoiceStore", "/overdue", {"limit": 100}).get().get("invoices", [])
        taken: Counter[str] = Counter()
        for invoice in overdue:
            step = next((s for s in DUNNING if invoice.get("overdue", 0) >= s.days), None)
            if step is None:
                continue
            try:
                if not comm.params.get("dry_run"):
                    step.take(comm, invoice)
                taken[type(step).__name__] += 1
            except CommunicationError:
                taken["failed"] += 1
        comm.respond(dict(taken))


# --- brokers -----------------------------------------------------------------------------------------------------


class Brokers(MS):
    runtime = "async"
    pool_size = 24

    rates: ClassVar[dict[str, float]] = {"motor": 0.08, "home": 0.12}

    @EP("/login", method="POST")
    async def login(self, comm: Communication) -> None:
        name, password = comm.params.get("user"), comm.params.get("password")
        if not (name and password):
            comm.respond({"error": "user and password"}, 400)
            return
        try:
            session = await comm.call("Identity", "/login", {"user": name, "password": password})
            if session.get("mfa"):
                answer = {"challenge": session["mfa"], "code": comm.params.get("code", "")}
                session = await comm.call("Identity", "/verify", answer)
        except CallError as error:
            if error.status >= 500:
                raise
            comm.respond({"error": "wrong user or password"}, 401)
        else:
            comm.respond({"ok": True}, cookies={"session": session.get("token", "")})
            comm.call("Audit", "/write", {"who": name, "what": "login"})

    @EP("/dashboard", method="GET")
    @async_secured("broker")
    async def dashboard(self, comm: Communication) -> None:
        async def widget(service: str, path: str, default: Any) -> Any:
            try:
                async with asyncio.timeout(1.0):
                    return await comm.call(service, path, {"broker": user.get().subject})
            except (CommunicationError, TimeoutError):
                return default

        async with asyncio.TaskGroup() as group:
            tiles = {
                "quotes": group.create_task(widget("QuoteStore", "/count", {})),
                "sales": group.create_task(widget("Sales", "/summary", {"stale": True})),
            }
            if comm.params.get("news"):
                tiles["news"] = group.create_task(widget("News", "/latest", []))
        comm.respond({name: task.result() for name, task in tiles.items()})

    @EP("/search", method="GET")
    @async_secured("broker", "operator")
    async def search(self, comm: Communication) -> None:
        """Search the indexes that are asked for, and customers only if nothing else was found."""
        text = comm.params.get("q", "").strip()
        if len(text) < 2:
            raise ValidationFailed("query is too short")
        scopes = [
            s for s in comm.params.get("in", "policies,claims").split(",") if s in ("policies", "claims")
        ]
        calls = [
            comm.call("Search", "/policies" if s == "policies" else "/claims", {"q": text}) for s in scopes
        ]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        hits = {s: a.get("ids", []) for s, a in zip(scopes, answers, strict=True) if isinstance(a, dict)}
        if not any(hits.values()):
            people = await comm.call("Search", "/customers", {"q": text, "fuzzy": True})
            hits["customers"] = people.get("ids", [])
        comm.respond({"hits": hits, "partial": any(isinstance(a, BaseException) for a in answers)})

    async def _sales(self, comm: Communication, broker: str, month: str) -> AsyncIterator[dict[str, Any]]:
        page = 1
        while True:
            answer = await comm.call("Sales", "/page", {"broker": broker, "month": month, "page": page})
            for sale in answer.get("sales", []):
                yield sale
            if not answer.get("more"):
                return
            page += 1

    @EP("/commissions/{month}", method="POST")
    @async_secured("broker", "operator")
    async def commissions(self, comm: Communication, month: str) -> None:
        broker = comm.params.get("broker", user.get().subject)
        if broker != user.get().subject and "operator" not in user.get().roles:
            raise Forbidden("statement of somebody else")
        total = 0.0
        async for sale in self._sales(comm, broker, month):
            if not sale.get("cancelled"):
                total += sale.get("premium", 0) * self.rates.get(sale.get("product", ""), 0.05)
        if total > 100:
            tier = await comm.call("Contracts", "/tier", {"broker": broker})
            total *= {"gold": 1.1, "silver": 1.05}.get(tier.get("tier"), 1.0)
        if comm.params.get("pay"):
            await comm.call("Payments", "/payout", {"broker": broker, "amount": total})
        comm.respond({"broker": broker, "total": round(total, 2)})

    @EP("/leads/import", method="POST")
    @async_secured("broker")
    async def import_leads(self, comm: Communication) -> None:
        """Each lead is looked up, then created or merged; bad ones do not stop the others."""

        async def take(lead: dict[str, Any]) -> str:
            if "@" not in lead.get("email", ""):
                raise ValidationFailed("no address", lead=lead)
            known = await comm.call("Customers", "/find", {"email": lead["email"]})
            if not known.get("id"):
                await comm.call("Customers", "/create", lead)
                return "created"
            if known.get("owner") not in (None, user.get().subject):
                return "foreign"
            await comm.call("Customers", "/merge", {"id": known["id"], **lead})
            return "merged"

        outcomes = await asyncio.gather(
            *[take(lead) for lead in comm.params.get("leads", [])], return_exceptions=True
        )
        summary: Counter[str] = Counter()
        for outcome in outcomes:
            match outcome:
                case str():
                    summary[outcome] += 1
                case DomainError():
                    summary["invalid"] += 1
                case _:
                    summary["failed"] += 1
        comm.respond(dict(summary), 207 if summary["failed"] else 200)
