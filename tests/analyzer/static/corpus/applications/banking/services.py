"""Open-banking aggregator and payments: accounts, consents, payments, standing orders, statements, notifications."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

from banking_clients import (
    AccountRepository,
    BankConnector,
    ConsentRepository,
    LedgerClient,
    OrderRepository,
    PaymentRepository,
    UnitOfWork,
    notify,
)
from banking_core import (
    INTERNAL_HEADERS,
    ApiError,
    CircuitBreaker,
    Conflict,
    Context,
    Forbidden,
    NotFound,
    PaymentDeclined,
    Saga,
    Unauthorized,
    Unavailable,
    ValidationError,
    audited,
    authenticate,
    errors_as_json,
    idempotent,
    internal,
    iter_pages,
    page_limit,
    retry,
    settle,
    view,
)
from banking_domain import (
    CONSENT_FLOW,
    FINAL,
    ORDER_FLOW,
    RULES,
    Account,
    Consent,
    Payment,
    PaymentStatus,
    advance,
    money,
    replay,
)

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

log = logging.getLogger("banking")

TENANTS: dict[str, dict[str, Any]] = {
    "default": {"max_payment": 10_000, "channels": ("push", "mail")},
    "fintech": {"max_payment": 50_000, "channels": ("push", "sms", "mail")},
    "kids": {"max_payment": 100, "channels": ("mail",)},
}


def tenant_setting(tenant: str, name: str) -> Any:
    return TENANTS.get(tenant, TENANTS["default"])[name]


def check_webhook(comm: Communication) -> None:
    if comm.headers.get("x-webhook-key") != "hook-secret":
        raise Unauthorized("bad webhook key")


class BreakerMixin:
    """A circuit breaker per bank, in every worker."""

    def setup(self) -> None:
        super().setup()  # type: ignore[misc]
        self.breakers: dict[str, CircuitBreaker] = defaultdict(CircuitBreaker)


class Accounts(BreakerMixin, MS):
    pool_size = 16
    runtime = "thread"

    def setup(self) -> None:
        super().setup()
        self.balance_cache: dict[str, tuple[float, Any]] = {}

    @EP("/accounts", method="GET")
    @view("accounts:read")
    def list_accounts(self, comm: Communication, ctx: Context):
        consents = ConsentRepository(comm).find(user=ctx.principal.user, status="authorised")
        futures = {
            consent.bank: BankConnector.of(consent.bank, comm).start_accounts(consent.id)
            for consent in consents[:4]
            if consent.allows("accounts")
        }
        answers, failed = settle(futures)
        accounts = [
            {**each, "bank": bank} for bank, answer in answers.items() for each in answer.get("accounts", [])
        ]
        if failed and not accounts:
            raise Unavailable("no bank answered", banks=failed)
        accounts.sort(key=lambda each: (each["bank"], each.get("id", "")))
        return {"accounts": accounts, "incomplete": failed}

    @EP("/accounts/{account_id}", method="GET")
    @errors_as_json
    def account_detail(self, comm: Communication, account_id: str, expand: str = ""):
        principal = authenticate(comm, "accounts:read")
        account = AccountRepository(comm).get(account_id, principal.user)
        wanted = {part.strip() for part in expand.split(",")}
        pending = {}
        if "ledger" in wanted:
            pending["ledger"] = comm.call("Ledger", "/balance", {"account": account.id}, timeout=1.0)
        if "consent" in wanted and account.consent_id:
            pending["consent"] = comm.call("ConsentStore", "/get", {"id": account.consent_id}, timeout=1.0)
        if "owner" in wanted:
            pending["owner"] = comm.call("Directory", "/profile", {"user": principal.user}, timeout=1.0)
        expanded, missing = settle(pending)
        comm.respond({"id": account.id, "bank": account.bank, **expanded, "unavailable": missing})

    @EP("/accounts/{account_id}/balances", method="GET")
    @view("accounts:read", per_minute=120)
    def balances(self, comm: Communication, ctx: Context):
        account = AccountRepository(comm).get(comm.params["account_id"], ctx.principal.user)
        expires, cached = self.balance_cache.get(account.id, (0.0, None))
        if expires > time.monotonic():
            return cached
        try:
            with self.breakers[account.bank].guard():
                answer = BankConnector.of(account.bank, comm).balances(account.id)
        except (CommunicationError, Unavailable):
            snapshot = comm.call("Ledger", "/balance", {"account": account.id}).get()
            return {"balances": snapshot, "stale": True}, 203
        self.balance_cache[account.id] = (time.monotonic() + 15, answer)
        return answer

    @EP("/accounts/{account_id}/transactions", method="GET")
    @view("transactions:read")
    def transactions(self, comm: Communication, ctx: Context):
        limit = page_limit(comm.params)
        account = AccountRepository(comm).get(comm.params["account_id"], ctx.principal.user)
        page = BankConnector.of(account.bank, comm).transactions(account.id, comm.params.get("cursor", ""))
        items = page.get("items", [])[:limit]
        if items and ctx.flags.get("enrichment"):
            texts = [each.get("text", "") for each in items]
            try:
                tags = comm.call("Enrichment", "/categorise", {"texts": texts}, timeout=0.5).get()
            except (CallError, CallTimeoutError):
                log.info("no categories for %s", account.id)
            else:
                for item, tag in zip(items, tags.get("categories", []), strict=False):
                    item["category"] = tag
        return {"items": items, "next": page.get("next") or None}

    @EP("/accounts/sync", method="POST")
    @view("accounts:read", status=202, per_minute=6)
    def sync(self, comm: Communication, ctx: Context):
        """Copy new transactions of all (or the given) accounts into our ledger."""
        accounts = AccountRepository(comm).find(user=ctx.principal.user)
        if only := comm.params.get("ids"):
            accounts = [account for account in accounts if account.id in only]
        synced: dict[str, int] = {}
        failed: dict[str, str] = {}
        for account in accounts[:3]:
            try:
                synced[account.id] = self._sync_one(comm, account)
            except (ApiError, CommunicationError) as error:
                failed[account.id] = type(error).__name__
        if any(synced.values()):
            ctx.after_response(notify, comm, ctx.principal.user, "sync_done", count=sum(synced.values()))
        return {"synced": synced, "failed": failed}

    def _sync_one(self, comm: Communication, account: Account) -> int:
        with self.breakers[account.bank].guard():
            page = BankConnector.of(account.bank, comm).transactions(account.id)
        fresh = [item for item in page.get("items", []) if item.get("status") != "pending"]
        if fresh:
            comm.call("Ledger", "/import", {"account": account.id, "items": fresh}).get()
        return len(fresh)

    @EP("/search", method="GET")
    @errors_as_json
    def search(self, comm: Communication, q: str = "", scope: str = "all"):
        principal = authenticate(comm)
        backends = {
            "transactions": ("SearchIndex", "/query"),
            "payments": ("PaymentStore", "/find"),
            "orders": ("OrderStore", "/find"),
        }
        if len(q) < 2 or scope not in ("all", *backends):
            raise ValidationError("bad query")
        futures = {
            kind: comm.call(service, path, {"user": principal.user, "text": q}, timeout=0.8)
            for kind, (service, path) in backends.items()
            if scope in ("all", kind)
        }
        hits, failed = settle(futures)
        results = [
            {**item, "kind": kind} for kind, answer in hits.items() for item in answer.get("items", [])
        ]
        if not results and "transactions" in failed:
            # The index is down: the ledger is slow but knows everything.
            entries = LedgerClient(comm).entries(principal.user)
            results = [entry for entry in entries if q.lower() in entry.get("text", "").lower()]
        results.sort(key=lambda each: -each.get("score", 0))
        comm.respond({"results": results[:20], "partial": bool(failed)})

    @EP("/links/remove", method="POST")
    @view("accounts:write")
    @audited("links.remove")
    def remove_link(self, comm: Communication, ctx: Context):
        accounts = AccountRepository(comm).find(user=ctx.principal.user, bank=comm.params.get("bank"))
        if not accounts:
            raise NotFound("bank is not linked")
        for consent_id in sorted({account.consent_id for account in accounts if account.consent_id}):
            body = {"consent_id": consent_id, "reason": "unlinked"}
            comm.call("Consents", "/internal/revoke", body, headers=INTERNAL_HEADERS).get()
        comm.call("AccountStore", "/remove", {"ids": [account.id for account in accounts]}).get()
        return {"removed": len(accounts)}


class ConsentService:
    """Business logic of consents; views stay thin."""

    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        self.consents = ConsentRepository(comm)

    def apply(self, consent: Consent, event: str) -> Consent:
        consent.status = advance(CONSENT_FLOW, consent.status, event)
        return self.consents.save(consent)

    def revoke(self, consent: Consent, reason: str) -> dict[str, Any]:
        self.apply(consent, "revoke")
        try:
            BankConnector.of(consent.bank, self.comm).revoke_consent(consent.id)
        except CommunicationError:
            self.comm.call("Scheduler", "/enqueue", {"job": "revoke", "consent": consent.id})
        if "payments" in consent.permissions:
            orders = OrderRepository(self.comm)
            for order in orders.find(user=consent.user, bank=consent.bank, state="active")[:2]:
                orders.append(order.id, "pause")
        notify(self.comm, consent.user, "consent_revoked", bank=consent.bank, reason=reason)
        return {"id": consent.id, "status": consent.status}


class Consents(MS):
    pool_size = 4
    runtime = "process"

    @EP("/consents", method="POST")
    @view("consents:write", status=201)
    @audited("consent.create")
    def create(self, comm: Communication, ctx: Context):
        bank, user = comm.params.get("bank", ""), ctx.principal.user
        permissions = list(comm.params.get("permissions") or ["accounts"])
        if unknown := set(permissions) - {"accounts", "transactions", "payments"}:
            raise ValidationError("unknown permissions", permissions=sorted(unknown))
        connector = BankConnector.of(bank, comm)
        repository = ConsentRepository(comm)
        if not comm.params.get("force") and (
            waiting := repository.find(user=user, bank=bank, status="awaiting")
        ):
            return {"id": waiting[0].id, "reused": True}, 200
        created = connector.create_consent(user, permissions)
        if "id" not in created:
            raise Unavailable("bank refused to create a consent")
        repository.save(Consent(created["id"], user, bank, permissions=permissions))
        return {"id": created["id"], "redirect": created.get("redirect")}

    @EP("/consents/{consent_id}/authorise", method="POST")
    @view("consents:write")
    def authorise(self, comm: Communication, ctx: Context):
        service = ConsentService(comm)
        consent = service.consents.get(comm.params["consent_id"], ctx.principal.user)
        if comm.params.get("decision") == "reject":
            return {"status": service.apply(consent, "reject").status}
        verified = comm.call(
            "Sca", "/verify", {"user": consent.user, "code": comm.params.get("code", "")}
        ).get()
        if not verified.get("ok"):
            if verified.get("attempts_left", 0) <= 0:
                service.apply(consent, "reject")
            raise Forbidden("wrong code", attempts_left=verified.get("attempts_left", 0))
        ctx.after_response(notify, comm, consent.user, "consent_active", bank=consent.bank)
        return {"status": service.apply(consent, "authorise").status}

    @EP("/consents/{consent_id}/revoke", method="POST")
    @view("consents:write")
    @audited("consent.revoke")
    def revoke(self, comm: Communication, ctx: Context):
        service = ConsentService(comm)
        consent = service.consents.get(comm.params["consent_id"], ctx.principal.user)
        return service.revoke(consent, comm.params.get("reason", "user"))

    @EP("/internal/revoke", method="POST")
    @internal
    def revoke_internally(self, comm: Communication):
        service = ConsentService(comm)
        consent = service.consents.get(comm.params.get("consent_id", ""))
        if consent.status != "authorised":
            return {"id": consent.id, "status": consent.status}
        return service.revoke(consent, comm.params.get("reason", "internal"))

    @EP("/internal/check", method="POST")
    @internal
    def check(self, comm: Communication):
        """Whether a user's consent with a bank covers what another service is about to do."""
        found = ConsentRepository(comm).find(user=comm.params.get("user"), bank=comm.params.get("bank"))
        consent = next(
            (each for each in found if each.allows(comm.params.get("permission", "accounts"))), None
        )
        return {"allowed": consent is not None, "consent_id": consent.id if consent else None}

    @EP("/consents/renew-due", method="POST")
    @internal
    def renew_due(self, comm: Communication):
        """Nightly job: renew what is about to end; the ones that fail are reported, not fatal."""
        report: dict[str, list[str]] = {"renewed": [], "waiting": [], "failed": []}
        service = ConsentService(comm)
        for consent in service.consents.find(expires_within=comm.params.get("days", 7))[:3]:
            if consent.status == "revoked":
                continue
            try:
                answer = BankConnector.of(consent.bank, comm).create_consent(
                    consent.user, consent.permissions
                )
                if link := answer.get("redirect"):
                    # The bank wants to see the customer again.
                    notify(comm, consent.user, "consent_expiring", link=link)
                    report["waiting"].append(consent.id)
                    continue
                service.apply(consent, "renew")
            except (ApiError, CommunicationError):
                report["failed"].append(consent.id)
            else:
                report["renewed"].append(consent.id)
        return report

    @EP("/webhooks/consent", method="POST")
    @errors_as_json
    def callback(self, comm: Communication):
        check_webhook(comm)
        event = {"accepted": "authorise", "declined": "reject", "withdrawn": "revoke"}.get(
            comm.params.get("event", "")
        )
        if event is None:
            comm.respond({"ignored": True}, 202)
            return
        service = ConsentService(comm)
        consent = service.consents.get(comm.params.get("consent_id", ""))
        with suppress(Conflict):  # the bank repeats itself
            service.apply(consent, event)
        comm.respond({"status": consent.status})
        with suppress(CommunicationError):
            comm.call("Audit", "/append", {"action": f"consent.{event}", "actor": consent.bank}).get()


class PaymentService:
    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        self.payments = PaymentRepository(comm)
        self.ledger = LedgerClient(comm)

    def assess(self, payment: Payment) -> None:
        """Raise if the payment must not be made. The costly checks are made only for suspicious ones."""
        score = sum(rule(payment) for rule in RULES)
        if score == 0:
            return
        checks = [self.comm.call("Risk", "/score", {"user": payment.user, "local": score}, timeout=0.6)]
        if score >= 50:
            checks.append(self.comm.call("Sanctions", "/screen", {"iban": payment.creditor}))
        try:
            answers = [check.get() for check in checks]
        except CallTimeoutError:
            if score >= 50:
                raise PaymentDeclined("could not be checked") from None
            return
        if any(answer.get("hit") for answer in answers) or answers[0].get("score", 0) + score > 100:
            raise PaymentDeclined("too risky")

    def execute(self, payment: Payment) -> Payment:
        """Hold, pay, post: all or nothing."""
        bank = BankConnector.of(payment.bank, self.comm)
        with Saga() as saga:
            hold_id = saga.step(
                lambda: self.ledger.hold(payment.debtor, payment.amount),
                undo=lambda: self.ledger.release(hold_id),
            )
            held = replace(payment, hold_id=hold_id)
            paid = saga.step(lambda: bank.pay(held))
            if paid.get("status") == "rejected":
                raise PaymentDeclined(paid.get("reason", "rejected by the bank"))
            saga.step(lambda: self.ledger.post(held))
        return self.payments.save(held.moved_to(PaymentStatus.SUBMITTED, reference=paid.get("reference", "")))

    def refresh(self, payment: Payment) -> Payment:
        match BankConnector.of(payment.bank, self.comm).payment_status(payment.reference):
            case "booked":
                return self.payments.save(payment.moved_to(PaymentStatus.SETTLED))
            case "rejected" | "returned":
                self.ledger.release(payment.hold_id)
                return self.payments.save(payment.moved_to(PaymentStatus.REJECTED))
        return payment


class Payments(MS):
    pool_size = 8
    runtime = "process"

    def setup(self) -> None:
        self.handlers = {
            "payment.booked": self._on_booked,
            "payment.rejected": self._on_rejected,
            "payment.amended": lambda service, payment: replace(payment, reference=f"{payment.reference}/1"),
        }

    @EP("/payments", method="POST")
    @view("payments:write", status=201)
    @idempotent
    def initiate(self, comm: Communication, ctx: Context):
        maximum = tenant_setting(ctx.principal.tenant, "max_payment")
        payment = Payment.from_request(f"pay-{comm.request_id}", ctx.principal.user, comm.params, maximum)
        service = PaymentService(comm)
        consent = comm.call(
            "Consents",
            "/internal/check",
            {"user": payment.user, "bank": payment.bank, "permission": "payments"},
            headers=INTERNAL_HEADERS,
        )
        service.assess(payment)
        if not consent.get().get("allowed"):
            raise Forbidden("no consent for payments")
        if payment.amount <= 30:
            # Small amounts are exempt from strong authentication.
            return {"id": payment.id, "status": service.execute(payment).status}, 201
        challenge = comm.call(
            "Sca", "/challenge", {"user": payment.user, "amount": str(payment.amount)}
        ).get()
        service.payments.save(
            payment.moved_to(PaymentStatus.PENDING_SCA, challenge_id=challenge.get("id", ""))
        )
        return {"id": payment.id, "challenge": challenge.get("id")}, 202

    @EP("/payments/{payment_id}", method="GET")
    @errors_as_json
    def show(self, comm: Communication, payment_id: str, refresh: bool = False):
        principal = authenticate(comm, "payments:read")
        service = PaymentService(comm)
        payment = service.payments.get(payment_id, principal.user)
        if refresh and payment.status not in FINAL and payment.reference:
            with suppress(CommunicationError):
                payment = service.refresh(payment)
        body: dict[str, Any] = {"id": payment.id, "status": payment.status, "amount": str(payment.amount)}
        if comm.headers.get("accept-version", "1") >= "2":
            body = {"data": body, "links": {"self": f"/payments/{payment.id}"}}
        comm.respond(body, headers={"Cache-Control": "no-store"})

    @EP("/payments/{payment_id}/confirm", method="POST")
    @view("payments:write", per_minute=10)
    def confirm(self, comm: Communication, ctx: Context):
        service = PaymentService(comm)
        payment = service.payments.get(comm.params["payment_id"], ctx.principal.user)
        if payment.status != PaymentStatus.PENDING_SCA:
            raise Conflict(f"payment is {payment.status}")
        answer = {"challenge": payment.challenge_id, "code": comm.params.get("code", "")}
        verified = comm.call("Sca", "/verify", answer).get()
        if not verified.get("ok"):
            if verified.get("attempts_left", 0) > 0:
                raise Forbidden("wrong code", attempts_left=verified["attempts_left"])
            service.payments.save(payment.moved_to(PaymentStatus.REJECTED))
            raise PaymentDeclined("too many attempts")
        payment = service.execute(payment)
        ctx.after_response(notify, comm, payment.user, "payment_sent", amount=payment.amount)
        return {"id": payment.id, "status": payment.status, "reference": payment.reference}

    @EP("/payments/bulk", method="POST")
    @view("payments:bulk")
    def bulk(self, comm: Communication, ctx: Context):
        """Import a file of payments: valid lines are drafted together, the others reported."""
        maximum = tenant_setting(ctx.principal.tenant, "max_payment")
        accepted: list[Payment] = []
        errors: list[dict[str, Any]] = []
        for number, line in enumerate(comm.params.get("payments", []), start=1):
            key = f"pay-{comm.request_id}-{number}"
            try:
                accepted.append(Payment.from_request(key, ctx.principal.user, line, maximum))
            except ValidationError as error:
                errors.append({"line": number, **error.body})
        if not accepted or (errors and comm.params.get("mode") == "strict"):
            raise ValidationError("nothing was imported", lines=errors)
        ibans = sorted({each.creditor for each in accepted})
        blocked = comm.call("Sanctions", "/screen-batch", {"ibans": ibans}).get().get("blocked", [])
        with UnitOfWork(comm) as work:
            for payment in accepted:
                if payment.creditor in blocked:
                    errors.append({"id": payment.id, "error": "blocked"})
                else:
                    work.dirty.append(payment)
        ctx.after_response(comm.call, "Scheduler", "/enqueue", {"job": "bulk", "count": len(work.dirty)})
        return {"accepted": len(work.dirty), "errors": errors}, 207 if errors else 201

    @EP("/internal/execute", method="POST")
    @internal
    def execute(self, comm: Communication):
        """Payments that need no confirmation, for standing orders."""
        service = PaymentService(comm)
        payment = Payment.from_request(
            f"so-{comm.request_id}", comm.params.get("user", ""), comm.params, 100_000
        )
        service.assess(payment)
        return {"id": payment.id, "status": service.execute(payment).status}

    @EP("/payments/settle", method="POST")
    @internal
    def await_settlement(self, comm: Communication):
        """Poll a payment until the bank has made up its mind, for at most a few seconds."""
        service = PaymentService(comm)
        payment = service.payments.get(comm.params.get("payment_id", ""))
        deadline = time.monotonic() + 3.0
        polls = 0
        while payment.status not in FINAL and polls < 3 and time.monotonic() < deadline:
            payment = service.refresh(payment)
            polls += 1
            time.sleep(0.1 * 2**polls)
        if payment.status == PaymentStatus.REJECTED:
            notify(comm, payment.user, "payment_failed", id=payment.id)
        return {"id": payment.id, "status": payment.status, "polls": polls}

    @EP("/webhooks/bank", method="POST")
    @errors_as_json
    def bank_event(self, comm: Communication):
        check_webhook(comm)
        handler = self.handlers.get(comm.params.get("type", ""))
        if handler is None:
            comm.respond({"ignored": comm.params.get("type")}, 202)
            return
        service = PaymentService(comm)
        found = service.payments.find(reference=comm.params.get("reference", ""))
        if not found:
            raise NotFound("unknown reference")
        if found[0].status in FINAL:
            comm.respond({"id": found[0].id, "duplicate": True})
            return
        updated = service.payments.save(handler(service, found[0]))
        comm.respond({"id": updated.id, "status": updated.status})
        self._tell_subscribers(comm, updated)

    def _on_booked(self, service: PaymentService, payment: Payment) -> Payment:
        service.ledger.post(payment)
        return payment.moved_to(PaymentStatus.SETTLED)

    def _on_rejected(self, service: PaymentService, payment: Payment) -> Payment:
        if payment.hold_id:
            service.ledger.release(payment.hold_id)
        notify(service.comm, payment.user, "payment_failed", id=payment.id)
        return payment.moved_to(PaymentStatus.REJECTED)

    def _tell_subscribers(self, comm: Communication, payment: Payment) -> None:
        try:
            hooks = comm.call("Hooks", "/subscribers", {"user": payment.user}).get().get("hooks", [])
        except CommunicationError:
            return
        for hook in hooks[:3]:
            comm.call("Hooks", "/deliver", {"url": hook, "payment": payment.id, "status": payment.status})

    @EP("/payments/quote", method="GET")
    @errors_as_json
    def quote(self, comm: Communication, amount: float = 0, to: str = "EUR"):
        if amount <= 0:
            raise ValidationError("amount must be positive")
        if to == "EUR":
            comm.respond({"amount": amount, "rate": 1})
            return
        try:
            quoted = comm.call("Rates", "/quote", {"from": "EUR", "to": to}, timeout=0.3).get()
        except (CallTimeoutError, CallError):
            quoted = comm.call("Rates", "/daily", {"to": to}).get()
        if not (rate := float(quoted.get("rate", 0))):
            raise NotFound(f"no rate for {to}")
        comm.respond({"amount": round(amount * rate, 2), "rate": rate})


class StandingOrders(MS):
    pool_size = 4
    runtime = "process"

    @EP("/standing-orders/list", name="list", method="GET")
    @view("orders:read")
    def list_orders(self, comm: Communication, ctx: Context):
        limit = page_limit(comm.params, maximum=50)
        found = comm.call("OrderStore", "/find", {"user": ctx.principal.user, "limit": limit}).get()
        items = found.get("items", [])
        if state := comm.params.get("state"):
            items = [item for item in items if item.get("state") == state]
        if comm.params.get("with") == "totals":
            totals, _ = settle(
                {item["id"]: comm.call("OrderStore", "/events", {"id": item["id"]}) for item in items}
            )
            for item in items:
                if item["id"] in totals:
                    item["total"] = replay(totals[item["id"]].get("events", []))["paid"]
        return {"items": items, "next": found.get("next")}

    @EP("/standing-orders/{order_id}/state", method="POST")
    @view("orders:write")
    def change_state(self, comm: Communication, ctx: Context):
        repository = OrderRepository(comm)
        order = repository.get(comm.params["order_id"], ctx.principal.user)
        action = comm.params.get("action", "")
        order.state = advance(ORDER_FLOW, order.state, action)
        if action == "resume":
            order.next_run = self._business_day(comm, order.next_run)
        repository.append(order.id, action)
        repository.save(order)
        if action == "cancel":
            notify(comm, order.user, "order_cancelled", id=order.id)
        return {"id": order.id, "state": order.state, "next_run": order.next_run}

    @retry(attempts=2)
    def _business_day(self, comm: Communication, day: str) -> str:
        return comm.call("Calendar", "/next-business-day", {"after": day}, timeout=0.5).get().get("day", day)

    @EP("/standing-orders/run-due", method="POST")
    @internal
    def run_due(self, comm: Communication):
        """Cron: pay what is due today. Three failures in a row pause an order."""
        repository = OrderRepository(comm)
        summary: dict[str, list[str]] = defaultdict(list)
        for order in repository.find(due=comm.params.get("day", "today"))[:2]:
            if order.state != "active":
                summary["skipped"].append(order.id)
                continue
            body = {
                "user": order.user,
                "bank": order.bank,
                "debtor": order.debtor,
                "creditor": order.creditor,
            }
            body["amount"] = order.amount
            try:
                comm.call("Payments", "/internal/execute", body, headers=INTERNAL_HEADERS, timeout=10.0).get()
            except CallError as error:
                order.failures += 1
                summary["failed"].append(order.id)
                repository.append(order.id, "failed", status=error.status)
                if order.failures >= 3:
                    order.state = "paused"
                    notify(comm, order.user, "order_paused", id=order.id)
            else:
                order.failures = 0
                summary["paid"].append(order.id)
                repository.append(order.id, "executed", amount=order.amount)
            repository.save(order)
        return summary


Renderer = Callable[[Communication, dict[str, Any]], dict[str, Any]]
RENDERERS: dict[str, Renderer] = {"json": lambda comm, statement: {"content": statement}}


def renders(name: str) -> Callable[[Renderer], Renderer]:
    def register(func: Renderer) -> Renderer:
        RENDERERS[name] = func
        return func

    return register


@renders("csv")
def render_csv(comm: Communication, statement: dict[str, Any]) -> dict[str, Any]:
    rows = [f"{entry.get('text', '')};{entry.get('amount', 0)}" for entry in statement["entries"]]
    return {"content": "\n".join(["text;amount", *rows])}


@renders("pdf")
def render_pdf(comm: Communication, statement: dict[str, Any]) -> dict[str, Any]:
    rendered = comm.call(
        "Documents", "/render", {"template": "statement", "data": statement}, timeout=10.0
    ).get()
    return comm.call("Documents", "/upload", {"document": rendered.get("document")}).get()


class StatementBuilder:
    def __init__(self, comm: Communication, account: Account, period: str) -> None:
        self.comm = comm
        self.account = account
        self.data: dict[str, Any] = {"account": account.id, "period": period, "entries": []}

    def with_balance(self) -> StatementBuilder:
        self.data["balance"] = (
            self.comm.call("Ledger", "/balance", {"account": self.account.id}).get().get("amount")
        )
        return self

    def with_entries(self, minimum: Decimal) -> StatementBuilder:
        for entry in LedgerClient(self.comm).entries(self.account.id, self.data["period"]):
            if abs(money(entry.get("amount", 0))) >= minimum:
                self.data["entries"].append(entry)
        return self

    def build(self) -> dict[str, Any]:
        return {**self.data, "total": str(sum(money(each.get("amount", 0)) for each in self.data["entries"]))}


class Statements(MS):
    pool_size = 8
    runtime = "thread"

    @EP("/statements", method="POST")
    @view("statements:read", status=201, per_minute=20)
    def generate(self, comm: Communication, ctx: Context):
        renderer = RENDERERS.get(comm.params.get("format", "json"))
        if renderer is None:
            raise ValidationError("unknown format", formats=sorted(RENDERERS))
        account = AccountRepository(comm).get(comm.params.get("account", ""), ctx.principal.user)
        builder = StatementBuilder(comm, account, comm.params.get("period", "2024-01"))
        if comm.params.get("balance", True):
            builder.with_balance()
        statement = builder.with_entries(money(comm.params.get("minimum", 0))).build()
        if not statement["entries"]:
            return {"account": account.id, "empty": True}, 200
        return {"account": account.id, "total": statement["total"], **renderer(comm, statement)}

    @EP("/statements/monthly-run", method="POST")
    @internal
    def monthly_run(self, comm: Communication):
        """Queue statements of many accounts, in batches; a batch that fails is tried one by one."""
        ids = comm.params.get("accounts", [])
        queued, rejected = 0, []
        for start in range(0, len(ids), 2):
            batch = ids[start : start + 2]
            try:
                comm.call("Documents", "/enqueue", {"accounts": batch}).get()
                queued += len(batch)
            except CallError as error:
                if error.status == 503:
                    raise Unavailable("document service is overloaded", queued=queued) from error
                for account in batch:
                    try:
                        comm.call("Documents", "/enqueue", {"accounts": [account]}).get()
                    except CommunicationError:
                        rejected.append(account)
                    else:
                        queued += 1
        return {"queued": queued, "rejected": rejected}

    @EP("/reports/cashflow", method="GET")
    @view("transactions:read")
    def cashflow(self, comm: Communication, ctx: Context):
        accounts = AccountRepository(comm).find(user=ctx.principal.user)[:3]
        futures = {each.id: comm.call("Ledger", "/totals", {"account": each.id}) for each in accounts}
        report: dict[str, Any] = {"in": Decimal(0), "out": Decimal(0), "missing": []}
        for account_id, future in futures.items():
            try:
                totals = future.get(timeout=2.0)
            except CallTimeoutError:
                report["missing"].append(account_id)
                continue
            report["in"] += money(totals.get("in", 0))
            report["out"] += money(totals.get("out", 0))
        if ctx.flags.get("forecast") and not report["missing"]:
            forecast = comm.call("Forecast", "/project", {"net": str(report["in"] - report["out"])}).get()
            report["forecast"] = forecast.get("months", [])
        return report

    @EP("/reconcile", method="POST")
    @internal
    def reconcile(self, comm: Communication):
        """Compare our ledger with the bank; open a case for what differs."""
        account = AccountRepository(comm).get(comm.params.get("account", ""))
        connector = BankConnector.of(account.bank, comm)
        ours = {entry["id"] for entry in LedgerClient(comm).entries(account.id)}
        theirs = {
            item["id"]: item for item in iter_pages(lambda cursor: connector.transactions(account.id, cursor))
        }
        missing, extra = sorted(theirs.keys() - ours), sorted(ours - theirs.keys())
        if not missing and not extra:
            return {"account": account.id, "balanced": True}
        if not extra and comm.params.get("repair"):
            items = [theirs[key] for key in missing]
            comm.call("Ledger", "/import", {"account": account.id, "items": items}).get()
            return {"account": account.id, "balanced": True, "imported": len(items)}
        case = comm.call("Cases", "/open", {"account": account.id, "missing": missing, "extra": extra}).get()
        return {"account": account.id, "balanced": False, "case": case.get("id")}


Channel = Callable[[Communication, dict[str, Any], str], bool]
CHANNELS: dict[str, Channel] = {}


def channel(func: Channel) -> Channel:
    CHANNELS[func.__name__.removeprefix("by_")] = func
    return func


@channel
def by_push(comm: Communication, profile: dict[str, Any], text: str) -> bool:
    if not profile.get("device"):
        return False
    return (
        comm.call("Push", "/send", {"device": profile["device"], "text": text}, timeout=1.0)
        .get()
        .get("ok", True)
    )


@channel
def by_sms(comm: Communication, profile: dict[str, Any], text: str) -> bool:
    if not profile.get("phone"):
        return False
    comm.call("Sms", "/send", {"to": profile["phone"], "text": text[:160]}).get()
    return True


@channel
def by_mail(comm: Communication, profile: dict[str, Any], text: str) -> bool:
    if profile.get("email"):
        comm.call("Mail", "/send", {"to": profile["email"], "body": text}).get()
        return True
    return False


URGENT = {"payment_failed", "consent_revoked", "order_paused"}


class Notifications(MS):
    pool_size = 8
    runtime = "thread"

    def setup(self) -> None:
        self.templates: dict[str, str] = {}

    @EP("/send", method="POST")
    @errors_as_json
    def send(self, comm: Communication):
        user, name = comm.params.get("user"), comm.params.get("template")
        if not user or not name:
            raise ValidationError("user and template are required")
        profile = comm.call("Directory", "/profile", {"user": user}).get()
        if name not in URGENT and self._muted(comm, user, name):
            comm.respond({"sent": None, "muted": True})
            return
        text = self._text(comm, name, comm.params.get("values") or {})
        for each in tenant_setting(profile.get("tenant", "default"), "channels"):
            try:
                if CHANNELS[each](comm, profile, text):
                    comm.respond({"sent": each})
                    break
            except CommunicationError as error:
                log.info("%s failed: %s", each, error)
        else:
            comm.call("Scheduler", "/enqueue", {"job": "notify_later", "user": user, "text": text}).get()
            comm.respond({"sent": None}, 202)

    def _muted(self, comm: Communication, user: str, name: str) -> bool:
        try:
            preferences = comm.call("Prefs", "/get", {"user": user}, timeout=0.5).get()
        except CommunicationError:
            return False
        return preferences.get("quiet", False) or name in preferences.get("muted", [])

    def _text(self, comm: Communication, name: str, values: dict[str, Any]) -> str:
        if name not in self.templates:
            try:
                self.templates[name] = comm.call("Templates", "/get", {"name": name}).get().get("text", name)
            except CallError as error:
                if error.status != 404:
                    raise
                return name.replace("_", " ")
        return self.templates[name].format_map(defaultdict(str, values))

    @EP("/broadcast", method="POST")
    @errors_as_json
    def broadcast(self, comm: Communication):
        """Answer at once, then work through the audience."""
        principal = authenticate(comm, "staff")
        text = str(comm.params.get("text", "")).strip()
        if not text:
            raise ValidationError("text is required")
        segment = comm.params.get("segment", "all")
        members = comm.call("Directory", "/audience", {"segment": segment}).get().get("members", [])
        comm.respond({"recipients": len(members)}, 202)
        futures = {
            member["id"]: comm.call("Mail", "/send", {"to": member["email"], "body": text})
            for member in members[:5]
            if member.get("email")
        }
        sent, _ = settle(futures)
        comm.call(
            "Audit", "/append", {"action": "broadcast", "actor": principal.user, "delivered": len(sent)}
        )

    @EP("/preferences/update", method="POST")
    @view()
    def update_preferences(self, comm: Communication, ctx: Context):
        allowed = {key: comm.params[key] for key in ("quiet", "muted") if key in comm.params}
        if not allowed or URGENT & set(allowed.get("muted", [])):
            raise ValidationError("nothing to change, or urgent messages muted")
        comm.call("Prefs", "/save", {"user": ctx.principal.user, **allowed}).get()
        return allowed

    @EP("/health/deep", method="GET")
    def health(self, comm: Communication):
        if comm.params.get("quick"):
            comm.respond({"ok": True})
            return
        _, failed = settle({name: comm.call(name, "/ping", timeout=0.3) for name in ("Mail", "Sms", "Push")})
        comm.respond({"ok": not failed, "down": failed}, 200 if len(failed) < 2 else 503)
