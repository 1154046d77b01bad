"""Endpoints that ask for many things at once, in the shapes in which people write that."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

from mup import EP, MS
from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError


class Lists(MS):
    @EP("/sum")
    def sum_(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        for f in first + second:
            f.get()
        comm.respond({})

    @EP("/chain")
    def chain(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        comm.respond([f.get() for f in itertools.chain(first, second)])

    @EP("/display")
    def display(self, comm):
        user = comm.call("Backend", "/user")
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        total = 0
        for f in [user, *first]:
            total += len(f.get() or {})
        comm.respond(total)

    @EP("/appended")
    def appended(self, comm):
        waiting = [comm.call("Backend", "/user")]
        for i in comm.params.get("ids", []):
            waiting.append(comm.call("Backend", "/a", {"i": i}))
        waiting.append(comm.call("Backend", "/log"))
        comm.respond([f.get() for f in waiting])

    @EP("/appended/two")
    def appended_two(self, comm):
        waiting = []
        for i in comm.params.get("ids", []):
            waiting.append(comm.call("Backend", "/a", {"i": i}))
        for i in comm.params.get("more", []):
            waiting.append(comm.call("Backend", "/b", {"i": i}))
        comm.respond([f.get() for f in waiting])

    @EP("/extended")
    def extended(self, comm):
        waiting = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        waiting.extend(comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", []))
        waiting += [comm.call("Backend", "/c")]
        comm.respond([f.get() for f in waiting])

    @EP("/caught")
    def caught(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        try:
            replies = [f.get() for f in first + second]
        except CallError:
            comm.respond({}, 502)
            return
        comm.respond(replies)

    @EP("/each/caught")
    def each_caught(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        failed = 0
        for f in itertools.chain(first, second):
            try:
                f.get()
            except CallError:
                failed += 1
        comm.respond(failed)

    @EP("/left")
    def left(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        for f in first + second:
            if not f.get():
                break
        comm.respond({})

    @EP("/between")
    def between(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        for f in first + second:
            f.get()
            comm.call("Backend", "/log").get()
        comm.respond({})

    @EP("/same")
    def same(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        for f in first + first:
            f.get()
        comm.respond({})

    @EP("/from_iterable")
    def from_iterable(self, comm):
        groups = [
            [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])],
            [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])],
        ]
        for f in itertools.chain.from_iterable(groups):
            f.get()
        comm.respond({})

    @EP("/tagged")
    def tagged(self, comm):
        waiting = [("a", comm.call("Backend", "/a", {"i": i})) for i in comm.params.get("ids", [])]
        waiting += [("b", comm.call("Backend", "/b", {"i": i})) for i in comm.params.get("more", [])]
        out = {}
        for kind, f in waiting:
            out.setdefault(kind, []).append(f.get())
        comm.respond(out)


class Early(MS):
    @EP("/break")
    def leave(self, comm):
        asked = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        found = None
        for f in asked:
            found = f.get()
            if found:
                break
        comm.respond(found)

    @EP("/return")
    def returned(self, comm):
        asked = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        user = comm.call("Backend", "/user")
        for f in asked:
            if not f.get():
                comm.call("Backend", "/log", user.get()).get()
                comm.respond({}, 409)
                return
        comm.respond(user.get())

    @EP("/any")
    def some(self, comm):
        user = comm.call("Backend", "/user")
        asked = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        if any(f.get() for f in asked):
            comm.call("Backend", "/log").get()
        comm.respond(user.get())

    @EP("/all")
    def every(self, comm):
        asked = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        try:
            good = all((f.get() or {}).get("ok") for f in asked)
        except CallError:
            comm.respond({}, 502)
            return
        comm.respond({"good": good})

    @EP("/caught")
    def caught(self, comm):
        asked = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        for i, f in asked.items():
            try:
                f.get()
            except CallError:
                comm.respond({"failed": i}, 502)
                return
        comm.respond(len(asked))

    @EP("/raise")
    def raised(self, comm):
        asked = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        try:
            for i, f in enumerate(asked):
                if not f.get():
                    comm.call("Backend", "/log", {"i": i}).get()
                    raise ValueError(i)
        except ValueError:
            comm.respond({}, 409)
            return
        comm.respond({})

    @EP("/else")
    def otherwise(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        for f in first:
            if f.get():
                break
        else:
            comm.call("Backend", "/log").get()
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        comm.respond([f.get() for f in second])

    @EP("/others")
    def others(self, comm):
        asked = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        for f in asked:
            if f.get():
                break
        comm.respond([f.get() for f in asked])


class Gathers(MS):
    runtime = "async"

    @EP("/pairs")
    async def pairs(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        replies = await asyncio.gather(*first, *second)
        comm.respond(len(replies))

    @EP("/pairs/sum")
    async def pairs_sum(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        replies = await asyncio.gather(*(first + second))
        comm.respond(replies[: len(first)])

    @EP("/pairs/list")
    async def pairs_list(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        replies = await asyncio.gather(*[*first, *second], return_exceptions=True)
        comm.respond([r for r in replies if not isinstance(r, Exception)])

    @EP("/pairs/coro")
    async def pairs_coro(self, comm):
        async def one(i):
            return await comm.call("Backend", "/a", {"i": i})

        async def two(i):
            reply = await comm.call("Backend", "/b", {"i": i})
            return await comm.call("Backend", "/c", reply)

        ids = comm.params.get("ids", [])
        replies = await asyncio.gather(*[one(i) for i in ids], *[two(i) for i in ids])
        comm.respond(replies)

    @EP("/pairs/caught")
    async def pairs_caught(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        try:
            replies = await asyncio.gather(*first, *second)
        except CallError:
            await comm.call("Backend", "/log")
            comm.respond({}, 502)
            return
        comm.respond(replies)

    @EP("/one-and")
    async def one_and(self, comm):
        user, *orders = await asyncio.gather(
            comm.call("Backend", "/user"),
            *(comm.call("Backend", "/order", {"i": i}) for i in comm.params.get("ids", [])),
        )
        comm.respond({"user": user, "n": len(orders)})

    @EP("/one-and/tasks")
    async def one_and_tasks(self, comm):
        async def one(i):
            return await comm.call("Backend", "/a", {"i": i})

        user = asyncio.create_task(comm.call("Backend", "/user"))
        tasks = [asyncio.create_task(one(i)) for i in comm.params.get("ids", [])]
        try:
            await asyncio.gather(user, *tasks)
        except MupError:
            comm.respond({}, 502)
            return
        comm.respond({"user": user.result(), "n": len(tasks)})

    @EP("/one-and/coro")
    async def one_and_coro(self, comm):
        async def one(i):
            reply = await comm.call("Backend", "/a", {"i": i})
            return await comm.call("Backend", "/b", reply)

        try:
            *orders, user = await asyncio.gather(
                *(one(i) for i in comm.params.get("ids", [])), comm.call("Backend", "/user")
            )
        except MupError:
            comm.respond({}, 502)
            return
        comm.respond([user, orders])

    @EP("/limited/begun")
    async def limited_begun(self, comm):
        gate = asyncio.Semaphore(2)

        async def run(job):
            async with gate:
                return await job

        ids = comm.params.get("ids", [])
        calls = (comm.call("Backend", "/a", {"i": i}) for i in ids)
        replies = await asyncio.gather(*(run(call) for call in calls), return_exceptions=True)
        comm.respond(len(replies))

    @EP("/three")
    async def three(self, comm):
        async def load(path):
            return await comm.call("Backend", "/user")

        async def one(i):
            reply = await comm.call("Backend", "/a", {"i": i})
            return await comm.call("Backend", "/b", reply)

        replies = await asyncio.gather(
            load("/x"),
            *map(one, comm.params.get("ids", [])),
            comm.call("Backend", "/c"),
            return_exceptions=True,
        )
        comm.respond(len(replies))

    @EP("/built")
    async def built(self, comm):
        waits = [comm.call("Backend", "/user")]
        if comm.params.get("flag"):
            waits.append(comm.call("Backend", "/log"))
        for i in comm.params.get("ids", []):
            waits.append(comm.call("Backend", "/a", {"i": i}))
        user, *rest = await asyncio.gather(*waits)
        comm.respond([user, rest])

    @EP("/wait")
    async def wait(self, comm):
        async def one(i):
            return await comm.call("Backend", "/a", {"i": i})

        async def two(i):
            return await comm.call("Backend", "/b", {"i": i})

        tasks = [asyncio.create_task(one(i)) for i in comm.params.get("ids", [])]
        more = [asyncio.create_task(two(i)) for i in comm.params.get("more", [])]
        if tasks or more:
            await asyncio.wait(tasks + more)
        comm.respond([t.result() for t in tasks if not t.exception()])

    @EP("/awaited")
    async def awaited(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        comm.respond([await f for f in (*first, *second)])

    @EP("/later")
    async def later(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        both = asyncio.gather(comm.call("Backend", "/user"), *first)
        await comm.call("Backend", "/log")
        comm.respond(await both)

    @EP("/timeout")
    async def timeout(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        try:
            async with asyncio.timeout(1):
                replies = await asyncio.gather(*first, *second)
        except TimeoutError:
            comm.respond({}, 504)
            return
        comm.respond(replies)

    @EP("/nested")
    async def nested(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        a, b = await asyncio.gather(asyncio.gather(*first), asyncio.gather(*second))
        comm.respond([a, b])


class Groups(MS):
    runtime = "async"

    async def _one(self, comm, path):
        return await comm.call("Backend", path)

    @EP("/group2")
    async def group2(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(comm, "/a")) for _ in comm.params.get("ids", [])]
        except ExceptionGroup:
            comm.respond({}, 502)
            return
        comm.respond([t.result() for t in tasks])

    @EP("/star")
    async def star(self, comm):
        tasks = []
        try:
            async with asyncio.TaskGroup() as group:
                for _ in comm.params.get("ids", []):
                    tasks.append(group.create_task(self._one(comm, "/a")))
        except* CallError:
            pass
        comm.respond(len(tasks))

    @EP("/exception")
    async def exception(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {i: group.create_task(self._one(comm, "/a")) for i in comm.params.get("ids", [])}
        except Exception:
            await comm.call("Backend", "/log")
            comm.respond({}, 502)
            return
        comm.respond({i: t.result() for i, t in tasks.items()})

    @EP("/mixed")
    async def mixed(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                user = group.create_task(self._one(comm, "/user"))
                tasks = [group.create_task(self._one(comm, "/a")) for i in comm.params.get("ids", [])]
        except ExceptionGroup:
            comm.respond({}, 502)
            return
        comm.respond([user.result(), [t.result() for t in tasks]])

    @EP("/mixed/behind")
    async def mixed_behind(self, comm):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(comm, "/a")) for i in comm.params.get("ids", [])]
            user = group.create_task(self._one(comm, "/user"))
        comm.respond([user.result(), [t.result() for t in tasks]])

    @EP("/two")
    async def two(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                first = [group.create_task(self._one(comm, "/a")) for i in comm.params.get("ids", [])]
                second = [group.create_task(comm.call("Backend", "/b")) for i in comm.params.get("more", [])]
        except ExceptionGroup as errors:
            comm.respond(len(errors.exceptions), 502)
            return
        comm.respond([t.result() for t in first + second])

    @EP("/plain")
    async def plain(self, comm):
        async with asyncio.TaskGroup() as group:
            for _ in comm.params.get("ids", []):
                group.create_task(self._one(comm, "/a"))
        comm.respond({})

    @EP("/raised")
    async def raised(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                for i in comm.params.get("ids", []):
                    group.create_task(self._one(comm, "/a"))
                if comm.params.get("flag"):
                    raise ValueError("flag")
        except ExceptionGroup:
            comm.respond({}, 502)
            return
        comm.respond({})

    @EP("/body")
    async def body(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(comm, "/a")) for i in comm.params.get("ids", [])]
                await comm.call("Backend", "/user")
        except ExceptionGroup:
            comm.respond({}, 502)
            return
        comm.respond([t.result() for t in tasks])

    @EP("/inside")
    async def inside(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(comm, "/a")) for i in comm.params.get("ids", [])]
                replies = [await t for t in tasks]
        except ExceptionGroup:
            comm.respond({}, 502)
            return
        comm.respond(replies)

    @EP("/timeout")
    async def timeout(self, comm):
        try:
            async with asyncio.timeout(1), asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(comm, "/a")) for i in comm.params.get("ids", [])]
        except (TimeoutError, ExceptionGroup):
            comm.respond({}, 502)
        else:
            comm.respond([t.result() for t in tasks])

    @EP("/gathered/local")
    async def gathered_local(self, comm):
        try:
            tasks = [asyncio.create_task(self._one(comm, "/a")) for i in comm.params.get("ids", [])]
            replies = await asyncio.gather(*tasks)
        except Exception:
            comm.respond({}, 502)
            return
        comm.respond(replies)


class Dicts(MS):
    runtime = "async"

    async def _one(self, comm, i):
        return await comm.call("Backend", "/a", {"i": i})

    @EP("/dedupe")
    async def dedupe(self, comm):
        ids = list(dict.fromkeys(comm.params.get("ids", [])))
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in ids}
        replies = dict(zip(calls, await asyncio.gather(*calls.values())))
        comm.respond(len(replies))

    @EP("/keys")
    async def keys(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        replies = await asyncio.gather(*calls.values())
        comm.respond(dict(zip(calls.keys(), replies, strict=True)))

    @EP("/zip/ids")
    async def zip_ids(self, comm):
        ids = comm.params.get("ids", [])
        calls = {i: self._one(comm, i) for i in ids}
        replies = await asyncio.gather(*calls.values(), return_exceptions=True)
        comm.respond({i: r for i, r in zip(ids, replies) if not isinstance(r, Exception)})

    @EP("/items")
    async def items(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        comm.respond({k: await f for k, f in calls.items()})

    @EP("/loop")
    async def loop(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        replies = await asyncio.gather(*calls.values())
        out = {}
        for key, reply in zip(calls, replies):
            out[key] = reply
        comm.respond(out)

    @EP("/looked")
    async def looked(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        out = {}
        for i in calls:
            out[i] = await calls[i]
        comm.respond(out)

    @EP("/looked/comp")
    async def looked_comp(self, comm):
        tasks = {i: asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])}
        comm.respond({i: await tasks[i] for i in tasks.keys()})

    @EP("/sorted")
    async def sorted_(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        await asyncio.gather(*calls.values())
        names = sorted(calls)
        comm.respond([list(calls), names, ",".join(calls), len(calls)])

    @EP("/over")
    async def over(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        for i in calls:
            await comm.call("Backend", "/log", {"i": i})
        await asyncio.gather(*calls.values())
        comm.respond({})

    @EP("/tasks/keys")
    async def tasks_keys(self, comm):
        tasks = {asyncio.create_task(self._one(comm, i)): i for i in comm.params.get("ids", [])}
        out = {}
        for task, i in tasks.items():
            out[i] = await task
        comm.respond(out)

    @EP("/tasks/keys/wait")
    async def tasks_keys_wait(self, comm):
        tasks = {asyncio.create_task(self._one(comm, i)): i for i in comm.params.get("ids", [])}
        if tasks:
            done, _ = await asyncio.wait(tasks)
            comm.respond({tasks[t]: t.result() for t in done if not t.exception()})
            return
        comm.respond({})

    @EP("/tasks/keys/known")
    async def tasks_keys_known(self, comm):
        tasks = {comm.call("Backend", "/a"): "a", comm.call("Backend", "/b"): "b"}
        out = {}
        for task, i in tasks.items():
            out[i] = await task
        comm.respond(out)

    @EP("/tasks/keys/for")
    async def tasks_keys_for(self, comm):
        tasks = {comm.call("Backend", "/a", i): i for i in comm.params.get("ids", [])}
        for t in tasks:
            await t
        comm.respond({})

    @EP("/keyed/set")
    async def keyed_set(self, comm):
        tasks = {}
        for i in comm.params.get("ids", []):
            tasks[comm.call("Backend", "/a", i)] = i
        for t in tasks:
            await t
        comm.respond({})

    @EP("/update")
    async def update(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        calls["user"] = comm.call("Backend", "/user")
        replies = dict(zip(calls, await asyncio.gather(*calls.values())))
        comm.respond(replies)

    @EP("/guarded")
    async def guarded(self, comm):
        calls = {}
        for i in comm.params.get("ids", []):
            if i not in calls:
                calls[i] = comm.call("Backend", "/a", {"i": i})
        replies = dict(zip(calls, await asyncio.gather(*calls.values())))
        comm.respond(replies)

    @EP("/fromkeys")
    async def fromkeys(self, comm):
        ids = set(comm.params.get("ids", []))
        tasks = [asyncio.create_task(self._one(comm, i)) for i in ids]
        comm.respond(dict(zip(ids, await asyncio.gather(*tasks), strict=True)))

    @EP("/dict/zip")
    async def dict_zip(self, comm):
        ids = comm.params.get("ids", [])
        calls = dict(zip(ids, [comm.call("Backend", "/a", {"i": i}) for i in ids]))
        comm.respond({i: await f for i, f in calls.items()})

    @EP("/dict/pairs")
    async def dict_pairs(self, comm):
        ids = comm.params.get("ids", [])
        calls = dict((i, comm.call("Backend", "/a", {"i": i})) for i in ids)
        replies = await asyncio.gather(*calls.values())
        comm.respond(dict(zip(calls, replies)))


class Completed(MS):
    runtime = "async"

    async def _one(self, comm, i):
        return await comm.call("Backend", "/a", {"i": i})

    async def _two(self, comm, i):
        reply = await comm.call("Backend", "/b", {"i": i})
        return await comm.call("Backend", "/c", reply)

    @EP("/caught")
    async def caught(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        good = failed = 0
        for task in asyncio.as_completed(tasks):
            try:
                await task
            except CallError:
                failed += 1
                continue
            good += 1
        comm.respond([good, failed])

    @EP("/suppressed")
    async def suppressed(self, comm):
        tasks = [asyncio.create_task(self._two(comm, i)) for i in comm.params.get("ids", [])]
        out = []
        for task in asyncio.as_completed(tasks):
            with contextlib.suppress(CallError, CommunicationError):
                out.append(await task)
        comm.respond(out)

    @EP("/around")
    async def around(self, comm):
        tasks = [asyncio.create_task(self._two(comm, i)) for i in comm.params.get("ids", [])]
        out = []
        try:
            for task in asyncio.as_completed(tasks):
                out.append(await task)
        except CallError:
            for task in tasks:
                task.cancel()
            comm.respond({}, 502)
            return
        comm.respond(out)

    @EP("/finally")
    async def finally_(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        out = []
        try:
            for task in asyncio.as_completed(tasks):
                out.append(await task)
        finally:
            for task in tasks:
                task.cancel()
        comm.respond(out)

    @EP("/timeout")
    async def timeout(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        out = []
        try:
            for task in asyncio.as_completed(tasks, timeout=1):
                out.append(await task)
        except TimeoutError:
            for task in tasks:
                task.cancel()
        comm.respond(out)

    @EP("/enumerated")
    async def enumerated(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        for n, task in enumerate(asyncio.as_completed(tasks), 1):
            reply = await task
            print(n, reply)
        comm.respond({})

    @EP("/set")
    async def set_(self, comm):
        tasks = {asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])}
        out = [await t for t in asyncio.as_completed(tasks)]
        comm.respond(out)

    @EP("/two")
    async def two(self, comm):
        first = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        second = [asyncio.create_task(self._two(comm, i)) for i in comm.params.get("more", [])]
        out = []
        for task in asyncio.as_completed(first + second):
            try:
                out.append(await task)
            except MupError as error:
                out.append(str(error))
        comm.respond(out)

    @EP("/mixed")
    async def mixed(self, comm):
        user = asyncio.create_task(comm.call("Backend", "/user"))
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        out = []
        for task in asyncio.as_completed([user, *tasks]):
            try:
                out.append(await task)
            except MupError:
                continue
        comm.respond(out)

    @EP("/coros")
    async def coros(self, comm):
        out = []
        for coro in asyncio.as_completed([self._two(comm, i) for i in comm.params.get("ids", [])]):
            try:
                out.append(await coro)
            except CallTimeoutError:
                out.append(None)
            except CallError as error:
                if error.status == 404:
                    continue
                raise
        comm.respond(out)

    @EP("/cleanup")
    async def cleanup(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        try:
            for task in asyncio.as_completed(tasks):
                await task
        except CallError:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            comm.respond({}, 502)
            return
        comm.respond({})

    @EP("/first")
    async def first(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        for task in asyncio.as_completed(tasks):
            reply = await task
            if reply:
                break
        comm.respond({})

    @EP("/grown")
    async def grown(self, comm):
        tasks = []
        for i in comm.params.get("ids", []):
            tasks.append(asyncio.create_task(self._two(comm, i)))
        out = []
        for task in asyncio.as_completed(tasks):
            try:
                out.append(await task)
            except Exception:
                out.append(None)
        comm.respond(out)

    @EP("/wait/loop")
    async def wait_loop(self, comm):
        tasks = [asyncio.create_task(self._two(comm, i)) for i in comm.params.get("ids", [])]
        out = []
        if tasks:
            done, _ = await asyncio.wait(tasks)
            for task in done:
                try:
                    out.append(task.result())
                except CallError:
                    continue
        comm.respond(out)


class Sums(MS):
    def _all(self, futures):
        return [f.get() for f in futures]

    def _asked(self, comm, path, ids):
        return [comm.call("Backend", path, {"i": i}) for i in ids]

    @EP("/helper")
    def helper(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        comm.respond(self._all(first + second))

    @EP("/helper/both")
    def helper_both(self, comm):
        first = self._asked(comm, "/a", comm.params.get("ids", []))
        second = self._asked(comm, "/b", comm.params.get("more", []))
        comm.respond(self._all(first + second))

    @EP("/numbered")
    def numbered(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        comm.respond({n: f.get() for n, f in enumerate([*first, *second])})

    @EP("/named")
    def named(self, comm):
        ids, more = comm.params.get("ids", []), comm.params.get("more", [])
        first = [comm.call("Backend", "/a", {"i": i}) for i in ids]
        second = [comm.call("Backend", "/b", {"i": i}) for i in more]
        out = {}
        for name, f in zip(ids + more, first + second, strict=True):
            try:
                out[name] = f.get()
            except CallError as error:
                out[name] = error.status
        comm.respond(out)

    @EP("/summed")
    def summed(self, comm):
        user = comm.call("Backend", "/user")
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        comm.respond(sum(len(f.get()) for f in itertools.chain([user], first)))

    @EP("/behind")
    def behind(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        last = comm.call("Backend", "/log")
        try:
            for f in [*first, last]:
                f.get()
        except MupError:
            comm.call("Backend", "/c").get()
        comm.respond({})

    @EP("/before/caught")
    def before_caught(self, comm):
        user = comm.call("Backend", "/user")
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        try:
            for f in [user, *first]:
                f.get()
        except MupError:
            comm.call("Backend", "/c").get()
        comm.respond({})

    @EP("/inserted")
    def inserted(self, comm):
        waits = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        waits.insert(0, comm.call("Backend", "/user"))
        comm.respond([f.get() for f in waits])

    @EP("/twice")
    def twice(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        for f in first:
            f.get()
        comm.respond([f.get() for f in first + second])

    @EP("/dropped")
    def dropped(self, comm):
        waits = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])] + [
            comm.call("Backend", "/user")
        ]
        waits.pop()
        comm.respond([f.get() for f in waits])

    @EP("/cleared")
    def cleared(self, comm):
        waits = [comm.call("Backend", "/user")]
        for i in comm.params.get("ids", []):
            waits.append(comm.call("Backend", "/a", {"i": i}))
            if i == "a":
                waits.clear()
        comm.respond([f.get() for f in waits])

    @EP("/some")
    def some(self, comm):
        waits = [comm.call("Backend", "/user")]
        for i in comm.params.get("ids", []):
            if i == "a":
                continue
            waits.append(comm.call("Backend", "/a", {"i": i}))
        comm.respond([f.get() for f in waits])

    @EP("/replaced")
    def replaced(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        calls["a"] = comm.call("Backend", "/b")
        calls["a"] = comm.call("Backend", "/c")
        comm.respond([f.get() for f in calls.values()])

    @EP("/later")
    def later(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        both = itertools.chain(first, [comm.call("Backend", "/b")])
        first.append(comm.call("Backend", "/c"))
        comm.respond([f.get() for f in both])

    @EP("/view")
    def view(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        seen = calls.values()
        calls["user"] = comm.call("Backend", "/user")
        comm.respond([f.get() for f in seen])

    @EP("/half")
    def half(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        for f in (first + second)[:2]:
            f.get()
        comm.respond({})

    @EP("/reversed")
    def reversed_(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        for f in reversed([comm.call("Backend", "/user"), *first]):
            f.get()
        comm.respond({})

    @EP("/keyed")
    def keyed(self, comm):
        names = {comm.call("Backend", "/a", {"i": i}): i for i in comm.params.get("ids", [])}
        comm.respond({names[f]: f.get() for f in names})

    @EP("/keyed/lost")
    def keyed_lost(self, comm):
        names = {comm.call("Backend", "/a", {"i": i}): i for i in comm.params.get("ids", [])}
        names[comm.call("Backend", "/b")] = "b"
        comm.respond({names[f]: f.get() for f in names})

    @EP("/union")
    def union(self, comm):
        first = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        second = {i: comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])}
        comm.respond({i: f.get() for i, f in (first | second).items()})

    @EP("/both/values")
    def both_values(self, comm):
        first = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        second = {i: comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])}
        for f in [*first.values(), *second.values()]:
            f.get()
        comm.respond({})

    @EP("/unset")
    def unset(self, comm):
        calls = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        if not calls:
            comm.respond([])
            return
        comm.respond([f.get() for f in calls])

    @EP("/stopped")
    def stopped(self, comm):
        waits = []
        for i in comm.params.get("ids", []):
            f = comm.call("Backend", "/a", {"i": i})
            waits.append(f)
            if i == "b":
                break
        comm.respond([f.get() for f in waits])

    @EP("/stopped/last")
    def stopped_last(self, comm):
        waits = []
        f = None
        for i in comm.params.get("ids", []):
            f = comm.call("Backend", "/a", {"i": i})
            if i == "b":
                break
            waits.append(f)
        for one in waits:
            one.get()
        if f is not None:
            f.get()
        comm.respond({})


class Tasks(MS):
    runtime = "async"

    async def _one(self, comm, i):
        return await comm.call("Backend", "/a", {"i": i})

    @EP("/shared")
    async def shared(self, comm):
        seen = []

        async def note(i):
            seen.append(await comm.call("Backend", "/a", {"i": i}))

        async def look():
            await comm.call("Backend", "/user")
            if seen:
                await comm.call("Backend", "/log")

        await asyncio.gather(look(), *(note(i) for i in comm.params.get("ids", [])))
        comm.respond({})

    @EP("/shared/early")
    async def shared_early(self, comm):
        seen = []

        async def note(i):
            seen.append(i)
            await comm.call("Backend", "/a", {"i": i})

        async def look():
            if seen:
                await comm.call("Backend", "/log")

        await asyncio.gather(*(note(i) for i in comm.params.get("ids", [])), look())
        comm.respond({})

    @EP("/shared/nonlocal")
    async def shared_nonlocal(self, comm):
        n = 0

        async def look():
            nonlocal n
            await comm.call("Backend", "/user")
            n += 1

        async def note(i):
            if n:
                await comm.call("Backend", "/a", {"i": i})

        await asyncio.gather(look(), *(note(i) for i in comm.params.get("ids", [])))
        comm.respond({})

    @EP("/rounds")
    async def rounds(self, comm):
        for _ in comm.params.get("more", []):
            first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
            await asyncio.gather(comm.call("Backend", "/user"), *first)
        comm.respond({})

    @EP("/rounds/two")
    async def rounds_two(self, comm):
        for _ in comm.params.get("more", []):
            first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
            second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("ids", [])]
            await asyncio.gather(*first, *second)
        comm.respond({})

    @EP("/task")
    async def task(self, comm):
        async def all_():
            first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
            return await asyncio.gather(comm.call("Backend", "/user"), *first)

        t = asyncio.create_task(all_())
        await comm.call("Backend", "/log")
        comm.respond(await t)

    @EP("/limited")
    async def limited(self, comm):
        limit = asyncio.Semaphore(2)

        async def one(i):
            async with limit:
                return await comm.call("Backend", "/a", {"i": i})

        async def two(i):
            async with limit:
                return await comm.call("Backend", "/b", {"i": i})

        ids = comm.params.get("ids", [])
        await asyncio.gather(*map(one, ids), *map(two, ids))
        comm.respond({})

    @EP("/failing")
    async def failing(self, comm):
        async def check(i):
            reply = await comm.call("Backend", "/a", {"i": i})
            if not reply:
                raise ValueError(i)
            await comm.call("Backend", "/b", {"i": i})

        try:
            await asyncio.gather(
                *(check(i) for i in comm.params.get("ids", [])), comm.call("Backend", "/user")
            )
        except ValueError:
            comm.respond({}, 409)
            return
        except MupError:
            comm.respond({}, 502)
            return
        comm.respond({})

    @EP("/wait/for")
    async def wait_for(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        try:
            user, *rest = await asyncio.wait_for(
                asyncio.gather(comm.call("Backend", "/user"), *first), timeout=1
            )
        except TimeoutError:
            comm.respond({}, 504)
            return
        comm.respond([user, rest])

    @EP("/as/keys")
    async def as_keys(self, comm):
        tasks = {asyncio.create_task(self._one(comm, i)): i for i in comm.params.get("ids", [])}
        out = []
        for task in asyncio.as_completed(tasks):
            try:
                out.append(await task)
            except CallError:
                out.append(None)
        comm.respond(out)

    @EP("/if/tasks")
    async def if_tasks(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        if tasks:
            await asyncio.wait(tasks)
        comm.respond([t.result() for t in tasks if not t.exception()])

    @EP("/cancel/some")
    async def cancel_some(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        for n, t in enumerate(tasks):
            if n > 1:
                t.cancel()
        comm.respond([await t for t in tasks])

    @EP("/cancel/all")
    async def cancel_all(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        await comm.call("Backend", "/user")
        for t in tasks:
            t.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        comm.respond({})

    @EP("/cancel/await")
    async def cancel_await(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        await comm.call("Backend", "/user")
        for t in tasks:
            t.cancel()
        for t in tasks:
            try:
                await t
            except asyncio.CancelledError:
                await comm.call("Backend", "/log")
        comm.respond({})

    @EP("/callback")
    async def callback(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                for i in comm.params.get("ids", []):
                    group.create_task(self._one(comm, i))
                    await comm.call("Backend", "/b")
        except* MupError:
            await comm.call("Backend", "/log")
        comm.respond({})

    @EP("/group/finally")
    async def group_finally(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
                await comm.call("Backend", "/user")
        finally:
            await comm.call("Backend", "/log")
        comm.respond([t.result() for t in tasks])

    @EP("/group/return")
    async def group_return(self, comm):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
            if comm.params.get("flag"):
                comm.respond({}, 202)
                return
        comm.respond([t.result() for t in tasks])


class Empty(MS):
    runtime = "async"

    async def _one(self, comm, i):
        return await comm.call("Backend", "/a", {"i": i})

    @EP("/if/tasks")
    async def if_tasks(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        if tasks:
            await asyncio.wait(tasks)
        comm.respond([t.result() for t in tasks if not t.exception()])

    @EP("/unset")
    async def unset(self, comm):
        calls = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        if not calls:
            comm.respond([])
            return
        comm.respond(await asyncio.gather(*calls))

    @EP("/ifexp")
    async def ifexp(self, comm):
        calls = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        user = comm.call("Backend", "/user")
        replies = await asyncio.gather(*calls) if calls else []
        comm.respond([await user, replies])

    @EP("/keys")
    async def keys(self, comm):
        tasks = {asyncio.create_task(self._one(comm, i)): i for i in comm.params.get("ids", [])}
        if tasks:
            done, _ = await asyncio.wait(tasks)
            comm.respond({tasks[t]: t.result() for t in done if not t.exception()})
            return
        comm.respond({})

    @EP("/filtered")
    async def filtered(self, comm):
        calls = []
        for i in comm.params.get("ids", []):
            f = comm.call("Backend", "/a", {"i": i})
            if i != "a":
                calls.append(f)
        if not calls:
            comm.respond([])
            return
        comm.respond(await asyncio.gather(*calls))

    @EP("/two")
    async def two(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        if not first and not second:
            comm.respond({}, 204)
            return
        comm.respond(await asyncio.gather(*first, *second))

    @EP("/or")
    async def or_(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        if first or second:
            await asyncio.gather(*first, *second)
        comm.respond({})

    @EP("/task/behind")
    async def task_behind(self, comm):
        user = comm.call("Backend", "/user")
        calls = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]

        async def load():
            await user
            await comm.call("Backend", "/log")

        t = asyncio.create_task(load())
        if calls:
            await asyncio.gather(*calls)
        await t
        comm.respond({})

    @EP("/loop")
    async def loop(self, comm):
        for _ in comm.params.get("more", []):
            calls = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
            if calls:
                await asyncio.gather(*calls)
        comm.respond({})

    @EP("/emptied")
    async def emptied(self, comm):
        calls = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        for f in calls:
            await f
        if not calls:
            await comm.call("Backend", "/log")
        comm.respond({})

    @EP("/wait/loop")
    async def wait_loop(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        out = []
        if tasks:
            done, _ = await asyncio.wait(tasks)
            for task in done:
                try:
                    out.append(task.result())
                except CallError:
                    continue
        comm.respond(out)

    @EP("/coros")
    async def coros(self, comm):
        todo = [self._one(comm, i) for i in comm.params.get("ids", [])]
        if not todo:
            await comm.call("Backend", "/log")
        await asyncio.gather(*todo)
        comm.respond({})


class Caught(MS):
    runtime = "async"

    @EP("/timeout")
    async def timeout(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        try:
            async with asyncio.timeout(1):
                replies = await asyncio.gather(*first)
        except TimeoutError:
            comm.respond({}, 504)
            return
        comm.respond(replies)

    @EP("/except")
    async def except_(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        try:
            replies = await asyncio.gather(*first)
        except Exception:
            comm.respond({}, 504)
            return
        comm.respond(replies)

    @EP("/except/loop")
    async def except_loop(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        try:
            replies = [await f for f in first]
        except Exception:
            comm.respond({}, 504)
            return
        comm.respond(replies)

    @EP("/except/known")
    async def except_known(self, comm):
        first = comm.call("Backend", "/a")
        second = comm.call("Backend", "/b")
        try:
            replies = await asyncio.gather(first, second)
        except Exception:
            comm.respond({}, 504)
            return
        comm.respond(replies)


class Odd(MS):
    runtime = "async"

    async def _one(self, comm, i):
        return await comm.call("Backend", "/a", {"i": i})

    @EP("/set")
    async def set_(self, comm):
        user = comm.call("Backend", "/user")
        calls = {comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        calls.add(user)
        for f in calls:
            await f
        comm.respond({})

    @EP("/set/tasks")
    async def set_tasks(self, comm):
        tasks = {asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])}
        tasks.add(asyncio.create_task(comm.call("Backend", "/user")))
        try:
            for t in tasks:
                await t
        except MupError:
            comm.respond({}, 502)
            return
        comm.respond({})

    @EP("/set/wait")
    async def set_wait(self, comm):
        tasks = set()
        for i in comm.params.get("ids", []):
            tasks.add(asyncio.create_task(self._one(comm, i)))
        tasks.add(asyncio.create_task(comm.call("Backend", "/user")))
        done, pending = await asyncio.wait(tasks)
        comm.respond(len(done))

    @EP("/wait/timeout")
    async def wait_timeout(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        tasks.append(asyncio.create_task(comm.call("Backend", "/user")))
        done, pending = await asyncio.wait(tasks, timeout=1)
        for t in pending:
            t.cancel()
        comm.respond(len(done))

    @EP("/wait/first")
    async def wait_first(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        tasks.append(asyncio.create_task(comm.call("Backend", "/user")))
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        comm.respond(len(done))

    @EP("/star/results")
    async def star_results(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in comm.params.get("more", [])]
        replies = await asyncio.gather(*first, *second)
        for reply in replies[len(first) :]:
            await comm.call("Backend", "/log", reply)
        comm.respond({})

    @EP("/broken")
    async def broken(self, comm):
        calls = []
        try:
            for i in comm.params.get("ids", []):
                calls.append(comm.call("Backend", "/a", {"i": i}))
        except MupError:
            pass
        comm.respond(await asyncio.gather(*calls, return_exceptions=True))

    @EP("/broken/one")
    async def broken_one(self, comm):
        calls = [comm.call("Backend", "/user")]
        for i in comm.params.get("ids", []):
            try:
                calls.append(comm.call("Backend", "/a", {"i": i}))
            except MupError:
                continue
        comm.respond(await asyncio.gather(*calls, return_exceptions=True))

    @EP("/stopped")
    async def stopped(self, comm):
        calls = [comm.call("Backend", "/user")]
        for i in comm.params.get("ids", []):
            f = comm.call("Backend", "/a", {"i": i})
            if i == "b":
                break
            calls.append(f)
        comm.respond(await asyncio.gather(*calls))

    @EP("/stopped/group")
    async def stopped_group(self, comm):
        async with asyncio.TaskGroup() as group:
            for i in comm.params.get("ids", []):
                t = group.create_task(self._one(comm, i))
                if i == "b":
                    break
        comm.respond({})

    @EP("/returned")
    async def returned(self, comm):
        calls = []
        for i in comm.params.get("ids", []):
            f = comm.call("Backend", "/a", {"i": i})
            calls.append(f)
            if i == "b":
                await f
                comm.respond({})
                return
        comm.respond(await asyncio.gather(*calls))

    @EP("/reset")
    async def reset(self, comm):
        calls = []
        for i in comm.params.get("ids", []):
            if i == "b":
                calls = []
            calls.append(comm.call("Backend", "/a", {"i": i}))
        comm.respond(await asyncio.gather(*calls))

    @EP("/pairs")
    async def pairs(self, comm):
        calls = []
        for i in comm.params.get("ids", []):
            calls.append(comm.call("Backend", "/a", {"i": i}))
            calls.append(comm.call("Backend", "/b", {"i": i}))
        comm.respond(await asyncio.gather(*calls))

    @EP("/nested/lists")
    async def nested_lists(self, comm):
        calls = [comm.call("Backend", "/user")]
        for i in comm.params.get("ids", []):
            for m in comm.params.get("more", []):
                calls.append(comm.call("Backend", "/a", {"i": i, "m": m}))
        comm.respond(await asyncio.gather(*calls))

    @EP("/empty/alias")
    async def empty_alias(self, comm):
        calls = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        left = calls
        calls = calls.copy()
        left.clear()
        if not left:
            await comm.call("Backend", "/log")
        comm.respond(await asyncio.gather(*calls))

    @EP("/empty/twice")
    async def empty_twice(self, comm):
        calls = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        n = 0
        if calls:
            n = 1
        await comm.call("Backend", "/log")
        if n:
            await asyncio.gather(*calls)
        comm.respond({})

    @EP("/empty/group")
    async def empty_group(self, comm):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
            if not tasks:
                await comm.call("Backend", "/log")
        comm.respond([t.result() for t in tasks])

    @EP("/cancel/calls")
    async def cancel_calls(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        try:
            await comm.call("Backend", "/user")
        except MupError:
            for t in tasks:
                t.cancel()
            raise
        comm.respond(await asyncio.gather(*tasks))

    @EP("/cancel/finally")
    async def cancel_finally(self, comm):
        tasks = [asyncio.create_task(self._one(comm, i)) for i in comm.params.get("ids", [])]
        try:
            user = await comm.call("Backend", "/user")
            replies = await asyncio.gather(*tasks)
        finally:
            for t in tasks:
                if not t.done():
                    t.cancel()
        comm.respond([user, replies])

    @EP("/suppress")
    async def suppress(self, comm):
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])}
        out = {}
        for i, f in calls.items():
            with contextlib.suppress(Exception):
                out[i] = await f
        comm.respond(out)

    @EP("/chained/except")
    async def chained_except(self, comm):
        first = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        out = []
        for f in [comm.call("Backend", "/user"), *first]:
            try:
                out.append(await f)
            except Exception as error:
                out.append(str(error))
        comm.respond(out)

    @EP("/total")
    async def total(self, comm):
        calls = [comm.call("Backend", "/a", {"i": i}) for i in comm.params.get("ids", [])]
        total = 0
        for f in calls:
            try:
                total += len(await f)
            except Exception:
                total -= 1
        comm.respond(total)

    @EP("/typed")
    async def typed(self, comm):
        f = comm.call("Backend", "/user")
        total = 0
        try:
            total += await f
        except TypeError:
            await comm.call("Backend", "/log")
        comm.respond(total)


class Backend(MS):
    @EP("/a")
    def a(self, comm):
        comm.respond({})

    @EP("/b")
    def b(self, comm):
        comm.respond({})

    @EP("/c")
    def c(self, comm):
        comm.respond({})

    @EP("/log")
    def log(self, comm):
        comm.respond({})

    @EP("/order")
    def order(self, comm):
        comm.respond({})

    @EP("/user")
    def user(self, comm):
        comm.respond({})
