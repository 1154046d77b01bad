"""How are differences between two versions, and findings in the new one, written for other programs?

As Markdown for a comment, as workflow commands that GitHub shows beside lines, and as SARIF 2.1.0, the
format of code scanning (OASIS, https://docs.oasis-open.org/sarif/sarif/v2.1.0/).
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.static.diagnostics import Diagnostic
    from analyzer.static.project_version import Difference

__all__ = ["cell", "code", "markdown", "place", "sarif", "subjects", "workflow_commands"]

SHOWN = 3
"""Subjects of a difference that are listed; of more it is said how many."""

LEVELS = {"error": "error", "warning": "warning", "info": "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def subjects(difference: Difference) -> str:
    """Return what a difference is about: some names, and how many more there are."""
    names = difference.subjects
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: SHOWN - 1])} and {len(names) - SHOWN + 1} more"


def place(difference: Difference) -> str:
    """Return ``services.py:41``; "" if nothing in the new version says it."""
    if not difference.file:
        return ""
    return f"{difference.file}:{difference.line}" if difference.line else difference.file


def markdown(base: str, head: str, differences: Sequence[Difference]) -> str:
    """Return a comment for a pull request."""
    if not differences:
        return f"**mup**: nothing changed in meaning between {code(base)} and {code(head)}.\n"
    count = len(differences)
    lines = [
        f"**mup**: {count} difference{'s' if count > 1 else ''} in meaning, {code(base)} -> {code(head)}",
        "",
        "| what | where | difference | place |",
        "|---|---|---|---|",
    ]
    for one in differences:
        spot = code(place(one)) if one.file else ""
        lines.append(f"| {one.kind} | {code(subjects(one))} | {cell(one.text)} | {spot} |")
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Return a text that Markdown shows as it is, in a cell of a table."""
    escaped = "".join(f"\\{c}" if c in "\\`*_{}[]<>|#" else c for c in text)
    return " ".join(escaped.split())


def code(text: str) -> str:
    """Return a text as code that Markdown shows as it is."""
    text = " ".join(text.split()).replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def workflow_commands(
    differences: Sequence[Difference], findings: Sequence[Diagnostic], prefix: str, source: str
) -> list[str]:
    """Return a workflow command of GitHub for everything that has a place.

    Args:
        differences: Files are relative to the project's folder.
        findings: Files are relative to the source folder.
        prefix: Path of the project's folder in the repository, with a slash behind it; "" if it is the whole.
        source: The same of the source folder.
    """
    lines = []
    for finding in findings:
        level = LEVELS[finding.severity].replace("note", "notice")
        text = f"{finding.message}\n{finding.hint}" if finding.hint else finding.message
        lines.append(_command(level, f"{source}{finding.file}", finding.line, finding.code, text))
    for one in differences:
        text = f"{subjects(one)}: {one.text}"
        lines.append(_command("notice", f"{prefix}{one.file}", one.line, f"mup: {one.kind}", text))
    return lines


def _command(level: str, file: str, line: int, title: str, text: str) -> str:
    properties = {"file": file, "line": str(line) if line else "", "title": title}
    listed = ",".join(f"{name}={_escaped(value, ',:')}" for name, value in properties.items() if value)
    return f"::{level} {listed}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    """Escape what a workflow command would end at, as GitHub's own toolkit does."""
    for character in ("%", "\r", "\n", *more):
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def sarif(
    differences: Sequence[Difference], findings: Sequence[Diagnostic], prefix: str, source: str
) -> dict[str, Any]:
    """Return a SARIF log; the arguments are those of ``workflow_commands``."""
    from analyzer.static.diagnostics import CODES

    rules: dict[str, dict[str, Any]] = {}
    results = []
    for finding in findings:
        rules.setdefault(finding.code, _rule(finding.code, CODES[finding.code][1]))
        text = f"{finding.message}. {finding.hint}" if finding.hint else finding.message
        results.append(
            _result(
                finding.code,
                LEVELS[finding.severity],
                text,
                f"{source}{finding.file}" if finding.file else "",
                {
                    "startLine": finding.line,
                    "startColumn": finding.column,
                    "endLine": finding.end_line,
                    "endColumn": finding.end_column,
                },
            )
        )
    for one in differences:
        name = f"mup/{one.kind.replace(' ', '-')}"
        rules.setdefault(name, _rule(name, f"a difference between two versions: {one.kind}"))
        text = f"{subjects(one)}: {one.text}"
        file = f"{prefix}{one.file}" if one.file else ""
        results.append(_result(name, "note", text, file, {"startLine": one.line}))
    driver = {
        "name": "mup",
        "version": importlib.metadata.version("mup-framework"),
        "rules": list(rules.values()),
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "shortDescription": {"text": text}}


def _result(rule: str, level: str, text: str, file: str, region: dict[str, int]) -> dict[str, Any]:
    """Return one result; a file scanner shows nothing without a place, so that of the whole is left out."""
    result: dict[str, Any] = {"ruleId": rule, "level": level, "message": {"text": text}}
    if file:
        location: dict[str, Any] = {"artifactLocation": {"uri": _uri(file), "uriBaseId": "%SRCROOT%"}}
        known = {name: number for name, number in region.items() if number}
        if known.get("startLine"):
            location["region"] = known
        result["locations"] = [{"physicalLocation": location}]
    return result


def _uri(file: str) -> str:
    from urllib.parse import quote

    return quote(os.fsencode(file))
