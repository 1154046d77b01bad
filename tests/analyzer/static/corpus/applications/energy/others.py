"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Audit(MS):
    @EP("/unknown")
    def unknown_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/parsed")
    def parsed_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/removed")
    def removed_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/done")
    def done_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/billed")
    def billed_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/slow")
    def slow_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/gave-up")
    def gave_up_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/waiting")
    def waiting_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/switched")
    def switched_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/no-row")
    def no_row_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/no-price")
    def no_price_(self, comm: Communication) -> None:
        comm.respond({})


class Pager(MS):
    @EP("/page")
    def page_(self, comm: Communication) -> None:
        comm.respond({})


class Locks(MS):
    @EP("/lock")
    def lock_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/unlock")
    def unlock_(self, comm: Communication) -> None:
        comm.respond({})


class Billing(MS):
    @EP("/undo")
    def undo_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/confirm")
    def confirm_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/create")
    def create_(self, comm: Communication) -> None:
        comm.respond({})


class Registry(MS):
    @EP("/find")
    def find_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/activate")
    def activate_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/remove")
    def remove_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/force")
    def force_(self, comm: Communication) -> None:
        comm.respond({})


class Head(MS):
    @EP("/latest")
    def latest_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/read")
    def read_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/skip")
    def skip_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/hang-up")
    def hang_up_(self, comm: Communication) -> None:
        comm.respond({})


class Mirror(MS):
    @EP("/latest")
    def latest_(self, comm: Communication) -> None:
        comm.respond({})


class DeadLetters(MS):
    @EP("/raw")
    def raw_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/broken")
    def broken_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/partial")
    def partial_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/put")
    def put_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/outage")
    def outage_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/stream")
    def stream_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/write")
    def write_(self, comm: Communication) -> None:
        comm.respond({})


class Store(MS):
    @EP("/reading")
    def reading_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/batch")
    def batch_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/merge")
    def merge_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/close")
    def close_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/rollback")
    def rollback_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/prepare")
    def prepare_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/commit")
    def commit_(self, comm: Communication) -> None:
        comm.respond({})


class Grid(MS):
    @EP("/load")
    def load_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/estimate")
    def estimate_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/wake")
    def wake_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/state")
    def state_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/isolate")
    def isolate_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/restore")
    def restore_(self, comm: Communication) -> None:
        comm.respond({})


class Tariffs(MS):
    @EP("/price")
    def price_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/default")
    def default_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/of")
    def of_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/spot")
    def spot_(self, comm: Communication) -> None:
        comm.respond({})


class Export(MS):
    @EP("/send")
    def send_(self, comm: Communication) -> None:
        comm.respond({})


class Outages(MS):
    @EP("/report")
    def report_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/known")
    def known_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/cancel")
    def cancel_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/create")
    def create_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/touch")
    def touch_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/get")
    def get_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/later")
    def later_(self, comm: Communication) -> None:
        comm.respond({})


class Weather(MS):
    @EP("/now")
    def now_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/yesterday")
    def yesterday_(self, comm: Communication) -> None:
        comm.respond({})


class Zones(MS):
    @EP("/north")
    def north_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/south")
    def south_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/estimate")
    def estimate_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/check")
    def check_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/repair")
    def repair_(self, comm: Communication) -> None:
        comm.respond({})


class Supply(MS):
    @EP("/fallback")
    def fallback_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/now")
    def now_(self, comm: Communication) -> None:
        comm.respond({})


class Demand(MS):
    @EP("/register")
    def register_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/now")
    def now_(self, comm: Communication) -> None:
        comm.respond({})


class Switches(MS):
    @EP("/reset")
    def reset_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/verify")
    def verify_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/open")
    def open_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/close")
    def close_(self, comm: Communication) -> None:
        comm.respond({})


class Forecast(MS):
    @EP("/day")
    def day_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/cheaper")
    def cheaper_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/fix")
    def fix_(self, comm: Communication) -> None:
        comm.respond({})
