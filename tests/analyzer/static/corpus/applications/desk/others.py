"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Broker(MS):
    @EP("/publish")
    def publish_(self, comm: Communication) -> None:
        comm.respond({})


class Mail(MS):
    @EP("/send")
    def send_(self, comm: Communication) -> None:
        comm.respond({})


class Survey(MS):
    @EP("/invite")
    def invite_(self, comm: Communication) -> None:
        comm.respond({})


class Users(MS):
    @EP("/user")
    def user_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/exists")
    def exists_(self, comm: Communication) -> None:
        comm.respond({})


class Pager(MS):
    @EP("/page")
    def page_(self, comm: Communication) -> None:
        comm.respond({})


class Phone(MS):
    @EP("/ring")
    def ring_(self, comm: Communication) -> None:
        comm.respond({})


class Archive(MS):
    @EP("/put")
    def put_(self, comm: Communication) -> None:
        comm.respond({})
