"""The services behind."""

from mup import EP, MS


class EuPro(MS):
    @EP("/offers")
    def offers_(self, comm):
        comm.respond({})


class Eu(MS):
    @EP("/offers")
    def offers_(self, comm):
        comm.respond({})


class UsPro(MS):
    @EP("/offers")
    def offers_(self, comm):
        comm.respond({})


class Us(MS):
    @EP("/offers")
    def offers_(self, comm):
        comm.respond({})


class Notify(MS):
    @EP("/mail")
    def mail_(self, comm):
        comm.respond({})


class Loyalty(MS):
    @EP("/add")
    def add_(self, comm):
        comm.respond({})

    @EP("/member")
    def member_(self, comm):
        comm.respond({})

    @EP("/used")
    def used_(self, comm):
        comm.respond({})

    @EP("/score")
    def score_(self, comm):
        comm.respond({})


class Sessions(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})


class Trips(MS):
    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})

    @EP("/audit")
    def audit_(self, comm):
        comm.respond({})

    @EP("/tree")
    def tree_(self, comm):
        comm.respond({})

    @EP("/names")
    def names_(self, comm):
        comm.respond({})

    @EP("/join")
    def join_(self, comm):
        comm.respond({})


class Hotels(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/book")
    def book_(self, comm):
        comm.respond({})

    @EP("/score")
    def score_(self, comm):
        comm.respond({})


class Reviews(MS):
    @EP("/of")
    def of_(self, comm):
        comm.respond({})

    @EP("/score")
    def score_(self, comm):
        comm.respond({})


class Encoder(MS):
    @EP("/encode")
    def encode_(self, comm):
        comm.respond({})

    @EP("/split")
    def split_(self, comm):
        comm.respond({})

    @EP("/part")
    def part_(self, comm):
        comm.respond({})

    @EP("/join")
    def join_(self, comm):
        comm.respond({})

    @EP("/gif")
    def gif_(self, comm):
        comm.respond({})

    @EP("/ping")
    def ping_(self, comm):
        comm.respond({})


class Images(MS):
    @EP("/thumb")
    def thumb_(self, comm):
        comm.respond({})

    @EP("/ping")
    def ping_(self, comm):
        comm.respond({})


class Storage(MS):
    @EP("/begin")
    def begin_(self, comm):
        comm.respond({})

    @EP("/part")
    def part_(self, comm):
        comm.respond({})

    @EP("/abort")
    def abort_(self, comm):
        comm.respond({})

    @EP("/finish")
    def finish_(self, comm):
        comm.respond({})


class Metrics(MS):
    @EP("/slow")
    def slow_(self, comm):
        comm.respond({})

    @EP("/upload")
    def upload_(self, comm):
        comm.respond({})


class Tags(MS):
    @EP("/of")
    def of_(self, comm):
        comm.respond({})

    @EP("/with")
    def with_(self, comm):
        comm.respond({})

    @EP("/popular")
    def popular_(self, comm):
        comm.respond({})


class Vision(MS):
    @EP("/nudity")
    def nudity_(self, comm):
        comm.respond({})

    @EP("/violence")
    def violence_(self, comm):
        comm.respond({})


class Review(MS):
    @EP("/queue")
    def queue_(self, comm):
        comm.respond({})
