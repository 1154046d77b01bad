import asyncio
import logging
from collections import Counter
from functools import partial
from itertools import chain

from mup import EP, MS, Communication
from mup.errors import CommunicationError, MupError
from providers import PROVIDERS, Provider, SuggestionRequest, Weather

logger = logging.getLogger(__name__)

TIMEOUT = 0.2
DEFAULT = "default"
MOST_VARIANTS = 3


async def gather(tasks, timeout, timeout_cb=None):
    """Wait for tasks; those that are late are cancelled."""
    if not tasks:
        return set(), set()
    done, pending = await asyncio.wait(tasks, timeout=timeout)
    for task in pending:
        task.cancel()
        if timeout_cb is not None:
            timeout_cb(task)
    return done, pending


def log_timeout(metrics, task):
    metrics[f"timeout.{task.get_name()}"] += 1


class Suggest(MS):
    runtime = "async"
    pool_size = 100

    def setup(self) -> None:
        self.metrics = Counter()
        self.active = dict(PROVIDERS)

    def _sources(self, names: str | None) -> list[Provider]:
        if names is None:
            return [p for p in self.active.values() if p.enabled_by_default]
        wanted = dict.fromkeys(names.split(","))
        found = [self.active[n] for n in wanted if n in self.active]
        if DEFAULT in wanted:
            found.extend(p for p in self.active.values() if p.enabled_by_default and p not in found)
        return found

    @EP("/api/v1/suggest", method="GET")
    async def suggest(
        self, comm: Communication, q: str, providers: str | None = None, client_variants: str | None = None
    ) -> None:
        sources = self._sources(providers)
        lookups = []
        for provider in sources:
            request = SuggestionRequest(query=provider.normalize(q), geo=comm.headers.get("x-geo"))
            task = asyncio.create_task(provider.query(comm, request), name=provider.name)
            lookups.append(task)
        done, _ = await gather(
            lookups,
            timeout=max((p.timeout for p in sources), default=TIMEOUT),
            timeout_cb=partial(log_timeout, self.metrics),
        )
        suggestions = list(chain.from_iterable(task.result() for task in done))
        variants = (
            client_variants.split(",", maxsplit=MOST_VARIANTS)[:MOST_VARIANTS] if client_variants else []
        )
        comm.respond(
            {"suggestions": suggestions, "client_variants": variants},
            headers={"Cache-Control": f"private, max-age={self._ttl(sources)}"},
        )

    def _ttl(self, sources):
        match sources:
            case [Weather()]:
                return 60
            case _:
                return 300

    @EP("/api/v1/simple", method="GET")
    async def simple(self, comm: Communication, q: str) -> None:
        """The default providers, all at once; what fails is left out."""
        request = SuggestionRequest(query=q, geo=None)
        results = await asyncio.gather(
            *(p.query(comm, request) for p in self.active.values() if p.enabled_by_default),
            return_exceptions=True,
        )
        comm.respond([s for r in results if not isinstance(r, BaseException) for s in r])

    @EP("/api/v1/first", method="GET")
    async def first(self, comm: Communication, q: str) -> None:
        request = SuggestionRequest(query=q, geo=None)
        for provider in self.active.values():
            try:
                found = await asyncio.wait_for(provider.query(comm, request), TIMEOUT)
            except (TimeoutError, MupError):
                logger.warning("%s is skipped", provider.name)
                continue
            if found:
                comm.respond(found)
                return
        comm.respond([])

    @EP("/api/v1/weather", method="GET")
    async def weather(self, comm: Communication, city: str = "") -> None:
        if not city:
            comm.respond([], status=400)
            return
        try:
            async with asyncio.timeout(TIMEOUT):
                place = await comm.call("Geo", "/locate", {"name": city})
                report = await comm.call("Forecast", "/now", {"key": place["key"]})
        except TimeoutError:
            comm.respond([], status=504)
        except CommunicationError:
            comm.respond([], status=502)
        else:
            comm.respond([report])

    @EP("/api/v1/providers", method="GET")
    async def providers(self, comm: Communication) -> None:
        comm.respond([{"id": name, "availability": p.availability()} for name, p in self.active.items()])
