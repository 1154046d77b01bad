"""A benchmark that was stopped finds its earlier results."""

from __future__ import annotations

from pathlib import Path

from stored import Store


def test_what_was_put_is_there_again_and_a_line_cut_off_is_not(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.jsonl"
    first = Store(path)
    first.put("a", {"error": 1.5})
    first.put("b", [True])
    path.write_text(path.read_text() + '{"key": "c", "val')

    again = Store(path)
    assert (again.get("a"), again.get("b"), again.get("c")) == ({"error": 1.5}, [True], None)
    again.put("c", 3)
    assert Store(path).get("c") == 3
