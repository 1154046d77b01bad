"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Index(MS):
    @EP("/page")
    def page_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/put")
    def put_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/search")
    def search_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/related")
    def related_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm: Communication) -> None:
        comm.respond({})


class Accounts(MS):
    @EP("/whoami")
    def whoami_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/limits")
    def limits_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/like")
    def like_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/hook")
    def hook_(self, comm: Communication) -> None:
        comm.respond({})


class Packager(MS):
    @EP("/low-manifest")
    def low_manifest_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/high-manifest")
    def high_manifest_(self, comm: Communication) -> None:
        comm.respond({})


class Rails(MS):
    @EP("/continue")
    def continue_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/trending")
    def trending_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/new")
    def new_(self, comm: Communication) -> None:
        comm.respond({})


class Thumbs(MS):
    @EP("/render")
    def render_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm: Communication) -> None:
        comm.respond({})


class Storage(MS):
    @EP("/ticket")
    def ticket_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm: Communication) -> None:
        comm.respond({})


class Scanner(MS):
    @EP("/scan")
    def scan_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/deep")
    def deep_(self, comm: Communication) -> None:
        comm.respond({})


class Pricing(MS):
    @EP("/fast")
    def fast_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/exact")
    def exact_(self, comm: Communication) -> None:
        comm.respond({})
