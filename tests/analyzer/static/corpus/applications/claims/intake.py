import asyncio
import json
import logging
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation

from domain import ClaimError, Damage, InvalidClaim, Money, Peril, answers_errors_async, positive, required
from mup import EP, MS, Communication
from mup.errors import CallError, MupError

logger = logging.getLogger("claims.intake")


@asynccontextmanager
async def case_file(comm: Communication, number):
    await comm.call("Files", "/open", {"number": number})
    try:
        yield {"number": number}
    except (ValueError, ArithmeticError) as error:
        await comm.call("Files", "/damaged", {"error": str(error)})
        raise InvalidClaim("file", str(error)) from error
    except LookupError:
        await comm.call("Files", "/incomplete", {})
    else:
        await comm.call("Files", "/complete", {})
    finally:
        await comm.call("Files", "/shut", {"number": number})


class Transaction:
    def __init__(self, comm):
        self.comm = comm

    async def __aenter__(self):
        await self.comm.query("claims", "begin", "tx", {})
        return self

    async def __aexit__(self, kind, error, trace):
        if kind is None:
            await self.comm.query("claims", "commit", "tx", {})
            return False
        await self.comm.query("claims", "rollback", "tx", {})
        return isinstance(error, (TypeError, ValueError))


class Intake(MS):
    runtime = "async"
    pool_size = 20

    @EP("/report", method="POST")
    @answers_errors_async()
    async def report(self, comm: Communication) -> None:
        holder, amount = required(comm.params, "holder", "amount")
        amount = positive(amount)
        await comm.call("Holders", "/load", {"holder": holder["id"], "amount": amount})
        comm.respond({"amount": amount}, status=201)

    @EP("/photos", method="POST")
    async def photos(self, comm: Communication) -> None:
        try:
            sizes = [int(p["size"]) for p in comm.params["photos"] if p["kind"] != "thumb"]
        except (KeyError, TypeError) as error:
            logger.info("photos: %r", error)
            await comm.call("Photos", "/ask", {})
            comm.respond({"asked": True}, status=202)
            return
        except ValueError:
            sizes = []
            await comm.call("Photos", "/measure", {})
        if any(s > 1000 for s in sizes):
            await comm.call("Photos", "/shrink", {"sizes": sizes})
        comm.respond(sizes)

    @EP("/fraud", method="POST")
    async def fraud(self, comm: Communication) -> None:
        signals = comm.params.get("signals")
        try:
            suspicious = any(s["weight"] > 5 for s in signals)
            harmless = all(s["weight"] < 1 for s in signals)
        except TypeError:
            suspicious, harmless = True, False
            await comm.call("Fraud", "/manual", {})
        except KeyError:
            suspicious = harmless = False
            await comm.call("Fraud", "/enrich", {})
        if suspicious:
            await comm.call("Fraud", "/block", {})
        elif not harmless:
            await comm.call("Fraud", "/watch", {})
        comm.respond({"suspicious": suspicious})

    @EP("/classify", method="POST")
    async def classify(self, comm: Communication) -> None:
        try:
            match comm.params:
                case {"kind": "car", "plate": plate} if plate.isupper():
                    await comm.call("Cars", "/plate", {"plate": plate})
                case {"kind": "car", "value": value} if int(value) > 5000:
                    await comm.call("Cars", "/expert", {"value": value})
                case {"kind": "car"}:
                    await comm.call("Cars", "/garage", {})
                case {"kind": str(kind), **rest} if rest["floor"] >= 0:
                    await comm.call("Homes", "/floor", {"kind": kind})
                case {"kind": None}:
                    raise InvalidClaim("kind", "null")
                case _:
                    await comm.call("Homes", "/other", {})
        except AttributeError:
            await comm.call("Cars", "/scan", {})
            comm.respond({"scanned": True})
        except (ValueError, LookupError) as error:
            await comm.call("Homes", "/visit", {"why": str(error)})
            comm.respond({"visit": True})
        except ClaimError as error:
            comm.respond({"error": error.code}, status=error.status)
        else:
            comm.respond({"ok": True})

    @EP("/casefile", method="POST")
    async def casefile(self, comm: Communication) -> None:
        share = None
        try:
            async with case_file(comm, comm.params.get("number")) as file:
                amounts = comm.params["amounts"]
                share = 100 / len(amounts)
                first = int(amounts[0])
                await comm.call("Shares", "/store", {"share": share, "first": first, **file})
        except InvalidClaim as error:
            comm.respond({"error": error.field_name}, status=error.status)
            return
        comm.respond({"share": share})

    @EP("/settle", method="POST")
    async def settle(self, comm: Communication) -> None:
        done = False
        async with Transaction(comm):
            amount = Money(Decimal(str(comm.params.get("amount", "0"))), comm.params.get("currency", "EUR"))
            await comm.call("Ledger", "/settle", {"amount": str(amount.amount)})
            note = comm.params.get("note")
            if note is not None:
                await comm.call("Ledger", "/note", {"note": note[:20] + "..."})
            done = True
        if not done:
            await comm.call("Ledger", "/manual", {})
        comm.respond({"settled": done})

    @EP("/batch", method="POST")
    async def batch(self, comm: Communication) -> None:
        errors = []
        for text in comm.params.get("amounts") or []:
            try:
                Decimal(text).quantize(Decimal("0.01"))
                datetime.fromisoformat(comm.params["date"])
            except (InvalidOperation, ValueError, KeyError) as error:
                errors.append(error)
        try:
            if errors:
                raise ExceptionGroup("batch", errors)
            await comm.call("Batches", "/post", {})
        except* InvalidOperation as group:
            await comm.call("Batches", "/amounts", {"n": len(group.exceptions)})
        except* (ValueError, KeyError):
            await comm.call("Batches", "/dates", {})
        comm.respond({"errors": len(errors)})

    @EP("/next", method="POST")
    async def next_(self, comm: Communication) -> None:
        rows = await comm.query("claims", "open", "claims", {"state": "open"})
        try:
            claim = next(r for r in rows if r["adjuster"] == comm.params.get("adjuster"))
        except StopIteration:
            await comm.call("Adjusters", "/idle", {})
            comm.respond(None)
            return
        except KeyError:
            claim = rows[0]
            await comm.call("Adjusters", "/assign", {"claim": claim.get("_id")})
        try:
            number = claim["_id"].removeprefix("C-")
        except Exception:
            await comm.call("Adjusters", "/number", {})
            raise
        await comm.call("Adjusters", "/take", {"number": number})
        comm.respond({"number": number})

    @EP("/address", method="POST")
    async def address(self, comm: Communication) -> None:
        try:
            try:
                street, city = comm.params["address"].rsplit(",", 1)
                code, town = city.split()
            except KeyError:
                await comm.call("Addresses", "/lookup", {})
                street, code, town = "", "0", ""
            else:
                await comm.call("Addresses", "/town", {"town": town})
            zone = int(code) // 10000
        except ValueError:
            await comm.call("Addresses", "/clean", {})
            zone = None
        except AttributeError:
            zone = -1
        if zone is None:
            comm.respond({"error": "address"}, status=422)
        elif zone < 0:
            await comm.call("Addresses", "/reject", {})
            comm.respond({"error": "type"}, status=400)
        else:
            comm.respond({"zone": zone})

    @EP("/webhook", method="POST")
    async def webhook(self, comm: Communication) -> None:
        answered = False
        try:
            event = json.loads(comm.params.get("payload") or "{}")
            kind = event["type"]
            comm.respond(status=202)
            answered = True
            await comm.call("Events", "/" + {"paid": "paid", "lost": "lost"}[kind], {})
            count = event["count"] + 1
            await comm.call("Events", "/count", {"count": count})
        except json.JSONDecodeError:
            await comm.call("Events", "/garbage", {})
            comm.respond({"error": "json"}, status=400)
        except (KeyError, TypeError) as error:
            logger.warning("event: %r", error)
            await comm.call("Events", "/dead", {"error": str(error)})
            if not answered:
                comm.respond({"error": "event"}, status=422)

    async def _valued(self, comm, item):
        try:
            value = item["price"] * item.get("count", 1)
            text = f"{value:,.2f}"
        except (KeyError, ValueError):
            answer = await comm.call("Values", "/appraise", {"item": item})
            return answer.get("value", 0)
        await comm.call("Values", "/record", {"value": text})
        return value

    @EP("/inventory", method="POST")
    async def inventory(self, comm: Communication) -> None:
        total = 0
        try:
            for item in comm.params["items"]:
                total += await self._valued(comm, item)
        except KeyError:
            await comm.call("Values", "/empty", {})
        except (TypeError, AttributeError):
            await comm.call("Values", "/broken", {})
            total = None
        comm.respond({"total": total})

    @EP("/adjuster", method="POST")
    async def adjuster(self, comm: Communication) -> None:
        rows = await comm.query("claims", "adjuster", "adjusters", {"region": comm.params.get("region")})
        adjuster = rows[0] if rows else None
        try:
            name = (
                adjuster.get("name").title()
                if adjuster is not None or comm.params.get("strict")
                else "nobody"
            )
        except AttributeError:
            name = None
        finally:
            await comm.call("Audit", "/adjuster", {})
        if name:
            await comm.call("Adjusters", "/greet", {"name": name})
        else:
            await comm.call("Adjusters", "/hire", {})
        comm.respond({"name": name})

    @EP("/convert", method="POST")
    async def convert(self, comm: Communication) -> None:
        rate = None
        for attempt in range(3):
            try:
                answer = await comm.call("Rates", "/rate", {"attempt": attempt})
                rate = float(answer["rate"])
                assert rate > 0
            except (KeyError, ValueError):
                continue
            except AssertionError:
                await comm.call("Rates", "/report", {})
                break
            except MupError:
                await comm.call("Rates", "/outage", {})
            else:
                break
        if not rate or rate < 0:
            comm.respond({"error": "rate"}, status=503)
            return
        try:
            amount = round(comm.params["amount"] / rate, 2)
        except (KeyError, TypeError):
            amount = 0
        comm.respond({"amount": amount})
        await comm.call("Audit", "/converted", {"amount": amount})

    @EP("/perils", method="POST")
    async def perils(self, comm: Communication) -> None:
        try:
            known = {Peril(p) for p in comm.params["perils"]}
        except ValueError as error:
            await comm.call("Perils", "/learn", {"error": str(error)})
            known = set()
            with suppress(ValueError):
                for p in comm.params["perils"]:
                    known.add(Peril(p))
                    await comm.call("Perils", "/known", {"peril": p})
        except Exception as error:
            comm.respond({"error": type(error).__name__}, status=400)
            return
        if Peril.FIRE in known:
            await comm.call("Perils", "/fire", {})
        comm.respond(sorted(p.value for p in known))

    @EP("/quote", method="POST")
    async def quote(self, comm: Communication) -> None:
        async def base():
            return int(comm.params["base"])

        async def extra():
            answer = await comm.call("Quotes", "/extra", {})
            return answer["extra"]

        results = await asyncio.gather(base(), extra(), return_exceptions=True)
        if isinstance(results[0], Exception):
            await comm.call("Quotes", "/base", {})
            comm.respond({"error": str(results[0])}, status=400)
            return
        try:
            total = sum(results)
        except TypeError:
            total = results[0]
            await comm.call("Quotes", "/partial", {"total": total})
        comm.respond({"total": total})
