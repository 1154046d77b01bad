"""What do functions of ``os`` say of the environment?"""

from __future__ import annotations

from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import Const, Setting

__all__ = ["FUNCTIONS"]


def _variable(call: LibraryCall) -> Results | None:
    """Return a variable that has a text as its default; nothing is known of any other."""
    given = [*call.given, *(value for name, value in call.keywords.items() if name == "default")]
    if len(given) != 2 or not all(isinstance(one, Const) and one.kind is str for one in given):
        return None
    name, default = given
    return call.result(Setting(str(name.python()[1]), default)) if isinstance(default, Const) else None


FUNCTIONS: dict[str, Known] = {
    "os.environ.get": _variable,
    "os.getenv": _variable,
}
