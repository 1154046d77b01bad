"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Forms(MS):
    @EP("/incomplete")
    def incomplete_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/invalid")
    def invalid_(self, comm: Communication) -> None:
        comm.respond({})


class Audit(MS):
    @EP("/attempt")
    def attempt_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/odd")
    def odd_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/unknown")
    def unknown_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/forbidden")
    def forbidden_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/malformed")
    def malformed_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/tariff")
    def tariff_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/rejected")
    def rejected_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/adjuster")
    def adjuster_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/converted")
    def converted_(self, comm: Communication) -> None:
        comm.respond({})


class Brigade(MS):
    @EP("/report")
    def report_(self, comm: Communication) -> None:
        comm.respond({})


class Police(MS):
    @EP("/report")
    def report_(self, comm: Communication) -> None:
        comm.respond({})


class Plumber(MS):
    @EP("/order")
    def order_(self, comm: Communication) -> None:
        comm.respond({})


class Ledger(MS):
    @EP("/reserve")
    def reserve_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/settle")
    def settle_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/note")
    def note_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/manual")
    def manual_(self, comm: Communication) -> None:
        comm.respond({})


class Scoring(MS):
    @EP("/fresh")
    def fresh_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/repair")
    def repair_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/mixed")
    def mixed_(self, comm: Communication) -> None:
        comm.respond({})


class Ops(MS):
    @EP("/alert")
    def alert_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/garbage")
    def garbage_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/imported")
    def imported_(self, comm: Communication) -> None:
        comm.respond({})


class Experts(MS):
    @EP("/visit")
    def visit_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/estimate")
    def estimate_(self, comm: Communication) -> None:
        comm.respond({})


class Rooms(MS):
    @EP("/inspect")
    def inspect_(self, comm: Communication) -> None:
        comm.respond({})


class Rates(MS):
    @EP("/surcharge")
    def surcharge_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/standard")
    def standard_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/rate")
    def rate_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/report")
    def report_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/outage")
    def outage_(self, comm: Communication) -> None:
        comm.respond({})


class Payments(MS):
    @EP("/transfer")
    def transfer_(self, comm: Communication) -> None:
        comm.respond({})


class Letters(MS):
    @EP("/rejection")
    def rejection_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/reopened")
    def reopened_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/waiting")
    def waiting_(self, comm: Communication) -> None:
        comm.respond({})


class Policies(MS):
    @EP("/recover")
    def recover_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/default")
    def default_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/unreadable")
    def unreadable_(self, comm: Communication) -> None:
        comm.respond({})


class Coverage(MS):
    @EP("/check")
    def check_(self, comm: Communication) -> None:
        comm.respond({})


class Documents(MS):
    @EP("/upgrade")
    def upgrade_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/quarantine")
    def quarantine_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/photo")
    def photo_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/letter")
    def letter_(self, comm: Communication) -> None:
        comm.respond({})


class Queue(MS):
    @EP("/unsorted")
    def unsorted_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/aged")
    def aged_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/push")
    def push_(self, comm: Communication) -> None:
        comm.respond({})


class Archive(MS):
    @EP("/close")
    def close_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/search")
    def search_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/force")
    def force_(self, comm: Communication) -> None:
        comm.respond({})


class Jobs(MS):
    @EP("/schedule")
    def schedule_(self, comm: Communication) -> None:
        comm.respond({})


class Holders(MS):
    @EP("/notify")
    def notify_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/load")
    def load_(self, comm: Communication) -> None:
        comm.respond({})


class Bank(MS):
    @EP("/pay")
    def pay_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/flag")
    def flag_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/cheque")
    def cheque_(self, comm: Communication) -> None:
        comm.respond({})


class Tariffs(MS):
    @EP("/zone")
    def zone_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/flat")
    def flat_(self, comm: Communication) -> None:
        comm.respond({})


class Files(MS):
    @EP("/open")
    def open_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/damaged")
    def damaged_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/incomplete")
    def incomplete_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/complete")
    def complete_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/shut")
    def shut_(self, comm: Communication) -> None:
        comm.respond({})


class Photos(MS):
    @EP("/ask")
    def ask_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/measure")
    def measure_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/shrink")
    def shrink_(self, comm: Communication) -> None:
        comm.respond({})


class Fraud(MS):
    @EP("/manual")
    def manual_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/enrich")
    def enrich_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/block")
    def block_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/watch")
    def watch_(self, comm: Communication) -> None:
        comm.respond({})


class Cars(MS):
    @EP("/plate")
    def plate_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/expert")
    def expert_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/garage")
    def garage_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/scan")
    def scan_(self, comm: Communication) -> None:
        comm.respond({})


class Homes(MS):
    @EP("/floor")
    def floor_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/other")
    def other_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/visit")
    def visit_(self, comm: Communication) -> None:
        comm.respond({})


class Shares(MS):
    @EP("/store")
    def store_(self, comm: Communication) -> None:
        comm.respond({})


class Batches(MS):
    @EP("/post")
    def post_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/amounts")
    def amounts_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/dates")
    def dates_(self, comm: Communication) -> None:
        comm.respond({})


class Adjusters(MS):
    @EP("/idle")
    def idle_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/assign")
    def assign_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/number")
    def number_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/take")
    def take_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/greet")
    def greet_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/hire")
    def hire_(self, comm: Communication) -> None:
        comm.respond({})


class Addresses(MS):
    @EP("/lookup")
    def lookup_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/town")
    def town_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/clean")
    def clean_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/reject")
    def reject_(self, comm: Communication) -> None:
        comm.respond({})


class Events(MS):
    @EP("/count")
    def count_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/garbage")
    def garbage_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/dead")
    def dead_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/paid")
    def paid_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/lost")
    def lost_(self, comm: Communication) -> None:
        comm.respond({})


class Values(MS):
    @EP("/appraise")
    def appraise_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/record")
    def record_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/empty")
    def empty_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/broken")
    def broken_(self, comm: Communication) -> None:
        comm.respond({})


class Perils(MS):
    @EP("/learn")
    def learn_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/known")
    def known_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/fire")
    def fire_(self, comm: Communication) -> None:
        comm.respond({})


class Quotes(MS):
    @EP("/extra")
    def extra_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/base")
    def base_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/partial")
    def partial_(self, comm: Communication) -> None:
        comm.respond({})
