"""Questions of an exam's configuration, which names groups of questions.

A group is a number of questions of one category, level and language.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from mup import Communication

Document = dict[str, Any]

ASKED = ("category", "level", "language")
"""What questions and their group have in common."""


def groups_of(comm: Communication, configuration: Document) -> list[Document]:
    """Return the groups of a configuration."""
    return comm.query("tms", "groupsOfConf", "confgroups", {"_id": {"$in": configuration["groups"]}}).get()


def questions_of_groups(comm: Communication, groups: list[Document]) -> list[Document]:
    """Return the questions of all groups, of each no more than it counts; one query."""
    wanted = [{key: group[key] for key in ASKED} for group in groups]
    found = comm.query("tms", "questionsOfGroups", "questions", {"$or": wanted}).get()
    return [
        question
        for group in groups
        for question in islice((q for q in found if belongs(q, group)), group["count"])
    ]


def questions_of_group(comm: Communication, group: Document) -> list[Document]:
    """Return all questions a group chooses from."""
    return comm.query("tms", "questionsOfGroup", "questions", {key: group[key] for key in ASKED}).get()


def belongs(question: Document, group: Document) -> bool:
    """Return whether a question may be asked for a group."""
    return all(question[key] == group[key] for key in ASKED)
