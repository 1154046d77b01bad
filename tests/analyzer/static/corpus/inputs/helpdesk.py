"""What is sent to the help desk, and what the services it calls may answer."""

from typing import Any

from corpus.execution import Case, Inputs

IDIOM = "everyday code, helpdesk"
STUBS = (
    "ArticleStore/get",
    "ArticleStore/insert-many",
    "ArticleStore/set-state",
    "ArticleStore/translation",
    "Audit/record",
    "Auth/session",
    "Billing/plan",
    "Blobs/put",
    "Cache/get",
    "Cache/set",
    "Calendar/add",
    "Calendar/hours",
    "Cdn/purge",
    "Chat/enqueue",
    "Chat/post",
    "Chat/presence",
    "Chat/room",
    "Classifier/predict",
    "ClockStore/get",
    "ClockStore/many",
    "ClockStore/overdue",
    "ClockStore/put",
    "Config/widget",
    "Crm/search",
    "DeadLetters/put",
    "Directory/agent",
    "Directory/customer",
    "Directory/find-or-create",
    "Directory/lead",
    "Directory/names",
    "Directory/next-agent",
    "Directory/team",
    "Embeddings/embed",
    "Events/append",
    "Events/stream",
    "Exports/create",
    "Exports/fail",
    "Flags/evaluate",
    "Limits/take",
    "Locks/acquire",
    "Locks/release",
    "Mailer/send",
    "Metrics/agent",
    "Metrics/value",
    "Notify/push",
    "Outbox/enqueue",
    "Pager/page",
    "PolicyStore/find",
    "PolicyStore/get",
    "PolicyStore/put",
    "Quarantine/hold",
    "Renderer/pdf",
    "Renderer/sheet",
    "Reviews/request",
    "RuleStore/delete-macro",
    "RuleStore/disable-hook",
    "RuleStore/hooks",
    "RuleStore/macro",
    "RuleStore/macros",
    "RuleStore/report-failure",
    "RuleStore/rules",
    "Scheduler/at",
    "Search/index",
    "Search/query",
    "Search/rebuild",
    "Search/remove",
    "Spam/score",
    "Surveys/summary",
    "Templates/render",
    "TicketStore/by-message",
    "TicketStore/comment",
    "TicketStore/comments",
    "TicketStore/find",
    "TicketStore/get",
    "TicketStore/idle",
    "TicketStore/insert",
    "TicketStore/load",
    "TicketStore/update",
    "Transcriber/start",
    "Transcriber/status",
    "Translator/translate",
    "Vault/secret",
    "Vectors/nearest",
    "Votes/cast",
    "Webhooks/deliver",
)

AUTH = {"authorization": "Bearer t1"}
KEYED = {**AUTH, "idempotency-key": "k1"}
COOKIE = {"hd_session": "t2"}


def as_user(*requests: Any) -> Any:
    """Requests of somebody who is logged in, and one of somebody who is not."""
    return Case(IDIOM, [*({"headers": AUTH, **r} for r in requests), {**requests[0], "headers": {}}])


def plain(*requests: Any) -> Any:
    return Case(IDIOM, list(requests))


T = {"ticket_id": "t1"}
TICKET = {
    "id": "t1",
    "subject": "Printer",
    "priority": "high",
    "requester": "c1",
    "state": "open",
    "category": "technical",
}

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Tickets/tickets/create": as_user(
            {"json": {"subject": "Error on page", "body": "It fails", "requester": "c1"}},
            {"json": {"subject": "Invoice", "priority": "urgent", "category": "billing"}, "headers": KEYED},
            {"json": {"subject": "Hello", "channel": "chat"}, "headers": KEYED},
            {"json": {"subject": ""}},
            {"json": {"subject": "x", "priority": "odd"}},
        ),
        "Tickets/tickets/{ticket_id}": as_user(
            {"path": T, "query": {"include": "comments,customer,sla"}},
            {"path": T, "query": {"include": "comments"}},
            {"path": T, "query": {"include": "customer"}},
            {"path": T, "query": {"include": "sla"}},
            {"path": T},
        ),
        "Tickets/tickets/list": as_user(
            {"query": {}},
            {"query": {"view": "unassigned", "page": "2", "size": "10"}},
            {"query": {"view": "urgent"}},
            {"query": {"view": "nonsense"}},
        ),
        "Tickets/tickets/{ticket_id}/reply": as_user(
            {"path": T, "json": {"text": "We look into it"}},
            {"path": T, "json": {"text": "See these", "attachments": ["a.png", "b.png", "c.txt"]}},
            {"path": T, "json": {"text": "a note", "public": False}},
            {
                "path": T,
                "json": {"text": "Thanks", "attachments": ["a.png"]},
                "headers": {},
                "cookies": COOKIE,
            },
            {"path": T, "json": {"text": " "}},
        ),
        "Tickets/tickets/{ticket_id}/transition": as_user(
            {"path": T, "json": {"state": "solved"}},
            {"path": T, "json": {"state": "pending"}},
            {"path": T, "json": {"state": "open"}},
            {"path": T, "json": {"state": "on_hold"}},
            {"path": T, "json": {"state": "gone"}},
        ),
        "Tickets/tickets/{ticket_id}/assign": as_user(
            {"path": T, "json": {}},
            {"path": T, "json": {"agent": "a1"}},
            {"path": T, "json": {"strategy": "round_robin"}},
            {"path": T, "json": {"strategy": "least_busy"}},
            {"path": T, "json": {"strategy": "other"}},
        ),
        "Tickets/tickets/merge": as_user(
            {"json": {"into": "t1", "tickets": ["t2", "t3"]}},
            {"json": {"into": "t1", "tickets": ["t2"]}},
            {"json": {"into": "t1", "tickets": []}},
            {"json": {"into": "t1", "tickets": ["t1"]}},
        ),
        "Tickets/tickets/bulk": as_user(
            {"json": {"tickets": ["t1", "t2", "t3"], "set": {"priority": "low"}}},
            {"json": {"tickets": ["t1"], "set": {"state": "closed"}}},
            {"json": {"tickets": [], "set": {}}},
        ),
        "Tickets/tickets/{ticket_id}/timeline": as_user({"path": T}),
        "Inbound/inbound/email": plain(
            {
                "json": {
                    "from": "a@example.org",
                    "message_id": "m1",
                    "subject": "Password lost",
                    "text": "Help",
                }
            },
            {"json": {"from": "a@example.org", "message_id": "m2", "text": "More", "in_reply_to": "m1"}},
            {"json": {}},
        ),
        "Inbound/inbound/chat": plain(
            {"json": {"visitor": "v1", "text": "How do I reset it?"}},
            {"json": {"visitor": "v1", "text": "Hi"}},
        ),
        "Inbound/inbound/hooks/{provider}": plain(
            {
                "path": {"provider": "whatsapp"},
                "json": {"messages": [{"from": "1", "text": "Hi"}, {"from": "2"}]},
            },
            {"path": {"provider": "whatsapp"}, "json": {}, "headers": {"x-signature": "s1"}},
            {"path": {"provider": "slack"}, "json": {"text": "new printer is broken", "user": "u1"}},
            {
                "path": {"provider": "slack"},
                "json": {"text": "find printer"},
                "headers": {"x-signature": "s1"},
            },
            {"path": {"provider": "fax"}, "json": {}},
        ),
        "Inbound/inbound/voicemail": plain(
            {"json": {"recording": "r1", "caller": "c1"}}, {"json": {"recording": "r2"}}
        ),
        "Inbound/inbound/widget": plain({"query": {"tenant": "acme", "page": "pricing"}}, {"query": {}}),
        "Insights/reports/overview": as_user({"query": {}}, {"query": {"fresh": "1"}}),
        "Insights/reports/agents": as_user({"query": {}}, {"query": {"team": "sales"}}),
        "Insights/reports/sla": as_user({"query": {}}),
        "Insights/reports/export": as_user(
            {"json": {}}, {"json": {"format": "pdf"}}, {"json": {"format": "xlsx"}}
        ),
        "Insights/search": as_user(
            {"query": {"q": "printer"}},
            {"query": {"q": "printer", "kinds": "ticket,customer"}},
            {"query": {"q": "printer", "kinds": "article"}},
            {"query": {"q": "#t1"}},
            {"query": {"q": "x", "kinds": "none"}},
        ),
        "Automations/macros/list": as_user({"query": {}}, {"query": {"page": "2", "size": "5"}}),
        "Automations/macros/delete": as_user({"json": {"id": "m1"}}),
        "Automations/macros/apply": as_user({"json": {"ticket": "t1", "macro": "m1"}}),
        "Automations/rules/evaluate": plain(
            {"json": {"event": "ticket.created", "ticket": TICKET}},
            {"json": {"event": "ticket.solved", "ticket": {"id": "t2", "priority": "low"}}},
            {"json": {"event": "ticket.open"}},
        ),
        "Automations/rules/scheduled": plain({"json": {}}, {"json": {"days": 7}}),
        "Sla/sla/clock/start": plain(
            {"json": {"ticket": TICKET, "plan": "gold"}},
            {"json": {"ticket": {"id": "t2", "priority": "low"}, "plan": "free"}},
            {"json": {"ticket": {"id": "t3", "requester": "c1"}}},
            {"json": {}},
        ),
        "Sla/sla/clock/pause": plain({"json": {"ticket": "t1"}}),
        "Sla/sla/status": plain(
            {"json": {"tickets": ["t1", "t2"]}},
            {"json": {"tickets": [f"t{n}" for n in range(60)]}},
            {"json": {}},
        ),
        "Sla/sla/sweep": plain({"json": {}}),
        "Sla/sla/policies/change": as_user(
            {"json": {"id": "p1", "minutes": {"high": 120}}},
            {"json": {"id": "p1", "minutes": {"odd": 1}}},
            {"json": {"id": "p1"}},
        ),
        "Knowledge/articles/{article_id}": plain(
            {"path": {"article_id": "a1"}},
            {"path": {"article_id": "a1"}, "query": {"lang": "de"}},
            {"path": {"article_id": "a2"}, "query": {"lang": "fr"}},
        ),
        "Knowledge/articles/publish": as_user({"json": {"id": "a1"}}),
        "Knowledge/articles/suggest": plain(
            {"json": {"text": "reset my password"}}, {"json": {"text": "Hi"}}
        ),
        "Knowledge/articles/import": as_user(
            {
                "json": {
                    "articles": [{"title": "One"}, {"title": "Two"}, {"title": "Three"}, {"text": "no title"}]
                }
            },
            {"json": {"articles": [{"title": "One"}]}},
            {"json": {"articles": [{}]}},
            {"json": {}},
        ),
        "Knowledge/articles/feedback": plain(
            {"json": {"id": "a1", "helpful": True}, "cookies": {"visitor": "v1"}},
            {"json": {"id": "a1"}},
        ),
    },
    {
        "Auth/session": [
            {"user": "u1", "tenant": "acme", "role": "admin", "permissions": ["publish"]},
            {"user": "u2", "tenant": "acme", "role": "admin"},
            {"user": "u3", "tenant": "acme", "role": "agent", "permissions": ["publish"]},
            {"user": "u4", "role": "agent"},
            {"user": "c1", "tenant": "acme", "role": "customer"},
            {"user": "c2"},
            {},
        ],
        "Cache/get": [{}, {"value": {"id": "t1"}}, {"value": None}],
        "Directory/customer": [{"id": "c1", "open_tickets": 1}, {"id": "c2", "open_tickets": 500}, {}],
        "Billing/plan": [{"name": "gold"}, {"name": "free", "open_limit": 3}, {}],
        "Classifier/predict": [
            {"label": "billing", "confidence": 0.9},
            {"label": "account", "confidence": 0.3},
            {},
        ],
        "TicketStore/get": [
            {
                "id": "t1",
                "state": "open",
                "requester": "c1",
                "assignee": "a1",
                "channel": "chat",
                "room": "r1",
            },
            {"id": "t2", "state": "new", "requester": "c1", "team": "sales"},
            {"id": "t3", "state": "pending", "requester": "c1", "assignee": "a2", "channel": "email"},
            {"id": "t4", "state": "solved", "requester": "c2"},
            {"id": "t5", "state": "on_hold", "requester": "c2", "rated": True},
            {"id": "t6", "state": "closed", "requester": "c1"},
            {"id": "t7", "deleted": True},
            {},
        ],
        "TicketStore/find": [
            {"items": [{"id": "t1", "assignee": "a1"}, {"id": "t2"}], "more": True},
            {"items": [{"id": "t3"}]},
            {"items": [], "more": True},
            {},
        ],
        "TicketStore/insert": [{"id": "t9"}, {}],
        "TicketStore/comment": [{"id": "m9"}, {}],
        "TicketStore/comments": [{"items": [{"text": "a"}, {"text": "b"}]}, {"items": [{"text": "a"}]}, {}],
        "TicketStore/load": [{"a1": 3, "a2": 1}, {}],
        "TicketStore/by-message": [{"ticket": "t1"}, {}],
        "TicketStore/idle": [
            {"items": [{"id": "t1"}, {"id": "t2"}], "next": "c2"},
            {"items": [{"id": "t3"}]},
            {},
        ],
        "Locks/acquire": [{"granted": True}, {"granted": True}, {}],
        "Directory/names": [{"a1": "Ada"}, {}],
        "Directory/team": [
            {"agents": [{"id": "a1", "online": True}, {"id": "a2", "online": True}, {"id": "a3"}]},
            {"agents": [{"id": "a3"}]},
            {},
        ],
        "Directory/next-agent": [{"agent": "a2"}, {}],
        "Directory/agent": [{"active": True}, {"active": False}],
        "Directory/find-or-create": [{"id": "c1"}, {"id": "c2", "blocked": True}],
        "Directory/lead": [{"id": "l1"}, {}],
        "Flags/evaluate": [{"on": True}, {"on": False}],
        "Blobs/put": [{"id": "b1"}],
        "Chat/presence": [{"online": True}, {"online": False}],
        "Chat/room": [{"id": "r1", "agent": "a1"}, {"id": "r2"}],
        "Chat/enqueue": [{"position": 4}, {}],
        "Events/stream": [
            {"events": [{"type": "ticket.created"}, {"type": "assigned", "to": "a1"}], "next": "e2"},
            {"events": [{"type": "comment"}, {"type": "ticket.solved"}]},
            {"events": []},
        ],
        "Spam/score": [{"score": 0.1}, {"score": 0.97}, {}],
        "Limits/take": [{"ok": True}, {"ok": True}, {"ok": False}],
        "Vault/secret": [{"value": "s1"}, {}],
        "Transcriber/start": [{"id": "j1"}],
        "Transcriber/status": [
            {"state": "running"},
            {"state": "done", "text": "My password is gone"},
            {"state": "failed"},
        ],
        "Config/widget": [
            {"theme": "dark", "articles": True, "chat": True},
            {"articles": True},
            {"chat": True},
            {},
        ],
        "Calendar/hours": [{"open": True}, {"open": False}],
        "Calendar/add": [{"at": "2024-05-02T10:00"}, {}],
        "Search/query": [
            {"hits": [{"id": "x1", "title": "Reset", "score": 0.9}, {"id": "x2", "score": 0.1}]},
            {"hits": []},
        ],
        "Crm/search": [{"hits": [{"id": "c1"}]}, {}],
        "Surveys/summary": [{"mean": 4.2}, {}],
        "Metrics/value": [{"value": 17}],
        "Metrics/agent": [{"solved": 12}, {"solved": 0}, {}],
        "Exports/create": [{"id": "j1"}, {"id": "j2", "url": "/exports/1.csv"}],
        "Renderer/pdf": [{"data": "pdf"}],
        "Renderer/sheet": [{"data": "csv"}],
        "RuleStore/macros": [{"items": [{"id": "m1"}, {"id": "m2"}]}, {}],
        "RuleStore/macro": [
            {
                "id": "m1",
                "owner": "u3",
                "actions": [{"do": "set", "field": "priority", "value": "low"}, {"do": "reply"}],
            },
            {
                "id": "m2",
                "owner": "u4",
                "actions": [{"do": "notify", "to": "a1"}, {"do": "set", "field": "state", "value": "solved"}],
            },
            {"id": "m3", "owner": "u9", "actions": [{"do": "dance", "required": True}, {"do": "reply"}]},
            {},
        ],
        "RuleStore/rules": [
            {
                "items": [
                    {
                        "id": "r1",
                        "position": 2,
                        "conditions": [{"field": "priority", "value": "high"}],
                        "actions": [{"do": "notify"}],
                    },
                    {
                        "id": "r2",
                        "position": 1,
                        "actions": [{"do": "set", "field": "team", "value": "sales"}],
                    },
                ]
            },
            {
                "items": [
                    {
                        "id": "r3",
                        "actions": [{"do": "reply"}, {"do": "dance"}, {"do": "notify"}],
                        "stop": True,
                    },
                    {"id": "r4", "position": 9, "actions": [{"do": "notify"}]},
                ]
            },
            {
                "items": [
                    {"id": "r5", "disabled": True},
                    {
                        "id": "r6",
                        "conditions": [{"field": "state", "op": "in", "value": ["open"]}],
                        "actions": [{"do": "reply", "required": True}, {"do": "notify"}],
                    },
                    {
                        "id": "r7",
                        "conditions": [{"field": "state", "op": "is_not", "value": "open"}],
                        "actions": [],
                    },
                ]
            },
            {},
        ],
        "RuleStore/hooks": [
            {"items": [{"id": "h1", "url": "u1"}, {"id": "h2", "url": "u2"}]},
            {"items": [{"id": "h1", "url": "u1"}]},
            {},
        ],
        "Templates/render": [{"text": "Dear customer"}, {}],
        "PolicyStore/find": [
            {"id": "p1", "minutes": {"high": 60}, "business_hours": True},
            {"id": "p2", "minutes": {"low": 100}},
            {},
        ],
        "PolicyStore/get": [{"id": "p1", "minutes": {"low": 100}}, {"id": "p2", "locked": True}, {}],
        "PolicyStore/put": [{"id": "p1"}],
        "ClockStore/get": [{"id": "k1"}, {"id": "k2", "paused": True}, {}],
        "ClockStore/many": [{"clocks": [{"ticket": "t1", "breached": True}, {"ticket": "t2"}]}, {}],
        "ClockStore/overdue": [
            {
                "items": [
                    {"id": "k1", "ticket": "t1", "assignee": "a1"},
                    {"id": "k2", "ticket": "t2", "step": 1},
                ]
            },
            {
                "items": [
                    {"id": "k3", "ticket": "t3", "step": 2},
                    {"id": "k4", "paused": True},
                    {"id": "k5", "ticket": "t5"},
                ]
            },
            {},
        ],
        "ArticleStore/get": [
            {"id": "a1", "title": "Reset", "text": "...", "translations": ["de"], "followers": ["u1", "u2"]},
            {"id": "a2", "title": "Invoices", "text": "...", "language": "de"},
            {"id": "a3", "title": "Soon", "draft": True},
            {},
        ],
        "ArticleStore/translation": [{"id": "a1", "language": "de", "text": "..."}],
        "ArticleStore/insert-many": [{"inserted": 2}, {"inserted": 0}, {}],
        "Translator/translate": [{"text": "..."}],
        "Embeddings/embed": [{"values": [0.1, 0.2]}, {}],
        "Vectors/nearest": [
            {"hits": [{"id": "a1", "title": "Reset", "score": 0.9}, {"id": "a2", "score": 0.1}]},
            {"hits": []},
        ],
        "Votes/cast": [{"up": 3, "down": 12}, {"up": 3, "down": 1}, {"repeated": True}],
    },
)
