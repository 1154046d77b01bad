"""Requests to an order desk, its notifications, and a gateway to models."""

from corpus.execution import Case, Inputs

IDIOM = "everyday code, order desk"
STUBS = (
    "Users/token",
    "Users/user",
    "Users/exists",
    "Users/shadow",
    "Users/history",
    "Stock/reserve",
    "Stock/release",
    "Stock/level",
    "Stock/ship",
    "Stock/rows",
    "Stock/ready",
    "Payments/capture",
    "Payments/void",
    "Notify/send",
    "Notify/mail",
    "Notify/sms",
    "Notify/push",
    "Notify/differs",
    "Models/small/text",
    "Models/large/text",
    "Models/embed",
    "Models/moderate",
    "Models/infer",
    "Models/next",
    "Models/health",
    "Index/search",
    "Index/document",
    "Index/rank",
    "Index/health",
)
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Desk/orders/{id}": Case(
            IDIOM, [{"path": {"id": "a", "key": "a"}}, {"path": {"id": "b", "key": "b"}}]
        ),
        "Desk/orders/{id}/pay": Case(
            IDIOM, [{"path": {"id": "a", "key": "a"}}, {"path": {"id": "b", "key": "b"}}]
        ),
        "Desk/orders/{id}/cancel": Case(
            IDIOM, [{"path": {"id": "a", "key": "a"}}, {"path": {"id": "b", "key": "b"}}]
        ),
        "Desk/checkout": Case(
            IDIOM,
            [
                {"json": {"user": "u", "skus": []}},
                {"json": {"user": "u", "skus": ["a"]}},
                {"json": {"user": "u", "skus": ["a", "b"]}},
            ],
        ),
        "Desk/levels": Case(
            IDIOM, [{"json": {"skus": []}}, {"json": {"skus": ["a"]}}, {"json": {"skus": ["a", "b"]}}]
        ),
        "Desk/place": Case(IDIOM),
        "Desk/profile/{id}": Case(
            IDIOM, [{"path": {"id": "a", "key": "a"}}, {"path": {"id": "b", "key": "b"}}]
        ),
        "Desk/quick": Case(IDIOM),
        "Desk/notify/{channel}": Case(
            IDIOM, [{"path": {"channel": "mail"}}, {"path": {"channel": "sms"}}, {"path": {"channel": "x"}}]
        ),
        "Desk/notify-all": Case(IDIOM),
        "Desk/preferred": Case(IDIOM),
        "Desk/digest": Case(
            IDIOM,
            [
                {"json": {"events": []}},
                {"json": {"events": [{"user": "a"}]}},
                {"json": {"events": [{"user": "a"}, {"user": "b"}]}},
                {"json": {"events": [{"user": "a"}, {"user": "b"}, {"user": "a"}]}},
            ],
        ),
        "Desk/webhook": Case(
            IDIOM,
            [
                {"json": {"type": "paid"}},
                {"json": {"type": "refused"}},
                {"json": {"type": "x"}},
                {"json": {}},
            ],
        ),
        "Desk/export": Case(IDIOM),
        "Desk/accepted": Case(IDIOM),
        "Desk/bulk": Case(
            IDIOM,
            [
                {"json": {"items": []}},
                {"json": {"items": [0]}},
                {"json": {"items": [0, 1, 2, 3]}},
                {"json": {"items": [0, 1, 2, 3, 4, 5]}},
            ],
        ),
        "Desk/steps": Case(IDIOM),
        "Desk/sorted": Case(IDIOM),
        "Desk/until": Case(IDIOM),
        "Desk/either": Case(IDIOM, [{"json": {"shadow": 0}}, {"json": {"shadow": 1}}]),
        "Gateway/infer": Case(
            IDIOM, [{"json": {"model": "small"}}, {"json": {"model": "large"}}, {"json": {"model": "x"}}]
        ),
        "Gateway/infer/fallback": Case(IDIOM),
        "Gateway/infer/hedged": Case(IDIOM),
        "Gateway/vote": Case(IDIOM),
        "Gateway/rag": Case(IDIOM),
        "Gateway/tools": Case(IDIOM),
        "Gateway/once/{key}": Case(
            IDIOM, [{"path": {"id": "a", "key": "a"}}, {"path": {"id": "b", "key": "b"}}]
        ),
        "Gateway/batch": Case(
            IDIOM, [{"json": {"items": []}}, {"json": {"items": [0]}}, {"json": {"items": [0, 1, 2]}}]
        ),
        "Gateway/moderated": Case(IDIOM),
        "Gateway/timeout": Case(IDIOM),
        "Gateway/fire": Case(IDIOM),
        "Gateway/by-kind": Case(
            IDIOM, [{"json": {"kind": "text"}}, {"json": {"kind": "image"}}, {"json": {"kind": "audio"}}]
        ),
        "Gateway/cheapest": Case(IDIOM),
        "Gateway/stream": Case(IDIOM),
        "Gateway/pipeline": Case(IDIOM),
        "Gateway/health": Case(IDIOM),
    },
    {
        "Users/token": [{"roles": ["clerk"]}, {}],
        "Users/exists": [True, {}],
        "Users/user": [{"name": "n"}, {"channels": ["sms"]}, {"channels": ["x", "push"]}, {}],
        "Stock/rows": [{"rows": [1, 2], "more": True}, {"rows": []}, {"rows": [1]}],
        "Stock/ready": [True, {}],
        "Index/search": [{"hits": []}, {"hits": ["a"]}, {"hits": ["a", "b", "c", "d", "e", "f", "g"]}],
        "Models/large/text": [{"tool": "search"}, {"tool": "user"}, {"tool": "x"}, {"text": "t"}],
        "Models/moderate": [{"flagged": True}, {}],
        "Models/next": [{"text": "a", "token": 1}, {"text": "b"}, {"token": 2}, {}],
        "desk/order": [
            [],
            [{"status": "draft", "lines": ["a"]}],
            [{"status": "placed", "lines": ["a", "b", "c", "d"]}],
            [{"status": "paid"}],
        ],
    },
)
