"""A digest of several sources: as they come, all of them, or whichever is first."""

import asyncio
import logging
from typing import Any

from mup import EP, MS, Communication
from mup.errors import MupError

log = logging.getLogger(__name__)


async def headlines(comm: Communication, topic: str) -> list[dict[str, Any]]:
    return await comm.call("Papers", "/headlines", {"topic": topic})


async def reports(comm: Communication, topic: str) -> list[dict[str, Any]]:
    """What is new, and what was known before."""
    latest = await comm.call("Wire", "/latest", {"topic": topic})
    known = await comm.query("news", "known", "reports", {"topic": topic})
    return [report for report in latest if report not in known]


async def archived(comm: Communication, topic: str) -> list[dict[str, Any]]:
    try:
        return await comm.call("Archive", "/search", {"topic": topic})
    except MupError:
        log.warning("nothing from the archive about %s", topic)
        return []


class Digest(MS):
    runtime = "async"
    pool_size = 32

    @EP("/digest", method="GET")
    async def digest(self, comm: Communication, topic: str) -> None:
        """Each source as it answers."""
        found: list[dict[str, Any]] = []
        for answer in asyncio.as_completed(
            [reports(comm, topic), headlines(comm, topic), archived(comm, topic)]
        ):
            found.extend(await answer)
        comm.respond(found)

    @EP("/digest/tolerant", method="GET")
    async def tolerant(self, comm: Communication, topic: str) -> None:
        found, missing = [], 0
        for answer in asyncio.as_completed([reports(comm, topic), headlines(comm, topic)]):
            try:
                found += await answer
            except MupError:
                missing += 1
        comm.respond({"found": found, "complete": missing == 0}, status=206 if missing else 200)

    @EP("/digest/or-nothing", method="GET")
    async def or_nothing(self, comm: Communication, topic: str) -> None:
        sources = [reports(comm, topic), headlines(comm, topic)]
        try:
            found = [await answer for answer in asyncio.as_completed(sources)]
        except MupError as error:
            comm.respond({"error": str(error)}, status=502)
            return
        comm.respond(found)

    @EP("/digest/calls", method="GET")
    async def calls(self, comm: Communication, topic: str) -> None:
        sources = [
            comm.call("Papers", "/headlines", {"topic": topic}),
            comm.call("Wire", "/latest", {"topic": topic}),
        ]
        comm.respond([await answer for answer in asyncio.as_completed(sources)])

    @EP("/digest/wait", method="GET")
    async def wait(self, comm: Communication, topic: str) -> None:
        tasks = {asyncio.create_task(reports(comm, topic)), asyncio.create_task(headlines(comm, topic))}
        done, pending = await asyncio.wait(tasks, return_when=asyncio.ALL_COMPLETED)
        assert not pending
        comm.respond([task.result() for task in done if task.exception() is None])

    @EP("/digest/set", method="GET")
    async def gathered_set(self, comm: Communication, topic: str, old: bool = False) -> None:
        tasks = set()
        tasks.add(asyncio.create_task(headlines(comm, topic)))
        tasks.add(asyncio.create_task(reports(comm, topic)))
        if old:
            tasks.add(asyncio.create_task(archived(comm, topic)))
        comm.respond([item for part in await asyncio.gather(*tasks) for item in part])

    @EP("/digest/loop", method="GET")
    async def loop(self, comm: Communication, topic: str) -> None:
        tasks = {asyncio.create_task(source(comm, topic)) for source in (reports, headlines, archived)}
        found = []
        for task in tasks:
            found.append(await task)
        comm.respond(found)

    @EP("/digest/exception", method="GET")
    async def exception(self, comm: Communication, topic: str) -> None:
        tasks = [asyncio.create_task(reports(comm, topic)), asyncio.create_task(headlines(comm, topic))]
        done, _ = await asyncio.wait(tasks)
        try:
            comm.respond([task.result() for task in done])
        except MupError as error:
            comm.respond({"error": str(error)}, status=502)

    @EP("/topics", method="POST")
    async def topics(self, comm: Communication, topics: list[str]) -> None:
        found = {}
        for answer in asyncio.as_completed([archived(comm, topic) for topic in topics]):
            for article in await answer:
                found[article["id"]] = article
        comm.respond(list(found.values()))

    @EP("/topics/tolerant", method="POST")
    async def topics_tolerant(self, comm: Communication, topics: list[str]) -> None:
        tasks = [asyncio.create_task(headlines(comm, topic)) for topic in topics[:8]]
        found, failed = [], 0
        for task in asyncio.as_completed(tasks):
            try:
                found.append(await task)
            except MupError:
                failed += 1
        comm.respond({"found": found, "failed": failed})

    @EP("/topics/calls", method="POST")
    async def topics_calls(self, comm: Communication, topics: list[str]) -> None:
        answers = [comm.call("Papers", "/headlines", {"topic": topic}) for topic in topics]
        comm.respond([await answer for answer in asyncio.as_completed(answers)])

    @EP("/topics/wait", method="POST")
    async def topics_wait(self, comm: Communication, topics: list[str]) -> None:
        if not topics:
            comm.respond([])
            return
        tasks = set()
        for topic in topics:
            tasks.add(asyncio.create_task(reports(comm, topic)))
        done, _ = await asyncio.wait(tasks)
        comm.respond([task.result() for task in done if not task.exception()])

    @EP("/topics/first", method="POST")
    async def topics_first(self, comm: Communication, topics: list[str]) -> None:
        for answer in asyncio.as_completed([archived(comm, topic) for topic in topics]):
            found = await answer
            if found:
                comm.respond(found)
                return
        comm.respond(None, status=404)

    @EP("/topics/in-turn", method="POST")
    async def topics_in_turn(self, comm: Communication, topics: list[str]) -> None:
        """What `/topics/first` can be instead."""
        for topic in topics:
            found = await archived(comm, topic)
            if found:
                comm.respond(found)
                return
        comm.respond(None, status=404)

    @EP("/first", method="GET")
    async def first(self, comm: Communication, topic: str) -> None:
        tasks = {asyncio.create_task(reports(comm, topic)), asyncio.create_task(archived(comm, topic))}
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        comm.respond(done.pop().result())

    @EP("/first/completed", method="GET")
    async def first_completed(self, comm: Communication, topic: str) -> None:
        for answer in asyncio.as_completed([reports(comm, topic), archived(comm, topic)]):
            found = await answer
            if found:
                break
        comm.respond(found)

    @EP("/first/in-turn", method="GET")
    async def first_in_turn(self, comm: Communication, topic: str) -> None:
        """What `/first` can be instead."""
        for source in (archived, reports):
            try:
                comm.respond(await asyncio.wait_for(source(comm, topic), 0.2))
            except (TimeoutError, MupError):
                continue
            return
        comm.respond(None, status=504)

    @EP("/drain", method="GET")
    async def drain(self, comm: Communication, topic: str) -> None:
        """Each as it ends, by hand."""
        pending = {asyncio.create_task(reports(comm, topic)), asyncio.create_task(archived(comm, topic))}
        found = []
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            found += [task.result() for task in done if not task.exception()]
        comm.respond(found)

    @EP("/late", method="GET")
    async def late(self, comm: Communication, topic: str) -> None:
        tasks = [asyncio.create_task(reports(comm, topic)), asyncio.create_task(archived(comm, topic))]
        done, late = await asyncio.wait(tasks, timeout=0.3)
        for task in late:
            task.cancel()
        comm.respond([task.result() for task in done if not task.exception()], status=206 if late else 200)

    @EP("/late/timeout", method="GET")
    async def late_timeout(self, comm: Communication, topic: str) -> None:
        """What `/late` can be instead."""
        try:
            async with asyncio.timeout(0.3):
                found = await asyncio.gather(
                    reports(comm, topic), archived(comm, topic), return_exceptions=True
                )
        except TimeoutError:
            comm.respond([], status=504)
        else:
            comm.respond([part for part in found if not isinstance(part, BaseException)])

    @EP("/set-of-calls", method="GET")
    async def set_of_calls(self, comm: Communication, topic: str) -> None:
        answers = set()
        answers.add(comm.call("Papers", "/headlines", {"topic": topic}))
        answers.add(comm.call("Wire", "/latest", {"topic": topic}))
        comm.respond([await answer for answer in answers])
