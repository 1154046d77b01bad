"""The services behind."""

from mup import EP, MS


class Audit(MS):
    @EP("/record")
    def record(self, comm):
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

    @EP("/patients/get")
    def patients_get(self, comm):
        comm.respond({})

    @EP("/patients/list")
    def patients_list(self, comm):
        comm.respond({})

    @EP("/patients/put")
    def patients_put(self, comm):
        comm.respond({})

    @EP("/patients/history")
    def patients_history(self, comm):
        comm.respond({})

    @EP("/slots/get")
    def slots_get(self, comm):
        comm.respond({})

    @EP("/slots/list")
    def slots_list(self, comm):
        comm.respond({})

    @EP("/slots/put")
    def slots_put(self, comm):
        comm.respond({})

    @EP("/prescriptions/put")
    def prescriptions_put(self, comm):
        comm.respond({})

    @EP("/parcels/put")
    def parcels_put(self, comm):
        comm.respond({})

    @EP("/parcels/list")
    def parcels_list(self, comm):
        comm.respond({})

    @EP("/loans/put")
    def loans_put(self, comm):
        comm.respond({})


class Events(MS):
    @EP("/publish")
    def publish(self, comm):
        comm.respond({})


class Model(MS):
    @EP("/score")
    def score(self, comm):
        comm.respond({})


class Staff(MS):
    @EP("/next")
    def next(self, comm):
        comm.respond({})

    @EP("/names")
    def names(self, comm):
        comm.respond({})


class Notify(MS):
    @EP("/sms")
    def sms(self, comm):
        comm.respond({})

    @EP("/mail")
    def mail(self, comm):
        comm.respond({})


class Drugs(MS):
    @EP("/interactions")
    def interactions(self, comm):
        comm.respond({})


class PostApi(MS):
    @EP("/price")
    def price(self, comm):
        comm.respond({})

    @EP("/track")
    def track(self, comm):
        comm.respond({})


class ExpressApi(MS):
    @EP("/price")
    def price(self, comm):
        comm.respond({})

    @EP("/track")
    def track(self, comm):
        comm.respond({})


class Geo(MS):
    @EP("/zone")
    def zone(self, comm):
        comm.respond({})


class Labels(MS):
    @EP("/render")
    def render(self, comm):
        comm.respond({})

    @EP("/sheet")
    def sheet(self, comm):
        comm.respond({})


class Air(MS):
    @EP("/cost")
    def cost(self, comm):
        comm.respond({})


class Road(MS):
    @EP("/cost")
    def cost(self, comm):
        comm.respond({})


class Locks(MS):
    @EP("/acquire")
    def acquire(self, comm):
        comm.respond({})

    @EP("/release")
    def release(self, comm):
        comm.respond({})


class Cache(MS):
    @EP("/get")
    def get(self, comm):
        comm.respond({})

    @EP("/set")
    def set(self, comm):
        comm.respond({})


class Accounts(MS):
    @EP("/debit")
    def debit(self, comm):
        comm.respond({})

    @EP("/credit")
    def credit(self, comm):
        comm.respond({})

    @EP("/get")
    def get(self, comm):
        comm.respond({})

    @EP("/movements")
    def movements(self, comm):
        comm.respond({})

    @EP("/list")
    def list(self, comm):
        comm.respond({})

    @EP("/close")
    def close(self, comm):
        comm.respond({})


class Fraud(MS):
    @EP("/check")
    def check(self, comm):
        comm.respond({})


class Rates(MS):
    @EP("/rate")
    def rate(self, comm):
        comm.respond({})


class Score(MS):
    @EP("/income")
    def income(self, comm):
        comm.respond({})

    @EP("/debts")
    def debts(self, comm):
        comm.respond({})

    @EP("/collateral")
    def collateral(self, comm):
        comm.respond({})
