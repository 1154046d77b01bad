"""Tables that nobody may change, and settings with attributes."""

from collections import ChainMap
from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace

ROUTES: Mapping[str, str] = MappingProxyType({"pro": "/pro", "team": "/team"})
DEFAULTS = {"path": "/on", "fallback": "/off"}
PATHS = SimpleNamespace(mail="/mail", chat="/chat")
SETTINGS = SimpleNamespace(**DEFAULTS)
LAYERS = ChainMap({"path": "/low"}, DEFAULTS)

_known = {}
KNOWN = MappingProxyType(_known)


def known(name):
    def register(f):
        _known[name] = f
        return f

    return register


@known("post")
def post(comm):
    comm.call("Tools", "/post").get()


@known("bike")
def bike(comm):
    comm.call("Tools", "/bike").get()


class Menu:
    def __init__(self) -> None:
        self._items = {}

    @property
    def items(self):
        return MappingProxyType(self._items)

    def item(self, name, f):
        self._items[name] = f


menu = Menu()
menu.item("post", post)
menu.item("bike", bike)
