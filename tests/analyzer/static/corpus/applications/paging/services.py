"""Pages, exports, ingestion and jobs."""

import csv
import io
import itertools
from collections.abc import Iterator

from mup import EP, MS, Communication
from mup.errors import CommunicationError, MupError

PAGE = 50


def pages(comm: Communication, **params) -> Iterator[list]:
    """All pages of a search, one after the other."""
    cursor = None
    while True:
        answer = comm.call("Search", "/page", {**params, "cursor": cursor}).get()
        yield answer["items"]
        cursor = answer.get("next")
        if cursor is None:
            return


def rows(comm: Communication, **params) -> Iterator[dict]:
    for page in pages(comm, **params):
        yield from page


class Export(MS):
    pool_size = 2

    @EP("/all", method="GET")
    def all(self, comm: Communication) -> None:
        comm.respond(list(rows(comm, q="*")))

    @EP("/first", method="GET")
    def first(self, comm: Communication, n: int = 3) -> None:
        comm.respond(list(itertools.islice(rows(comm, q="*"), n)))

    @EP("/loop", method="GET")
    def loop(self, comm: Communication) -> None:
        items, cursor = [], ""
        while cursor is not None:
            page = comm.call("Search", "/page", {"cursor": cursor}).get()
            items.extend(page["items"])
            cursor = page.get("next")
        comm.respond(items)

    @EP("/limited", method="GET")
    def limited(self, comm: Communication) -> None:
        items = []
        for number in range(5):
            page = comm.call("Search", "/page", {"number": number}).get()["items"]
            items += page
            if not page:
                break
        comm.respond(items)

    @EP("/walrus", method="GET")
    def walrus(self, comm: Communication) -> None:
        total, offset = 0, 0
        while batch := comm.query("export", "batch", "rows", {"offset": offset}).get():
            total += len(batch)
            offset += PAGE
        comm.respond({"rows": total})

    @EP("/find/{id}", method="GET")
    def find(self, comm: Communication, id: str) -> None:
        found = next((row for row in rows(comm, q=id) if row["id"] == id), None)
        if found is None:
            comm.respond({"error": "not found"}, status=404)
            return
        comm.respond(comm.call("Search", "/detail", {"id": found["id"]}).get())

    @EP("/any", method="GET")
    def any(self, comm: Communication) -> None:
        comm.respond(any(row["id"] == "b" for row in rows(comm, q="*")))

    @EP("/csv", method="GET")
    def csv(self, comm: Communication) -> None:
        out = io.StringIO()
        writer = csv.DictWriter(out, fieldnames=["id", "price"])
        writer.writeheader()
        for row in rows(comm, q="*"):
            price = comm.query("export", "price", "prices", {"_id": row["id"]}).get()
            writer.writerow({"id": row["id"], "price": price[0].get("price") if price else ""})
        comm.respond(out.getvalue(), headers={"Content-Type": "text/csv"})

    @EP("/while-else", method="GET")
    def while_else(self, comm: Communication) -> None:
        tries = 3
        while tries:
            state = comm.call("Search", "/state").get()
            if state.get("ready"):
                break
            tries -= 1
        else:
            comm.respond({"error": "not ready"}, status=503)
            return
        comm.respond(comm.call("Search", "/page", {}).get())


class Ingest(MS):
    pool_size = 4

    @EP("/readings")
    def readings(self, comm: Communication, readings: list[dict]) -> None:
        stored = failed = 0
        for reading in readings:
            if "sensor" not in reading:
                failed += 1
                continue
            try:
                comm.query("series", "insert", "readings", {"$insert": [reading]}).get()
                stored += 1
            except CommunicationError:
                failed += 1
        comm.respond({"stored": stored, "failed": failed}, status=207 if failed else 200)

    @EP("/bulk")
    def bulk(self, comm: Communication, readings: list[dict]) -> None:
        valid = [r for r in readings if r.get("value") is not None]
        if valid:
            comm.query("series", "insert_many", "readings", {"$insert": valid}).get()
        alarms = [r for r in valid if r["value"] > 90]
        for alarm in alarms:
            comm.call("Search", "/alarm", alarm)
        comm.respond({"stored": len(valid), "alarms": len(alarms)})

    @EP("/nested")
    def nested(self, comm: Communication, sites: dict[str, list[str]]) -> None:
        result = {}
        for site, sensors in sites.items():
            info = comm.query("series", "site", "sites", {"_id": site}).get()
            if not info:
                continue
            result[site] = {}
            for sensor in sensors:
                last = comm.query("series", "last", "readings", {"sensor": sensor}).get()
                if not last:
                    break
                result[site][sensor] = last[0]
        comm.respond(result)

    @EP("/import")
    def imported(self, comm: Communication) -> None:
        """Respond at once, work later."""
        lines = comm.params.get("lines", [])
        comm.respond({"accepted": len(lines)}, status=202)
        for line in lines:
            try:
                comm.query("series", "insert", "readings", {"$insert": [{"line": line}]}).get()
            except MupError:
                comm.call("Search", "/alarm", {"line": line}).get()

    @EP("/webhook")
    def webhook(self, comm: Communication) -> None:
        event = comm.params.get("event")
        if comm.headers.get("x-signature") != "s":
            comm.respond(None, status=401)
            return
        known = comm.query("series", "seen", "events", {"_id": event}).get()
        if known:
            comm.respond({"duplicate": True})
            return
        comm.respond(None, status=204)
        comm.query("series", "note", "events", {"$insert": [{"_id": event}]}).get()
        comm.call("Search", "/alarm", {"event": event})


class Jobs(MS):
    runtime = "async"

    @EP("/submit")
    async def submit(self, comm: Communication) -> None:
        job = comm.request_id
        await comm.query("jobs", "insert", "jobs", {"$insert": [{"_id": job}]})
        comm.respond({"job": job}, status=202)
        await self._work(comm, job)

    async def _work(self, comm, job):
        try:
            result = await comm.call("Search", "/page", {"job": job})
            state = "done" if result["items"] else "empty"
        except MupError:
            state = "failed"
        change = {"filter": {"_id": job}, "update": {"$set": {"state": state}}}
        await comm.query("jobs", "finish", "jobs", {"$update": change})

    @EP("/status/{job}", method="GET")
    async def status(self, comm: Communication, job: str) -> None:
        rows = await comm.query("jobs", "one", "jobs", {"_id": job})
        comm.respond(rows[0] if rows else None, status=200 if rows else 404)

    @EP("/stream", method="GET")
    async def stream(self, comm: Communication) -> None:
        lines = []
        async for item in self._items(comm):
            if item["id"] == "b":
                break
            lines.append(item)
        comm.respond(lines)

    async def _items(self, comm):
        cursor = ""
        while cursor is not None:
            page = await comm.call("Search", "/page", {"cursor": cursor})
            for item in page["items"]:
                yield item
            cursor = page.get("next")


class Search(MS):
    @EP("/page")
    def page(self, comm: Communication, cursor: str | None = None) -> None:
        found = comm.query("search", "page", "documents", {"after": cursor or ""}).get()
        more = found[-1]["_id"] if len(found) == PAGE else None
        comm.respond({"items": found, "next": more})

    @EP("/detail")
    def detail(self, comm: Communication, id: str) -> None:
        comm.respond(comm.query("search", "detail", "documents", {"_id": id}).get())

    @EP("/state")
    def state(self, comm: Communication) -> None:
        comm.respond({"ready": True})

    @EP("/alarm")
    def alarm(self, comm: Communication) -> None:
        comm.respond(None, status=202)
