"""Requests to endpoints that ask for many things at once."""

from corpus.execution import Case, Inputs

FANS = "fan-outs of several lists, groups and dicts"

REQUESTS = [
    {"json": {"ids": ids, "more": more, "flag": flag}}
    for ids in ([], ["a"], ["a", "b", "bc"], ["a", "a", "b"])
    for more in ([], ["x"], ["x", "y"])
    for flag in (False, True)
]

ENDPOINTS = {
    "Lists": """
        sum chain display appended appended/two extended caught each/caught left between same
        from_iterable tagged
    """,
    "Early": """
        break return any all caught raise else others
    """,
    "Gathers": """
        limited/begun pairs pairs/sum pairs/list pairs/coro pairs/caught one-and one-and/tasks one-and/coro three
        built wait awaited later timeout nested
    """,
    "Groups": """
        group2 star exception mixed mixed/behind two plain raised body inside timeout
        gathered/local
    """,
    "Dicts": """
        dedupe keys zip/ids items loop looked looked/comp sorted over tasks/keys tasks/keys/wait
        tasks/keys/known tasks/keys/for keyed/set update guarded fromkeys dict/zip dict/pairs
    """,
    "Completed": """
        caught suppressed around finally timeout enumerated set two mixed coros cleanup first grown
        wait/loop
    """,
    "Sums": """
        helper helper/both numbered named summed behind before/caught inserted twice dropped
        cleared some replaced later view half reversed keyed keyed/lost union both/values unset
        stopped stopped/last
    """,
    "Tasks": """
        shared shared/early shared/nonlocal rounds rounds/two task limited failing wait/for as/keys
        if/tasks cancel/some cancel/all cancel/await callback group/finally group/return
    """,
    "Empty": """
        if/tasks unset ifexp keys filtered two or task/behind
        loop emptied wait/loop coros
    """,
    "Caught": """
        timeout except except/loop except/known
    """,
    "Odd": """
        set set/tasks set/wait wait/timeout wait/first star/results broken broken/one stopped
        stopped/group returned reset pairs nested/lists empty/alias empty/twice empty/group
        cancel/calls cancel/finally suppress chained/except total typed
    """,
}

INPUTS = Inputs(
    {
        **{
            f"{service}/{path}": Case(FANS, REQUESTS)
            for service, paths in ENDPOINTS.items()
            for path in paths.split()
        },
        **{f"Backend/{name}": Case("stub") for name in ("a", "b", "c", "log", "order", "user")},
    },
    {"Backend/a": [{}, {"id": 1}], "Backend/user": [{"id": 1}, {}]},
)
