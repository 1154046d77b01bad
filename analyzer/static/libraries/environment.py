"""What do functions of ``os`` say of the environment?"""

from __future__ import annotations

from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import Const, Setting

__all__ = ["FUNCTIONS"]


def _variable(call: LibraryCall) -> Results | None:
    """Return a variable that has a text as its default; nothing is known of any other."""
    given = [*call.given, *(value for name, value in call.keywords.items() if name == "default")]
    match given:
        case [Const(value=str(name)), Const(value=str()) as default]:
            return call.result(Setting(name, default))
    return None


FUNCTIONS: dict[str, Known] = {
    "os.environ.get": _variable,
    "os.getenv": _variable,
}
