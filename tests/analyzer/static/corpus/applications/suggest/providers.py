from abc import ABC, abstractmethod
from dataclasses import dataclass

from mup import EP, MS, Communication


@dataclass(frozen=True)
class SuggestionRequest:
    query: str
    geo: str | None


class Provider(ABC):
    name: str
    enabled_by_default = True
    timeout = 0.1

    def normalize(self, query: str) -> str:
        return query.strip()

    def availability(self) -> str:
        return "enabled_by_default" if self.enabled_by_default else "disabled_by_default"

    @abstractmethod
    async def query(self, comm: Communication, request: SuggestionRequest) -> list: ...


class Adm(Provider):
    name = "adm"

    def normalize(self, query: str) -> str:
        return query.lower().lstrip()

    async def query(self, comm, request):
        return await comm.query("adm", "by_keyword", "ads", {"keyword": request.query})


class Weather(Provider):
    name = "weather"
    timeout = 0.4

    async def query(self, comm, request):
        if request.geo is None:
            return []
        place = await comm.call("Geo", "/locate", {"name": request.geo})
        return [await comm.call("Forecast", "/now", {"key": place["key"]})]


class Wiki(Provider):
    name = "wiki"
    enabled_by_default = False

    async def query(self, comm, request):
        return await comm.call("Elastic", "/search", {"q": request.query})


PROVIDERS = {p.name: p for p in (Adm(), Weather(), Wiki())}


class Geo(MS):
    runtime = "async"

    @EP("/locate")
    async def locate(self, comm: Communication, name: str) -> None:
        rows = await comm.query("geo", "by_name", "places", {"name": name})
        if not rows:
            comm.respond({"error": "unknown"}, status=404)
            return
        comm.respond({"key": rows[0]["_id"]})


class Forecast(MS):
    runtime = "async"

    @EP("/now")
    async def now(self, comm: Communication, key: str) -> None:
        cached = await comm.query("weather", "cached", "reports", {"_id": key})
        if cached:
            comm.respond(cached[0])
            return
        report = {"_id": key, "t": 20}
        await comm.query("weather", "store", "reports", {"$insert": [report]})
        comm.respond(report)


class Elastic(MS):
    runtime = "async"

    @EP("/search")
    async def search(self, comm: Communication, q: str = "") -> None:
        comm.respond(await comm.query("wiki", "search", "pages", {"title": q}))
