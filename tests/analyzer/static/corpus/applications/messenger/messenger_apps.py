"""What apps bring along: parsers of incoming webhooks and slash commands, both by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from messenger_core import ApiError, Context

MENTION = re.compile(r"@([\w.-]+)")

Parser = Callable[[dict[str, Any]], Iterator[str]]
PARSERS: dict[str, Parser] = {}


def parser(kind: str) -> Callable[[Parser], Parser]:
    def register(function: Parser) -> Parser:
        PARSERS[kind] = function
        return function

    return register


@parser("git")
def parse_git(payload: dict[str, Any]) -> Iterator[str]:
    for commit in payload.get("commits", []):
        yield f"{commit.get('author', 'somebody')} pushed {commit['id'][:7]}"


@parser("alerts")
def parse_alerts(payload: dict[str, Any]) -> Iterator[str]:
    if payload.get("status") == "resolved":
        yield "all clear"
        return
    yield from (f"{alert['severity'].upper()}: {alert['name']}" for alert in payload.get("alerts", []))


COMMANDS: dict[str, Callable[..., Any]] = {}


def slash(name: str):
    def register(handler):
        COMMANDS[name] = handler
        return handler

    return register


@slash("help")
async def show_help(ctx: Context, argument: str) -> dict[str, Any]:
    return {"text": "commands: " + ", ".join(sorted(COMMANDS))}


@slash("remind")
async def remind(ctx: Context, argument: str) -> dict[str, Any]:
    when, _, what = argument.partition(" ")
    if not what:
        raise ApiError(422, "usage: /remind WHEN WHAT")
    job = await ctx.comm.call("Jobs", "/schedule", {"at": when, "text": what, "user": ctx.principal.user_id})
    return {"text": f"I will remind you ({job.get('id')})"}


@slash("who")
async def who(ctx: Context, argument: str) -> dict[str, Any]:
    users = MENTION.findall(argument)
    presence = await ctx.comm.call("Presence", "/batch", {"users": users}) if users else {}
    return {"text": ", ".join(f"{user}: {state}" for user, state in presence.get("states", {}).items())}


@slash("poll")
async def start_poll(ctx: Context, argument: str) -> dict[str, Any]:
    question, *options = [part.strip() for part in argument.split("|")]
    poll = await ctx.comm.call(
        "Polls", "/create", {"question": question, "options": options or ["yes", "no"]}
    )
    await ctx.comm.call("Messages", "/post", {"channel_id": ctx.require("channel_id"), "text": question})
    return {"poll": poll.get("id")}
