import asyncio
import logging
from typing import Any

from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError, MupError

log = logging.getLogger(__name__)

MOST_AT_ONCE = 4


def batches(items: list, size: int):
    for start in range(0, len(items), size):
        yield items[start : start + size]


async def profile_of(comm: Communication, user: str) -> dict[str, Any]:
    return await comm.call("Profiles", "/profiles/{id}", {"id": user})


async def profile_or_none(comm: Communication, user: str) -> dict[str, Any] | None:
    try:
        return await profile_of(comm, user)
    except MupError:
        log.warning("no profile of %s", user)
        return None


async def with_likes(comm: Communication, post: dict[str, Any]) -> dict[str, Any]:
    likes = await comm.call("Likes", "/count", {"post": post["id"]})
    return {**post, "likes": likes["count"]}


class Feed(MS):
    runtime = "async"
    pool_size = 64

    @EP("/friends", method="POST")
    async def friends(self, comm: Communication, ids: list[str]) -> None:
        profiles = await asyncio.gather(*[comm.call("Profiles", "/profiles/{id}", {"id": i}) for i in ids])
        comm.respond(profiles)

    @EP("/friends/helper", method="POST")
    async def friends_helper(self, comm: Communication, ids: list[str]) -> None:
        comm.respond(await asyncio.gather(*(profile_of(comm, i) for i in ids)))

    @EP("/friends/tolerant", method="POST")
    async def friends_tolerant(self, comm: Communication, ids: list[str]) -> None:
        found = await asyncio.gather(*(profile_of(comm, i) for i in ids), return_exceptions=True)
        comm.respond([p for p in found if not isinstance(p, BaseException)])

    @EP("/friends/none", method="POST")
    async def friends_none(self, comm: Communication, ids: list[str]) -> None:
        found = await asyncio.gather(*[profile_or_none(comm, i) for i in ids])
        comm.respond(list(filter(None, found)))

    @EP("/friends/few", method="POST")
    async def friends_few(self, comm: Communication, ids: list[str]) -> None:
        """No more than five."""
        tasks = [profile_of(comm, i) for i in ids[:5]]
        comm.respond(await asyncio.gather(*tasks))

    @EP("/friends/group", method="POST")
    async def friends_group(self, comm: Communication, ids: list[str]) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(profile_of(comm, i)) for i in ids]
        comm.respond([t.result() for t in tasks])

    @EP("/friends/tasks", method="POST")
    async def friends_tasks(self, comm: Communication, ids: list[str]) -> None:
        tasks = []
        for i in ids:
            tasks.append(asyncio.create_task(profile_of(comm, i)))
        profiles = {}
        for i, task in zip(ids, tasks, strict=True):
            profiles[i] = await task
        comm.respond(profiles)

    @EP("/friends/by-id", method="POST")
    async def friends_by_id(self, comm: Communication, ids: list[str]) -> None:
        tasks = {i: asyncio.create_task(profile_or_none(comm, i)) for i in ids}
        comm.respond({i: await task for i, task in tasks.items()})

    @EP("/friends/bounded", method="POST")
    async def friends_bounded(self, comm: Communication, ids: list[str]) -> None:
        limit = asyncio.Semaphore(MOST_AT_ONCE)

        async def one(user: str):
            async with limit:
                return await profile_of(comm, user)

        comm.respond(await asyncio.gather(*map(one, ids)))

    @EP("/friends/batches", method="POST")
    async def friends_batches(self, comm: Communication, ids: list[str]) -> None:
        profiles = []
        for batch in batches(ids, MOST_AT_ONCE):
            profiles += await asyncio.gather(*(profile_of(comm, i) for i in batch))
        comm.respond(profiles)

    @EP("/friends/completed", method="POST")
    async def friends_completed(self, comm: Communication, ids: list[str]) -> None:
        found = []
        for done in asyncio.as_completed([profile_or_none(comm, i) for i in ids]):
            profile = await done
            if profile is not None:
                found.append(profile)
        comm.respond(found)

    @EP("/friends/first", method="POST")
    async def friends_first(self, comm: Communication, ids: list[str]) -> None:
        """Take the first answer."""
        if not ids:
            comm.respond(None, status=404)
            return
        tasks = [asyncio.create_task(profile_or_none(comm, i)) for i in ids]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        comm.respond(next(iter(done)).result())

    @EP("/friends/wait", method="POST")
    async def friends_wait(self, comm: Communication, ids: list[str]) -> None:
        if not ids:
            comm.respond([])
            return
        done, late = await asyncio.wait(
            {asyncio.create_task(profile_or_none(comm, i)) for i in ids}, timeout=0.5
        )
        for task in late:
            task.cancel()
        comm.respond([t.result() for t in done], status=200 if not late else 206)

    @EP("/friends/one-by-one", method="POST")
    async def friends_one_by_one(self, comm: Communication, ids: list[str]) -> None:
        profiles = []
        for i in ids:
            profiles.append(await profile_of(comm, i))
        comm.respond(profiles)

    @EP("/friends/comprehension", method="POST")
    async def friends_comprehension(self, comm: Communication, ids: list[str]) -> None:
        comm.respond([p async for p in self._profiles(comm, ids)])

    async def _profiles(self, comm, ids):
        for i in ids:
            try:
                yield await profile_of(comm, i)
            except CallError as error:
                if error.status != 404:
                    raise

    @EP("/home/{user}", method="GET")
    async def home(self, comm: Communication, user: str) -> None:
        profile, posts = await asyncio.gather(
            comm.call("Profiles", "/profiles/{id}", {"id": user}),
            comm.call("Posts", "/timeline/{user}", {"user": user}),
        )
        comm.respond({"profile": profile, "posts": posts})

    @EP("/home/{user}/likes", method="GET")
    async def likes(self, comm: Communication, user: str) -> None:
        posts = await comm.call("Posts", "/timeline/{user}", {"user": user})
        comm.respond(await asyncio.gather(*[with_likes(comm, p) for p in posts]))

    @EP("/home/{user}/full", method="GET")
    async def full(self, comm: Communication, user: str) -> None:
        async with asyncio.TaskGroup() as group:
            profile = group.create_task(profile_of(comm, user))
            posts = group.create_task(self._posts(comm, user))
        comm.respond({"profile": profile.result(), "posts": posts.result()})

    async def _posts(self, comm, user):
        posts = await comm.call("Posts", "/timeline/{user}", {"user": user})
        return posts[:10]

    @EP("/home/{user}/partial", method="GET")
    async def partial(self, comm: Communication, user: str) -> None:
        profile, posts = await asyncio.gather(
            profile_of(comm, user), self._posts(comm, user), return_exceptions=True
        )
        page = {}
        if not isinstance(profile, Exception):
            page["profile"] = profile
        if not isinstance(posts, Exception):
            page["posts"] = posts
        comm.respond(page, status=200 if page else 502)

    @EP("/post", method="POST")
    async def post(self, comm: Communication, user: str, text: str, followers: list[str] = []) -> None:
        """Store, respond, and notify in the background."""
        await comm.query("posts", "insert", "posts", {"$insert": [{"user": user, "text": text}]})
        comm.respond({"user": user}, status=201)
        await asyncio.gather(
            *[comm.call("Push", "/notify", {"to": f}) for f in followers], return_exceptions=True
        )

    @EP("/post/fire", method="POST")
    async def fire(self, comm: Communication, user: str, followers: list[str] = []) -> None:
        for follower in followers:
            comm.call("Push", "/notify", {"to": follower, "from": user})
        comm.respond(None, status=202)

    @EP("/hedged/{user}", method="GET")
    async def hedged(self, comm: Communication, user: str) -> None:
        """Ask again if the answer takes too long."""
        first = asyncio.create_task(profile_of(comm, user))
        try:
            profile = await asyncio.wait_for(asyncio.shield(first), 0.1)
        except TimeoutError:
            second = asyncio.create_task(profile_of(comm, user))
            done, pending = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()
            profile = done.pop().result()
        comm.respond(profile)

    @EP("/workers", method="POST")
    async def workers(self, comm: Communication, ids: list[str]) -> None:
        """Three workers take what is to be done from a queue."""
        queue = asyncio.Queue()
        for i in ids:
            queue.put_nowait(i)
        found = []

        async def worker():
            while not queue.empty():
                found.append(await profile_or_none(comm, queue.get_nowait()))

        await asyncio.gather(*(worker() for _ in range(3)))
        comm.respond(found)

    @EP("/search", method="GET")
    async def search(self, comm: Communication, q: str, where: str = "all") -> None:
        lookups = {
            "people": lambda: comm.query("users", "search", "profiles", {"name": q}),
            "posts": lambda: comm.query("posts", "search", "posts", {"text": q}),
        }
        names = list(lookups) if where == "all" else [where]
        try:
            results = await asyncio.gather(*(lookups[n]() for n in names))
        except KeyError:
            comm.respond({"error": "no such index"}, status=400)
            return
        except CommunicationError:
            comm.respond({"error": "search is not available"}, status=503)
            return
        comm.respond(dict(zip(names, results, strict=True)))
