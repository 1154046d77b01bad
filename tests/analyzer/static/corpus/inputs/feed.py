"""Requests to a social feed that fans out."""

from corpus.execution import Case, Inputs

IDS = [{"json": {"ids": ids}} for ids in ([], ["a"], ["a", "b"], ["a", "b", "c"], list("abcdefg"))]


def posts(_: object) -> list[dict[str, str]]:
    return [{"id": "p"}, {"id": "q"}]


INPUTS = Inputs(
    {
        "Feed/friends": Case("fan-out, dynamic gather", IDS),
        "Feed/friends/helper": Case("fan-out, dynamic gather", IDS),
        "Feed/friends/tolerant": Case("fan-out, dynamic gather", IDS),
        "Feed/friends/none": Case("fan-out, dynamic gather", IDS),
        "Feed/friends/few": Case("fan-out, bounded by the source", IDS),
        "Feed/friends/group": Case("fan-out, dynamic tasks", IDS),
        "Feed/friends/tasks": Case("fan-out, dynamic tasks", IDS),
        "Feed/friends/by-id": Case("fan-out, dynamic tasks", IDS),
        "Feed/friends/bounded": Case("fan-out, limited concurrency", IDS),
        "Feed/friends/batches": Case("fan-out, limited concurrency", IDS),
        "Feed/friends/completed": Case("fan-out, as completed", IDS),
        "Feed/friends/first": Case("fan-out, as completed", IDS),
        "Feed/friends/wait": Case("fan-out, dynamic tasks", IDS),
        "Feed/friends/one-by-one": Case("loop of calls", IDS),
        "Feed/friends/comprehension": Case("streaming", IDS),
        "Feed/home/{user}": Case("fan-out, fixed"),
        "Feed/home/{user}/likes": Case("fan-out, dynamic gather"),
        "Feed/home/{user}/full": Case("fan-out, fixed"),
        "Feed/home/{user}/partial": Case("fan-out, fixed"),
        "Feed/post": Case(
            "work after the response",
            [{"json": {"user": "e", "text": "t", "followers": f}} for f in ([], ["a"], ["a", "b"])],
        ),
        "Feed/post/fire": Case(
            "fire and forget", [{"json": {"user": "e", "followers": f}} for f in ([], ["a", "b"])]
        ),
        "Feed/hedged/{user}": Case("hedged request"),
        "Feed/workers": Case("fan-out, limited concurrency", IDS),
        "Feed/search": Case(
            "fan-out, bounded by the source",
            [{"query": {"q": "a", "where": w}} for w in ("all", "posts", "x")],
        ),
        "Profiles/profiles/{id}": Case("query"),
        "Posts/posts/{id}": Case("query"),
        "Posts/timeline/{user}": Case("query"),
        "Likes/count": Case("query", [{"query": {"post": "p"}}]),
        "Push/notify": Case("handler"),
    },
    {
        "Profiles/profiles/{id}": [{"name": "n"}],
        "Posts/timeline/{user}": [[], [{"id": "p"}], posts],
        "Likes/count": [{"count": 3}],
    },
)
