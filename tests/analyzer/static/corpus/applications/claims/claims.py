import json
import logging
from contextlib import ExitStack, suppress
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from operator import itemgetter

from domain import (
    ClaimError,
    Damage,
    InvalidClaim,
    LimitExceeded,
    Money,
    Peril,
    Severity,
    UnknownPeril,
    answers_errors,
    as_invalid,
    load_policy,
    parse_header,
    positive,
    required,
    swallow,
    waiting_period,
)
from mup import EP, MS, Communication
from mup.errors import CallError, MupError

logger = logging.getLogger("claims.desk")


class Claims(MS):
    pool_size = 8

    @EP("/file", method="POST")
    def file(self, comm: Communication) -> None:
        params = comm.params
        try:
            amount = int(params["amount"])
        except KeyError:
            comm.call("Forms", "/incomplete", {"field": "amount"}).get()
            comm.respond({"error": "amount missing"}, status=400)
            return
        except (ValueError, TypeError):
            comm.call("Forms", "/invalid", {"field": "amount"}).get()
            comm.respond({"error": "amount invalid"}, status=422)
            return
        else:
            number = comm.query("claims", "file", "claims", {"$insert": [{"amount": amount}]}).get()
        finally:
            comm.call("Audit", "/attempt", {"path": "file"}).get()
        comm.respond({"number": len(number)}, status=201)

    @EP("/peril", method="POST")
    @answers_errors
    def peril(self, comm: Communication) -> None:
        (text,) = required(comm.params, "peril")
        try:
            peril = Peril(text)
        except ValueError as error:
            raise UnknownPeril(text) from error
        match peril:
            case Peril.FIRE:
                comm.call("Brigade", "/report", {}).get()
            case Peril.THEFT:
                comm.call("Police", "/report", {}).get()
            case _:
                comm.call("Plumber", "/order", {}).get()
        comm.respond({"peril": peril.value})

    @EP("/reserve", method="POST")
    @answers_errors
    def reserve(self, comm: Communication) -> None:
        with as_invalid("amount"):
            money = Money.parse(comm.params.get("amount"))
        if money.amount > 10_000:
            raise LimitExceeded(money.amount)
        with as_invalid("rate", ArithmeticError, KeyError):
            share = money.amount / Decimal(comm.params["rate"])
        comm.call("Ledger", "/reserve", {"amount": str(share)}).get()
        comm.respond({"share": str(share)})

    @EP("/score", method="POST")
    def score(self, comm: Communication) -> None:
        history = comm.query("claims", "history", "claims", {"holder": comm.params.get("holder")}).get()
        try:
            worst = min(row["score"] for row in history)
            label = f"{worst:.2f}"
        except ValueError:
            # no history at all, or a score which is no number
            label = comm.call("Scoring", "/fresh", {}).get().get("label", "n/a")
        except KeyError as error:
            logger.warning("row without %s", error)
            comm.call("Scoring", "/repair", {"field": error.args[0]}).get()
            label = "repaired"
        except TypeError:
            comm.call("Scoring", "/mixed", {}).get()
            label = "mixed"
        comm.respond({"score": label})

    @EP("/import", method="POST")
    def import_(self, comm: Communication) -> None:
        imported, skipped = 0, []
        for position, line in enumerate(comm.params.get("lines") or ()):
            try:
                number, amount = line.split(";")
                amount = float(amount)
            except ValueError:
                skipped.append(position)
                if len(skipped) > 2:
                    comm.call("Ops", "/alert", {"skipped": skipped}).get()
                    break
                continue
            except AttributeError:
                comm.call("Ops", "/garbage", {"position": position}).get()
                continue
            comm.query(
                "claims", "import", "claims", {"$insert": [{"number": number, "amount": amount}]}
            ).get()
            imported += 1
        else:
            comm.call("Ops", "/imported", {"n": imported}).get()
        comm.respond({"imported": imported, "skipped": skipped})

    @EP("/assess", method="POST")
    def assess(self, comm: Communication) -> None:
        damage = Damage(comm.params)
        try:
            if damage.cost > 1000:
                comm.call("Experts", "/visit", {"cost": damage.cost}).get()
        except AttributeError:
            comm.call("Experts", "/estimate", {}).get()
        except ValueError:
            comm.respond({"error": "cost"}, status=400)
            return
        room = getattr(damage, "room", None)
        if room is not None:
            comm.call("Rooms", "/inspect", {"room": room}).get()
        comm.respond({"room": room})

    @EP("/deductible", method="POST")
    def deductible(self, comm: Communication) -> None:
        total = None
        with suppress(TypeError, KeyError):
            total = comm.params["base"]
            total += comm.params["surcharge"]
            comm.call("Rates", "/surcharge", {"total": total}).get()
        if total is None:
            total = comm.call("Rates", "/standard", {}).get().get("total", 150)
        try:
            text = "%d EUR" % total
        except TypeError:
            text = str(total)
            comm.call("Audit", "/odd", {"total": text}).get()
        comm.respond(text)

    @EP("/transition", method="POST")
    def transition(self, comm: Communication) -> None:
        handlers = {"approve": self._approve, "reject": self._reject, "reopen": self._reopen}
        try:
            handler = handlers[comm.params["action"]]
            result = handler(comm, comm.params)
        except KeyError as error:
            comm.call("Audit", "/unknown", {"what": str(error)}).get()
            comm.respond({"error": "action"}, status=404)
        except AssertionError:
            comm.call("Audit", "/forbidden", {}).get()
            comm.respond({"error": "state"}, status=409)
        except InvalidClaim as error:
            comm.respond({"error": error.field_name}, status=error.status)
        else:
            comm.query("claims", "state", "claims", {"$set": {"state": result}}).get()
            comm.respond({"state": result})

    def _approve(self, comm, params):
        amount = positive(params["amount"])
        comm.call("Payments", "/transfer", {"amount": amount}).get()
        return "approved"

    def _reject(self, comm, params):
        assert params.get("reason"), "a rejection needs a reason"
        comm.call("Letters", "/rejection", {"reason": params["reason"]}).get()
        return "rejected"

    def _reopen(self, comm, params):
        index = ["new", "open", "closed"].index(params.get("state"))
        comm.call("Letters", "/reopened", {"index": index}).get()
        return "open"

    @EP("/period", method="POST")
    def period(self, comm: Communication) -> None:
        start, loss = comm.params.get("start"), comm.params.get("loss")
        try:
            if waiting_period(start, loss):
                comm.call("Letters", "/waiting", {}).get()
                comm.respond({"covered": False})
                return
        except TypeError:
            # one of them is missing, or only one has a time zone
            try:
                start = comm.query("claims", "policy", "policies", {"_id": 1}).get()[0]["start"]
            except (IndexError, KeyError):
                comm.call("Policies", "/recover", {}).get()
                start = date.today().isoformat()
        except ValueError as error:
            comm.respond({"error": str(error)}, status=400)
            comm.call("Audit", "/malformed", {"start": start, "loss": loss}).get()
            return
        comm.call("Coverage", "/check", {"start": start}).get()
        comm.respond({"covered": True})

    @EP("/document", method="POST")
    def document(self, comm: Communication) -> None:
        try:
            data = bytes.fromhex(comm.params.get("data", ""))
            kind, size = parse_header(data)
        except InvalidClaim:
            comm.call("Documents", "/upgrade", {}).get()
            comm.respond(status=204)
        except Exception as error:
            logger.exception("document")
            comm.call("Documents", "/quarantine", {"error": type(error).__name__}).get()
            comm.respond({"error": "document"}, status=415)
        else:
            if kind == 1:
                comm.call("Documents", "/photo", {"size": size}).get()
            else:
                comm.call("Documents", "/letter", {"size": size}).get()
            comm.respond({"size": size})

    @EP("/priority", method="POST")
    def priority(self, comm: Communication) -> None:
        claims = comm.params.get("claims")
        try:
            order = sorted(claims, key=itemgetter("age"))
        except TypeError:
            order = claims or []
            comm.call("Queue", "/unsorted", {"n": len(order)}).get()
        except KeyError:
            order = sorted(claims, key=lambda c: c.get("age", 0), reverse=True)
            comm.call("Queue", "/aged", {}).get()
        for claim in order[:3]:
            comm.call("Queue", "/push", {"claim": claim}).get()
        comm.respond(order)

    def _close(self, comm):
        try:
            number = int(comm.params["number"])
            comm.call("Archive", "/close", {"number": number}).get()
        except ValueError:
            comm.call("Archive", "/search", {"text": comm.params["number"]}).get()
            return "searched"
        except MupError:
            return "later"
        finally:
            if comm.params.get("force"):
                comm.call("Archive", "/force", {}).get()
                return "forced"  # noqa: B012
        return "closed"

    @EP("/close", method="POST")
    def close(self, comm: Communication) -> None:
        outcome = self._close(comm)
        if outcome == "later":
            comm.call("Jobs", "/schedule", {}).get()
        comm.respond({"outcome": outcome})

    @EP("/policy", method="POST")
    @answers_errors
    def policy(self, comm: Communication) -> None:
        try:
            policy = load_policy(comm.params.get("policy", "null"))
            severity = Severity(policy.get("severity", 1))
        except TypeError:
            policy, severity = {}, Severity.LOW
            comm.call("Policies", "/default", {}).get()
        except InvalidClaim:
            comm.call("Policies", "/unreadable", {}).get()
            raise
        except ValueError as error:
            raise ClaimError("severity") from error
        if severity >= Severity.MEDIUM and (holder := policy["holder"]):
            comm.call("Holders", "/notify", {"holder": holder}).get()
        comm.respond({"severity": int(severity)})

    @EP("/payout", method="POST")
    def payout(self, comm: Communication) -> None:
        last = None
        for attempt, field in enumerate(("iban", "account", "address"), start=1):
            try:
                target = comm.params[field].strip()
                if not target:
                    raise InvalidClaim(field, "empty")
                comm.call("Bank", "/pay", {"target": target, "attempt": attempt}).get()
            except (KeyError, AttributeError) as error:
                last = error
            except ClaimError as error:
                last = error
                comm.call("Bank", "/flag", {"field": field}).get()
            except CallError as error:
                if error.status >= 500:
                    raise
                last = error
            else:
                comm.respond({"paid": field})
                break
        else:
            comm.call("Bank", "/cheque", {"why": repr(last)}).get()
            comm.respond({"paid": "cheque"}, status=202)

    @EP("/tariff", method="POST")
    def tariff(self, comm: Communication) -> None:
        guard = swallow(LookupError)
        with ExitStack() as stack:
            stack.callback(lambda: comm.call("Audit", "/tariff", {}).get())
            with guard:
                zone = comm.params["zones"][2]
                comm.call("Tariffs", "/zone", {"zone": zone}).get()
            if guard.error is not None:
                comm.call("Tariffs", "/flat", {}).get()
        comm.respond({"flat": guard.error is not None})
