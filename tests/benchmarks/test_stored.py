"""A benchmark that was stopped finds its earlier results."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored import Store, run_resumable

from mup.errors import UsageError


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


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (UsageError("no such file"), 2, "error: no such file"),
        (KeyboardInterrupt(), 130, "stopped; the same command continues"),
        (None, 7, ""),
    ],
)
def test_it_ends_in_a_line(
    raised: BaseException | None, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def main() -> int:
        if raised is not None:
            raise raised
        return 7

    with pytest.raises(SystemExit) as ended:
        run_resumable(main)
    assert ended.value.code == status
    assert capsys.readouterr().err.strip() == said
