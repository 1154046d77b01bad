"""Objects that save what is assigned to them, if it is new."""


class Profile:
    def __init__(self, comm, name):
        self._comm = comm
        self._name = name
        self._visits = 0

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, value):
        if value != self._name:
            self._comm.call("Tools", "/rename", {"name": value}).get()
        self._name = value

    @property
    def visits(self):
        return self._visits

    @visits.setter
    def visits(self, value):
        if value % 10 == 0:
            self._comm.call("Tools", "/track", {"visits": value}).get()
        self._visits = value


class Saved:
    """A field that is saved, if it has one of the values that matter."""

    def __init__(self, path, always=False):
        self.path = path
        self.always = always

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return obj.values.get(self.name)

    def __set__(self, obj, value):
        if value or self.always:
            obj.comm.call("Tools", self.path, {"value": value}).get()
        obj.values[self.name] = value


class Account:
    email = Saved("/mail")
    phone = Saved("/chat", always=True)

    def __init__(self, comm):
        self.comm = comm
        self.values = {}


class Cells:
    def __init__(self, comm):
        self.comm = comm
        self.cells = {}

    def __getitem__(self, key):
        return self.cells.get(key)

    def __setitem__(self, key, value):
        if self.cells.get(key) != value:
            self.comm.call("Tools", "/cell/a").get()
        self.cells[key] = value


class Guarded:
    def __init__(self, comm):
        object.__setattr__(self, "comm", comm)

    def __setattr__(self, name, value):
        if not value:
            raise ValueError(name)
        if name == "where":
            self.comm.call("Tools", "/on").get()
        object.__setattr__(self, name, value)
