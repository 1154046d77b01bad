"""The data: categories, questions, groups of them, configurations, exams and users; the same every time."""

from __future__ import annotations

import random
from typing import Any

Document = dict[str, Any]

SEED = 2023
CATEGORIES = 10
QUESTIONS_PER_CATEGORY = 15
LEVELS = 3
QUESTIONS_PER_GROUP = 2
CONFIGURATIONS = 50
EXAMS = 50
USERS = 50
LANGUAGE = "lang"


def fill(database: Any) -> None:
    """Fill the database; called by mup with a pymongo database when the project starts."""
    for name, documents in collections().items():
        database[name].delete_many({})
        database[name].insert_many(documents)


def collections() -> dict[str, list[Document]]:
    """Return all documents, by collection."""
    chance = random.Random(SEED)
    groups = [
        {
            "_id": f"group-{category}-{level}",
            "category": _category(category),
            "level": level,
            "language": LANGUAGE,
            "count": QUESTIONS_PER_GROUP,
        }
        for category in range(CATEGORIES)
        for level in range(LEVELS)
    ]
    confs = [
        {
            "_id": _configuration(i),
            "name": f"configuration #{i}",
            "description": f"An exam of {CATEGORIES} categories, as configuration #{i} wants it.",
            "groups": [group["_id"] for group in groups if chance.random() < 0.5],
        }
        for i in range(CONFIGURATIONS)
    ]
    return {
        "categories": [
            {"_id": _category(i), "name": f"cat #{i}", "description": f"Questions about subject {i}."}
            for i in range(CATEGORIES)
        ],
        "questions": [
            _question(category, i) for category in range(CATEGORIES) for i in range(QUESTIONS_PER_CATEGORY)
        ],
        "confgroups": groups,
        "confs": confs,
        "exams": [
            {
                "_id": f"exam-{i}",
                "examinee": f"user-{i}",
                "configId": _configuration(chance.randrange(CONFIGURATIONS)),
                "examDate": f"2023-06-{i % 30 + 1:02}",
            }
            for i in range(EXAMS)
        ],
        "users": [
            {"_id": f"user-{i}", "username": f"user{i}", "email": f"user{i}@email.com"} for i in range(USERS)
        ],
    }


def _category(number: int) -> str:
    return f"category-{number}"


def _configuration(number: int) -> str:
    return f"conf-{number}"


def _question(category: int, number: int) -> Document:
    return {
        "_id": f"question-{category}-{number}",
        "title": f"Question {number} of category {category}",
        "level": number % LEVELS,
        "body": f"What do you know about item {number} of subject {category}? Explain it in your own words.",
        "category": _category(category),
        "language": LANGUAGE,
    }
