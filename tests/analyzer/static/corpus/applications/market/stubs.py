"""The services behind."""

from mup import EP, MS


class Stripe(MS):
    @EP("/charge")
    def charge(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund(self, comm):
        comm.respond({})

    @EP("/fee")
    def fee(self, comm):
        comm.respond({})

    @EP("/ping")
    def ping(self, comm):
        comm.respond({})


class Wallet(MS):
    @EP("/balance")
    def balance(self, comm):
        comm.respond({})

    @EP("/debit")
    def debit(self, comm):
        comm.respond({})

    @EP("/credit")
    def credit(self, comm):
        comm.respond({})

    @EP("/fee")
    def fee(self, comm):
        comm.respond({})

    @EP("/ping")
    def ping(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund(self, comm):
        comm.respond({})


class Store(MS):
    @EP("/begin")
    def begin(self, comm):
        comm.respond({})

    @EP("/rollback")
    def rollback(self, comm):
        comm.respond({})

    @EP("/commit")
    def commit(self, comm):
        comm.respond({})

    @EP("/lock")
    def lock(self, comm):
        comm.respond({})

    @EP("/unlock")
    def unlock(self, comm):
        comm.respond({})

    @EP("/terms")
    def terms(self, comm):
        comm.respond({})

    @EP("/hits")
    def hits(self, comm):
        comm.respond({})

    @EP("/detail")
    def detail(self, comm):
        comm.respond({})

    @EP("/index")
    def index(self, comm):
        comm.respond({})

    @EP("/page")
    def page(self, comm):
        comm.respond({})

    @EP("/near")
    def near(self, comm):
        comm.respond({})

    @EP("/links")
    def links(self, comm):
        comm.respond({})

    @EP("/members")
    def members(self, comm):
        comm.respond({})

    @EP("/rooms")
    def rooms(self, comm):
        comm.respond({})

    @EP("/online")
    def online(self, comm):
        comm.respond({})

    @EP("/sum")
    def sum(self, comm):
        comm.respond({})


class Events(MS):
    @EP("/publish")
    def publish(self, comm):
        comm.respond({})

    @EP("/alert")
    def alert(self, comm):
        comm.respond({})


class Notify(MS):
    @EP("/mail")
    def mail(self, comm):
        comm.respond({})

    @EP("/push")
    def push(self, comm):
        comm.respond({})
