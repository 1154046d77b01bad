from mup import EP, MS, Communication


class Profiles(MS):
    runtime = "async"

    @EP("/profiles/{id}", method="GET")
    async def profile(self, comm: Communication, id: str) -> None:
        rows = await comm.query("users", "profile", "profiles", {"_id": id})
        if not rows:
            comm.respond({"error": "unknown"}, status=404)
            return
        comm.respond(rows[0])


class Posts(MS):
    runtime = "async"

    @EP("/posts/{id}", method="GET")
    async def post(self, comm: Communication, id: str) -> None:
        rows = await comm.query("posts", "one", "posts", {"_id": id})
        comm.respond(rows[0] if rows else None)

    @EP("/timeline/{user}", method="GET")
    async def timeline(self, comm: Communication, user: str) -> None:
        comm.respond(await comm.query("posts", "of_user", "posts", {"user": user}))


class Likes(MS):
    runtime = "async"

    @EP("/count", method="GET")
    async def count(self, comm: Communication, post: str) -> None:
        comm.respond({"count": len(await comm.query("likes", "of_post", "likes", {"post": post}))})


class Push(MS):
    runtime = "async"

    @EP("/notify")
    async def notify(self, comm: Communication) -> None:
        comm.respond(None, status=202)
