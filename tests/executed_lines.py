"""Cost of a function in executed lines of Python, which a busy machine does not change.

Loops inside of libraries (of numpy, or ``x in some_list``) do not count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["executed_lines"]


def executed_lines(function: Callable[[], object], *folders: str) -> int:
    """Return how many lines of files in some folders (parts of their paths) a function executes."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line if any(folder in frame.f_code.co_filename for folder in folders) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
