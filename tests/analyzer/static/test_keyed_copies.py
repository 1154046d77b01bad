"""Futures in a dict that a loop over something else looks up by key."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

ROWS = "rows = comm.query('db', 'q', 'c', {}).get()\n"
MADE = ROWS + "fs = {row['id']: comm.call('B', '/b/') for row in rows}\n"
PATH = "query:db.q get:0 fan-out[call:B/b/ get:0] {}:2 respond"

FOLLOWED = {
    "comprehension": "x = [fs[row['id']].get() for row in rows]",
    "another name": "x = {r['id']: fs[r['id']].get() for r in rows}",
    "loop": "for row in rows:\n    x = fs[row['id']].get()",
    "errors of each": "for r in rows:\n    try:\n        fs[r['id']].get()\n    except CallError:\n        pass",
    "looked at between": "print(len(rows), len(fs))\nx = [fs[row['id']].get() for row in rows]",
}
REFUSED = {
    "another key": "x = [fs[row['other']].get() for row in rows]",
    "some of them": "x = [fs[row['id']].get() for row in rows if row]",
    "other items": "x = [fs[row['id']].get() for row in comm.params]",
    "items that changed": "rows.pop()\nx = [fs[row['id']].get() for row in rows]",
    "items that were replaced": "rows[0] = {}\nx = [fs[row['id']].get() for row in rows]",
    "another variable": "rows = rows[1:]\nx = [fs[row['id']].get() for row in rows]",
    "a key that a call makes": "x = [fs[key(row)].get() for row in rows]",
    "the dict for something else": "x = [(len(fs), fs[row['id']].get()) for row in rows]",
    "another dict": "fs = dict(fs)\nx = [fs[row['id']].get() for row in rows]",
}


def source(body: str) -> str:
    return endpoint_source(f"{MADE}{body}\ncomm.respond(1)")


@pytest.mark.parametrize("name", FOLLOWED)
def test_each_is_waited_for_under_its_key(tmp_path: Path, name: str) -> None:
    application = analyse_files(tmp_path, app=source(FOLLOWED[name]))
    assert codes(application) == []
    (path,) = outline(application)
    # Where two items have one key, only the last future is in the dict.
    assert path == PATH.format("early")


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_wait_for_others_is_refused(tmp_path: Path, name: str) -> None:
    application = analyse_files(tmp_path, app=source(REFUSED[name]))
    assert codes(application) == ["MUP040"]


def test_keys_that_are_the_items(tmp_path: Path) -> None:
    body = (
        "fs = {i: comm.call('B', '/b/') for i in comm.params}\ncomm.respond([f.get() for f in fs.values()])"
    )
    assert codes(analyse_files(tmp_path, app=endpoint_source(body))) == []
    ids = "ids = comm.params\nfs = {i: comm.call('B', '/b/') for i in ids}\ncomm.respond([fs[k].get() for k in ids])"
    assert outline(analyse_files(tmp_path, app=endpoint_source(ids))) == [
        "fan-out[call:B/b/ get:0] early:0 respond"
    ]
