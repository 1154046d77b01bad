"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Stock(MS):
    @EP("/levels")
    def levels_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/level")
    def level_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/reserve")
    def reserve_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/release")
    def release_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/ping")
    def ping_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/restock")
    def restock_(self, comm: Communication) -> None:
        comm.respond({})


class Payment(MS):
    @EP("/charge")
    def charge_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/refund")
    def refund_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/ping")
    def ping_(self, comm: Communication) -> None:
        comm.respond({})


class Catalog(MS):
    @EP("/children")
    def children_(self, comm: Communication) -> None:
        comm.respond({})


class Vendors(MS):
    @EP("/offer")
    def offer_(self, comm: Communication) -> None:
        comm.respond({})


class Jobs(MS):
    @EP("/state")
    def state_(self, comm: Communication) -> None:
        comm.respond({})


class CustomersBackup(MS):
    @EP("/item")
    def item_(self, comm: Communication) -> None:
        comm.respond({})


class Audit(MS):
    @EP("/sample")
    def sample_(self, comm: Communication) -> None:
        comm.respond({})


class Feeds(MS):
    @EP("/pull")
    def pull_(self, comm: Communication) -> None:
        comm.respond({})


class Shipping(MS):
    @EP("/label")
    def label_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/slot")
    def slot_(self, comm: Communication) -> None:
        comm.respond({})


class Auth(MS):
    @EP("/verify")
    def verify_(self, comm: Communication) -> None:
        comm.respond({})
