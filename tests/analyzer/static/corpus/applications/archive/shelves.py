"""What all requests share."""


class Scope:
    tenant = "none"


class Batch:
    number = 0
    last = "first"


class Session:
    first = "nobody"
    others = "nobody"


class Remote:
    """A shelf elsewhere, asked on behalf of a request."""

    def __contains__(self, comm) -> bool:
        return bool(comm.call("Store", "/text").get())

    def __getitem__(self, comm) -> dict:
        return comm.call("Store", "/scan").get()

    def __setitem__(self, comm, row) -> None:
        comm.call("Store", "/print", row).get()

    def __delitem__(self, comm) -> None:
        comm.call("Store", "/drop").get()


class Index:
    def __init__(self) -> None:
        self.rows = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __setitem__(self, key, row) -> None:
        self.rows[key] = row


class Stamps:
    """What is kept here gets an id, and loses everything when it is released."""

    def __init__(self) -> None:
        self.rows = {}

    def __setitem__(self, key, row) -> None:
        row["id"] = key
        self.rows[key] = row

    def __delitem__(self, row) -> None:
        row.clear()


class Policy:
    traced = False

    def trace(self) -> None:
        self.__class__.traced = True


ROUTES = ["/scan"]
ARCHIVE = Remote()
INDEX = Index()
STAMPS = Stamps()
