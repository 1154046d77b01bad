"""The services behind."""

from mup import EP, MS


class Users(MS):
    @EP("/token")
    def token(self, comm):
        comm.respond({})

    @EP("/user")
    def user(self, comm):
        comm.respond({})

    @EP("/exists")
    def exists(self, comm):
        comm.respond({})

    @EP("/shadow")
    def shadow(self, comm):
        comm.respond({})

    @EP("/history")
    def history(self, comm):
        comm.respond({})


class Stock(MS):
    @EP("/reserve")
    def reserve(self, comm):
        comm.respond({})

    @EP("/release")
    def release(self, comm):
        comm.respond({})

    @EP("/level")
    def level(self, comm):
        comm.respond({})

    @EP("/ship")
    def ship(self, comm):
        comm.respond({})

    @EP("/rows")
    def rows(self, comm):
        comm.respond({})

    @EP("/ready")
    def ready(self, comm):
        comm.respond({})


class Payments(MS):
    @EP("/capture")
    def capture(self, comm):
        comm.respond({})

    @EP("/void")
    def void(self, comm):
        comm.respond({})


class Notify(MS):
    @EP("/send")
    def send(self, comm):
        comm.respond({})

    @EP("/mail")
    def mail(self, comm):
        comm.respond({})

    @EP("/sms")
    def sms(self, comm):
        comm.respond({})

    @EP("/push")
    def push(self, comm):
        comm.respond({})

    @EP("/differs")
    def differs(self, comm):
        comm.respond({})


class Models(MS):
    @EP("/small/text")
    def small_text(self, comm):
        comm.respond({})

    @EP("/large/text")
    def large_text(self, comm):
        comm.respond({})

    @EP("/embed")
    def embed(self, comm):
        comm.respond({})

    @EP("/moderate")
    def moderate(self, comm):
        comm.respond({})

    @EP("/infer")
    def infer(self, comm):
        comm.respond({})

    @EP("/next")
    def next(self, comm):
        comm.respond({})

    @EP("/health")
    def health(self, comm):
        comm.respond({})


class Index(MS):
    @EP("/search")
    def search(self, comm):
        comm.respond({})

    @EP("/document")
    def document(self, comm):
        comm.respond({})

    @EP("/rank")
    def rank(self, comm):
        comm.respond({})

    @EP("/health")
    def health(self, comm):
        comm.respond({})
