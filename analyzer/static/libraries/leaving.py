"""Which functions of libraries never return, and what do they raise?"""

from __future__ import annotations

__all__ = ["LEAVING"]

LEAVING = {
    "builtins.exit": "builtins.SystemExit",
    "builtins.quit": "builtins.SystemExit",
    "os._exit": "builtins.SystemExit",
    "os.abort": "builtins.SystemExit",
    "sys.exit": "builtins.SystemExit",
    "typing.assert_never": "builtins.AssertionError",
    "typing_extensions.assert_never": "builtins.AssertionError",
}
"""The exception they raise, by their dotted name; what ends the process at once leaves the request, too."""
