"""Write what `mup compare` says as the one comment of the action on a pull request.

    python3 comment.py FILE

A comment of an earlier run is replaced, so a pull request has one per project. Where nothing changed and
there is no comment yet, there will be none. Uses the standard library alone, and GitHub's REST API.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PER_PAGE = 100


def ask(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Send a request to the API of the repository; return what it answers."""
    api, repository = os.environ["GITHUB_API_URL"], os.environ["GITHUB_REPOSITORY"]
    request = urllib.request.Request(
        f"{api}/repos/{repository}/issues/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def earlier(number: str, mark: str) -> int | None:
    """Return the id of the comment that an earlier run wrote."""
    page = 1
    while True:
        found = ask("GET", f"{number}/comments?per_page={PER_PAGE}&page={page}")
        for comment in found:
            if comment["body"].startswith(mark):
                return int(comment["id"])
        if len(found) < PER_PAGE:
            return None
        page += 1


def main() -> None:
    """Write, replace or leave out the comment."""
    number = os.environ["NUMBER"]
    if not number:
        print("no pull request: no comment")
        return
    # GitHub does not show it. Two dashes could end it.
    mark = f"<!-- mup compare {os.environ['PROJECT'].replace('--', '__')} -->\n"
    body = {"body": mark + Path(sys.argv[1]).read_text(encoding="utf-8")}
    try:
        known = earlier(number, mark)
        if known is not None:
            ask("PATCH", f"comments/{known}", body)
        elif os.environ["CHANGED"] != "false":
            ask("POST", f"{number}/comments", body)
    except urllib.error.URLError as error:
        # The token of a pull request from a fork may only read; what was found stands in the job's summary.
        print(
            f"::warning::mup compare: the comment could not be written ({error}); see the summary of the job"
        )


if __name__ == "__main__":
    main()
