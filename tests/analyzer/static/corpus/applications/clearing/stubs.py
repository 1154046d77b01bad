"""The services behind."""

from mup import EP, MS


class Risk(MS):
    @EP("/score")
    def score_(self, comm):
        comm.respond({})

    @EP("/velocity")
    def velocity_(self, comm):
        comm.respond({})


class Acquirer(MS):
    @EP("/authorize")
    def authorize_(self, comm):
        comm.respond({})

    @EP("/capture")
    def capture_(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund_(self, comm):
        comm.respond({})

    @EP("/payout")
    def payout_(self, comm):
        comm.respond({})


class Ledger(MS):
    @EP("/post")
    def post_(self, comm):
        comm.respond({})

    @EP("/rows")
    def rows_(self, comm):
        comm.respond({})


class Support(MS):
    @EP("/note")
    def note_(self, comm):
        comm.respond({})

    @EP("/notes")
    def notes_(self, comm):
        comm.respond({})


class Keys(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Store(MS):
    @EP("/payment")
    def payment_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})

    @EP("/open")
    def open_(self, comm):
        comm.respond({})

    @EP("/history")
    def history_(self, comm):
        comm.respond({})

    @EP("/clear")
    def clear_(self, comm):
        comm.respond({})

    @EP("/order")
    def order_(self, comm):
        comm.respond({})

    @EP("/cancel")
    def cancel_(self, comm):
        comm.respond({})

    @EP("/old")
    def old_(self, comm):
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm):
        comm.respond({})

    @EP("/last")
    def last_(self, comm):
        comm.respond({})

    @EP("/create")
    def create_(self, comm):
        comm.respond({})


class Stock(MS):
    @EP("/reserve")
    def reserve_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})

    @EP("/available")
    def available_(self, comm):
        comm.respond({})


class Shipping(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/cancel")
    def cancel_(self, comm):
        comm.respond({})

    @EP("/recall")
    def recall_(self, comm):
        comm.respond({})

    @EP("/events")
    def events_(self, comm):
        comm.respond({})


class Sessions(MS):
    @EP("/check")
    def check_(self, comm):
        comm.respond({})


class Pricing(MS):
    @EP("/coupon")
    def coupon_(self, comm):
        comm.respond({})

    @EP("/base")
    def base_(self, comm):
        comm.respond({})


class Catalog(MS):
    @EP("/alternative")
    def alternative_(self, comm):
        comm.respond({})


class Series(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})

    @EP("/bulk")
    def bulk_(self, comm):
        comm.respond({})


class Meters(MS):
    @EP("/rows")
    def rows_(self, comm):
        comm.respond({})

    @EP("/one")
    def one_(self, comm):
        comm.respond({})


class Weather(MS):
    @EP("/rows")
    def rows_(self, comm):
        comm.respond({})

    @EP("/now")
    def now_(self, comm):
        comm.respond({})

    @EP("/forecast")
    def forecast_(self, comm):
        comm.respond({})


class Leases(MS):
    @EP("/take")
    def take_(self, comm):
        comm.respond({})

    @EP("/drop")
    def drop_(self, comm):
        comm.respond({})


class Jobs(MS):
    @EP("/start")
    def start_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})

    @EP("/abort")
    def abort_(self, comm):
        comm.respond({})


class Quota(MS):
    @EP("/hit")
    def hit_(self, comm):
        comm.respond({})


class Metrics(MS):
    @EP("/observe")
    def observe_(self, comm):
        comm.respond({})


class Users(MS):
    @EP("/profile")
    def profile_(self, comm):
        comm.respond({})

    @EP("/name")
    def name_(self, comm):
        comm.respond({})

    @EP("/purge")
    def purge_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Posts(MS):
    @EP("/of")
    def of_(self, comm):
        comm.respond({})

    @EP("/count")
    def count_(self, comm):
        comm.respond({})

    @EP("/purge")
    def purge_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})

    @EP("/recent")
    def recent_(self, comm):
        comm.respond({})

    @EP("/detail")
    def detail_(self, comm):
        comm.respond({})


class Awards(MS):
    @EP("/badge")
    def badge_(self, comm):
        comm.respond({})

    @EP("/purge")
    def purge_(self, comm):
        comm.respond({})


class Notify(MS):
    @EP("/mail")
    def mail_(self, comm):
        comm.respond({})

    @EP("/page")
    def page_(self, comm):
        comm.respond({})
