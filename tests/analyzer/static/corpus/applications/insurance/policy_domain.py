"""The policy context: an event-sourced aggregate, its commands, and what happens around them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from building_blocks import (
    Command,
    CommandBus,
    Conflict,
    DomainError,
    Err,
    Forbidden,
    Handler,
    Middleware,
    Next,
    NotFound,
    Ok,
    Result,
    ValidationFailed,
    Where,
    log,
    user,
)
from mup import Communication
from mup.errors import CallError, CommunicationError


@dataclass(frozen=True, slots=True)
class Issued:
    holder: str
    product: str
    premium: float


@dataclass(frozen=True, slots=True)
class Endorsed:
    change: str
    delta: float


@dataclass(frozen=True, slots=True)
class Cancelled:
    reason: str


@dataclass(frozen=True, slots=True)
class Renewed:
    premium: float


Event = Issued | Endorsed | Cancelled | Renewed
EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in (Issued, Endorsed, Cancelled, Renewed)}


@dataclass(slots=True)
class Policy:
    id: str
    version: int = 0
    status: str = "new"
    holder: str = ""
    product: str = ""
    premium: float = 0.0
    pending: list[Event] = field(default_factory=list)

    def apply(self, event: Event) -> None:
        match event:
            case Issued(holder, product, premium):
                self.holder, self.product, self.premium, self.status = holder, product, premium, "active"
            case Endorsed(delta=delta):
                self.premium += delta
            case Cancelled():
                self.status = "cancelled"
            case Renewed(premium):
                self.premium = premium
        self.version += 1

    def record(self, event: Event) -> None:
        self.apply(event)
        self.pending.append(event)

    def as_dict(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if k != "pending"}


active = Where[Policy](lambda policy: policy.status == "active")
expensive = Where[Policy](lambda policy: policy.premium > 5_000)
refundable = active & ~Where[Policy](lambda policy: policy.product == "travel")


class PolicyRepository:
    def __init__(self, comm: Communication) -> None:
        self._comm = comm
        self.seen: dict[str, Policy] = {}

    def events(self, policy_id: str, after: int = 0) -> Iterator[dict[str, Any]]:
        cursor: int | None = after
        while cursor is not None:
            page = self._comm.call("EventStore", "/read", {"stream": policy_id, "after": cursor}).get()
            yield from page.get("events", [])
            cursor = page.get("next")

    def get(self, policy_id: str) -> Policy:
        if policy_id in self.seen:
            return self.seen[policy_id]
        state = self._comm.call("EventStore", "/snapshot", {"stream": policy_id}).get().get("state", {})
        policy = Policy(**{**state, "id": policy_id})
        for row in self.events(policy_id, policy.version):
            policy.apply(EVENTS[row["type"]](**row["data"]))
        if policy.version == 0:
            raise NotFound("no such policy", policy=policy_id)
        return self.add(policy)

    def add(self, policy: Policy) -> Policy:
        self.seen[policy.id] = policy
        return policy


class UnitOfWork:
    """Collects what changes; all of it becomes visible with ``commit``, or none."""

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def __enter__(self) -> Self:
        self.policies = PolicyRepository(self._comm)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: Any) -> None:
        if kind is not None:
            log.info("rolled back: %s", error)
            self.policies.seen.clear()

    def commit(self) -> None:
        messages = []
        for policy in self.policies.seen.values():
            rows = [{"type": type(e).__name__, "data": asdict(e)} for e in policy.pending]
            if not rows:
                continue
            batch = {"stream": policy.id, "expected": policy.version - len(rows), "events": rows}
            try:
                self._comm.call("EventStore", "/append", batch).get()
            except CallError as error:
                if error.status == 409:
                    raise Conflict("changed by someone else", policy=policy.id) from error
                raise
            if policy.version % 3 == 0:
                self._comm.call("EventStore", "/save_snapshot", {"id": policy.id, "state": policy.as_dict()})
            messages += rows
            policy.pending.clear()
        if messages:
            self._comm.call("Outbox", "/publish", {"messages": messages}).get()


class Idempotency(Middleware):
    def __call__(self, command: Command, comm: Communication, proceed: Next) -> Result[dict[str, Any]]:
        key = comm.headers.get("idempotency-key")
        if key is None:
            return proceed(command, comm)
        known = comm.call("Idempotency", "/begin", {"key": key}).get()
        if known.get("done"):
            return Ok({**known.get("result", {}), "replayed": True})
        result = proceed(command, comm)
        if isinstance(result, Ok):
            comm.call("Idempotency", "/finish", {"key": key, "result": result.value}).get()
        return result


class Audit(Middleware):
    def __call__(self, command: Command, comm: Communication, proceed: Next) -> Result[dict[str, Any]]:
        result = proceed(command, comm)
        comm.call("Audit", "/write", {"who": user.get().subject, "what": type(command).__name__})
        return result


class RetryConflicts(Middleware):
    def __init__(self, attempts: int = 2) -> None:
        self.attempts = attempts

    def __call__(self, command: Command, comm: Communication, proceed: Next) -> Result[dict[str, Any]]:
        error: DomainError = Conflict("never tried")
        for _ in range(self.attempts):
            try:
                return proceed(command, comm)
            except Conflict as conflict:
                error = conflict
            except DomainError as refusal:
                return Err(refusal)
        return Err(error)


bus = CommandBus(Idempotency(), Audit(), RetryConflicts())


@dataclass(frozen=True)
class IssuePolicy(Command):
    holder: str
    product: str
    premium: float


@dataclass(frozen=True)
class EndorsePolicy(Command):
    policy_id: str
    change: str
    delta: float = 0.0


@dataclass(frozen=True)
class CancelPolicy(Command):
    policy_id: str
    reason: str = "customer"


@dataclass(frozen=True)
class RenewPolicy(Command):
    policy_id: str
    uplift: float = 1.03


@bus.handles(IssuePolicy)
class IssueHandler(Handler[IssuePolicy]):
    def handle(self, command: IssuePolicy, comm: Communication) -> Result[dict[str, Any]]:
        screening = comm.call("Sanctions", "/screen", {"name": command.holder})
        customer = comm.call("Customers", "/get", {"id": command.holder})
        if screening.get().get("hit") or customer.get().get("blocked"):
            return Err(Forbidden("holder cannot be insured"))
        with UnitOfWork(comm) as uow:
            policy = uow.policies.add(Policy(uuid.uuid4().hex))
            policy.record(Issued(command.holder, command.product, command.premium))
            uow.commit()
        return Ok(policy.as_dict())


@bus.handles(EndorsePolicy)
class EndorseHandler(Handler[EndorsePolicy]):
    def handle(self, command: EndorsePolicy, comm: Communication) -> Result[dict[str, Any]]:
        with UnitOfWork(comm) as uow:
            policy = uow.policies.get(command.policy_id)
            if not active.is_satisfied_by(policy):
                return Err(ValidationFailed("policy is not active", state=policy.status))
            delta = command.delta
            if command.change == "address":
                risk = comm.call("Geo", "/risk", {"policy": policy.id}).get()
                delta += policy.premium * risk.get("loading", 0.0)
            policy.record(Endorsed(command.change, delta))
            if expensive.is_satisfied_by(policy) and "underwriter" not in user.get().roles:
                raise Forbidden("needs an underwriter")
            uow.commit()
        return Ok(policy.as_dict())


@bus.handles(CancelPolicy)
class CancelHandler(Handler[CancelPolicy]):
    def handle(self, command: CancelPolicy, comm: Communication) -> Result[dict[str, Any]]:
        refund = 0.0
        with UnitOfWork(comm) as uow:
            policy = uow.policies.get(command.policy_id)
            if policy.status == "cancelled":
                return Ok(policy.as_dict())
            if refundable.is_satisfied_by(policy):
                refund = comm.call("Ledger", "/balance", {"account": policy.id}).get().get("unearned", 0.0)
            policy.record(Cancelled(command.reason))
            uow.commit()
        if refund > 0:
            try:
                comm.call("Payments", "/refund", {"policy": policy.id, "amount": refund}).get()
            except CommunicationError:
                comm.call("Tasks", "/create", {"kind": "manual_refund", "policy": policy.id}).get()
        return Ok({**policy.as_dict(), "refund": refund})


@bus.handles(RenewPolicy)
class RenewHandler(Handler[RenewPolicy]):
    def handle(self, command: RenewPolicy, comm: Communication) -> Result[dict[str, Any]]:
        with UnitOfWork(comm) as uow:
            policy = uow.policies.get(command.policy_id)
            if not active.is_satisfied_by(policy):
                return Err(Conflict("nothing to renew"))
            policy.record(Renewed(round(policy.premium * command.uplift, 2)))
            uow.commit()
        return Ok(policy.as_dict())
