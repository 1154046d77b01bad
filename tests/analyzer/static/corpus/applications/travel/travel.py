import operator
from collections import defaultdict
from functools import partial
from itertools import islice, zip_longest

import settings
from domain import POLICIES, SCHENGEN, Airport, Basket, Credit, Fare, Flight, Perk, Status, Train, Traveller
from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError, MupError


class SoldOut(Exception):
    pass


def check_party(party: dict, problems: list) -> None:
    adults, children = party.get("adults", 1), party.get("children", 0)
    if not 1 <= adults + children <= 9:
        problems.append("size")
    if children > 0 and adults == 0:
        problems.insert(0, "alone")


def fill_defaults(options: dict) -> None:
    options.setdefault("mail", settings.NOTIFY)
    if options.pop("quiet", False):
        options["mail"] = False
    options.pop("internal", None)


class Travel(MS):
    pool_size = 4

    @EP("/party", method="POST")
    def party(self, comm: Communication, party: dict) -> None:
        problems: list[str] = []
        check_party(party, problems)
        first, *rest = problems or ["none"]
        if first == "alone":
            comm.call("Mail", "/alert", {"what": problems}).get()
        elif rest or first != "none":
            comm.call("Risk", "/score", {"what": problems}).get()
        else:
            comm.call("Flights", "/search", party).get()
        if not problems:
            comm.call("Hotels", "/search", party).get()
        comm.respond({"problems": problems})

    @EP("/options", method="POST")
    def options(self, comm: Communication, options: dict) -> None:
        alias = options
        fill_defaults(alias)
        if options["mail"]:
            comm.call("Mail", "/send", {}).get()
        if "internal" in options:
            comm.call("Mail", "/alert", {}).get()
        if options.keys() - {"mail", "quiet"}:
            comm.call("Risk", "/score", {}).get()
        del alias["mail"]
        if not options:
            comm.call("Pay", "/points", {}).get()
        comm.respond({})

    @EP("/basket", method="POST")
    def basket(self, comm: Communication, items: list) -> None:
        basket = Basket("x")
        seen = basket.items
        for item in items:
            basket.add(item)
            if len(seen) == 2:
                break
        else:
            comm.call("Cars", "/quote", {}).get()
        if basket:
            comm.call("Pay", "/charge", {"n": len(seen)}).get()
        if basket.vetoes and not seen:
            comm.call("Mail", "/alert", {}).get()
        comm.respond({"n": len(basket)})

    @EP("/hold", method="POST")
    def hold(self, comm: Communication, legs: int = 1) -> None:
        held: list[str] = []
        left = legs

        def take(service: str) -> bool:
            nonlocal left
            if left <= 0:
                return False
            left -= 1
            held.append(service)
            return bool(comm.call(service, "/hold", {}).get().get("ok"))

        undo = {name: (lambda n=name: comm.call(n, "/release", {}).get()) for name in ("Flights", "Hotels")}
        complete = take("Flights") and take("Hotels")
        if complete or left < 0:
            comm.call("Pay", "/charge", {}).get()
        else:
            while held:
                undo[held.pop()]()
        comm.respond({"left": left})

    @EP("/late", method="POST")
    def late(self, comm: Communication, prefix: str) -> None:
        jobs = []
        for service in ("Flights", "Hotels"):
            jobs.append(lambda: comm.call(service, "/search", {}).get())
        if prefix.startswith(("fl", "FL")):
            jobs[0]()
        elif prefix[-2:] == "el" or "otel" in prefix:
            jobs[1]()
        else:
            service = "Cars"
            comm.call(service, "/quote", {}).get()
        comm.respond({})

    def _settle(self, comm: Communication, kind: str) -> str:
        try:
            if kind == "skip":
                return "skipped"
            result = comm.call("Pay", "/charge", {}).get()
            if result.get("declined"):
                raise SoldOut
        except SoldOut:
            return "declined"
        except CallError as error:
            return "conflict" if error.status == 409 else "failed"
        else:
            if kind == "gift":
                return "gift"
            comm.call("Mail", "/send", {}).get()
        finally:
            if kind == "force":
                return "forced"  # noqa: B012
        return "paid"

    @EP("/settle/{kind}", method="POST")
    def settle(self, comm: Communication, kind: str) -> None:
        state = self._settle(comm, kind)
        dispatch = {
            "declined": partial(self._tell, path="/alert"),
            "paid": partial(self._tell, path="/send"),
            "forced": self._points,
        }
        dispatch.get(state, lambda c: None)(comm)
        comm.respond({"state": state})

    def _tell(self, comm: Communication, *, path: str) -> None:
        comm.call("Mail", path, {}).get()

    def _points(self, comm: Communication) -> None:
        comm.call("Pay", "/points", {}).get()

    @EP("/visa", method="POST")
    def visa(self, comm: Communication, stops: list[str]) -> None:
        airports = [Airport.parse(s) for s in stops]
        outside = [a for a in airports if a not in SCHENGEN]
        if outside and (risk := comm.call("Risk", "/visa", {"n": len(outside)}).get()).get("needed"):
            comm.call("Mail", "/alert", risk).get()
        hub = max(airports, default=None)
        if hub is not None and hub.rank > 1 and hub != airports[0]:
            comm.call("Flights", "/seat", {}).get()
        if len(set(airports)) < len(airports):
            comm.call("Hotels", "/search", {}).get()
        comm.respond({})

    @EP("/loyalty", method="POST")
    def loyalty(self, comm: Communication, points: int = 0, verify: bool = False) -> None:
        traveller, other = Traveller("a"), Traveller("b")
        traveller.points = points - 50
        if verify:
            traveller.verified = True
        traveller, other = other, traveller
        if other.tier == "gold" and traveller.tier != "gold":
            comm.call("Flights", "/seat", {}).get()
        if not other.points:
            comm.call("Pay", "/points", {}).get()
        if Traveller.verified or traveller.verified:
            comm.call("Risk", "/score", {}).get()
        if other.verified:
            comm.call("Mail", "/send", {}).get()
        comm.respond({})

    @EP("/perks/{perks}", method="POST")
    def perks(self, comm: Communication, perks: str) -> None:
        wanted = Perk.parse(perks)
        if not wanted:
            comm.respond({}, status=204)
            return
        if Perk.LOUNGE in wanted:
            comm.call("Pay", "/points", {}).get()
        if wanted & (Perk.BAG | Perk.CAR):
            comm.call("Pay", "/charge", {}).get()
        if wanted == Perk.ALL:
            comm.call("Mail", "/send", {}).get()
        comm.respond({})

    @EP("/cancel/{policy}", method="POST")
    def cancel(self, comm: Communication, policy: str, days: int = 0) -> None:
        kind = POLICIES.get(policy)
        if kind is None:
            comm.respond({}, status=422)
            return
        rule = kind()
        ok = rule.refundable(days)
        ok and comm.call("Pay", "/refund", {}).get()
        if rule.penalty(days) < 0:
            comm.call("Mail", "/alert", {}).get()
        elif rule.penalty(days) == 0:
            comm.call("Pay", "/points", {}).get()
        comm.respond({"ok": ok})

    @EP("/itinerary", method="POST")
    def itinerary(self, comm: Communication, legs: list) -> None:
        total = 0
        for leg in legs:
            match leg:
                case {"type": "flight" | "charter", "stops": int(stops)} if stops > 1:
                    comm.call("Flights", "/search", leg).get()
                case {"type": "flight", **rest} if not rest:
                    comm.call("Flights", "/seat", leg).get()
                case [_, "hotel", *more] if more:
                    comm.call("Hotels", "/hold", {}).get()
                case [*_, "hotel"]:
                    comm.call("Hotels", "/search", {}).get()
                case "stop":
                    break
                case str() | None:
                    continue
                case _:
                    comm.call("Cars", "/quote", {}).get()
            total += 1
        else:
            comm.call("Mail", "/send", {}).get()
        comm.respond({"total": total})

    @EP("/cheapest", method="GET")
    def cheapest(self, comm: Communication) -> None:
        offers = comm.query("travel", "offers", "offers", {}).get()
        by_price = sorted(offers, key=operator.itemgetter("price"))
        groups = defaultdict(list)
        for offer in by_price:
            groups[offer["kind"]].append(offer)
        best, second = next(zip_longest(islice(by_price, 1), by_price[1:2]), (None, None))
        if best is None:
            comm.respond({}, status=404)
            return
        comm.call("Flights" if best["kind"] == "air" else "Hotels", "/hold", best).get()
        if second and second["price"] == best["price"]:
            comm.call("Mail", "/alert", {}).get()
        if len(groups) > 1 and "air" in groups:
            comm.call("Cars", "/quote", {}).get()
        comm.respond({})
