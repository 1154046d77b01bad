"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Air(MS):
    @EP("/land")
    def land_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/start")
    def start_(self, comm: Communication) -> None:
        comm.respond({})


class Archive(MS):
    @EP("/diff")
    def diff_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/put")
    def put_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/seal")
    def seal_(self, comm: Communication) -> None:
        comm.respond({})


class Auth(MS):
    @EP("/whoami")
    def whoami_(self, comm: Communication) -> None:
        comm.respond({})


class Beds(MS):
    @EP("/give")
    def give_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/take")
    def take_(self, comm: Communication) -> None:
        comm.respond({})


class Billing(MS):
    @EP("/fee")
    def fee_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/invoice")
    def invoice_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/tariff")
    def tariff_(self, comm: Communication) -> None:
        comm.respond({})


class Cache(MS):
    @EP("/get")
    def get_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/put")
    def put_(self, comm: Communication) -> None:
        comm.respond({})


class Experts(MS):
    @EP("/vote")
    def vote_(self, comm: Communication) -> None:
        comm.respond({})


class Fax(MS):
    @EP("/send")
    def send_(self, comm: Communication) -> None:
        comm.respond({})


class Imaging(MS):
    @EP("/list")
    def list_(self, comm: Communication) -> None:
        comm.respond({})


class Insurance(MS):
    @EP("/approve")
    def approve_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/deductible")
    def deductible_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/policy")
    def policy_(self, comm: Communication) -> None:
        comm.respond({})


class Lab(MS):
    @EP("/fitness")
    def fitness_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/order")
    def order_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/result")
    def result_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/samples")
    def samples_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/summary")
    def summary_(self, comm: Communication) -> None:
        comm.respond({})


class Locks(MS):
    @EP("/acquire")
    def acquire_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/free")
    def free_(self, comm: Communication) -> None:
        comm.respond({})


class Mail(MS):
    @EP("/send")
    def send_(self, comm: Communication) -> None:
        comm.respond({})


class Monitor(MS):
    @EP("/now")
    def now_(self, comm: Communication) -> None:
        comm.respond({})


class Pager(MS):
    @EP("/page")
    def page_(self, comm: Communication) -> None:
        comm.respond({})


class Pharmacy(MS):
    @EP("/check")
    def check_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/dispense")
    def dispense_(self, comm: Communication) -> None:
        comm.respond({})


class Printer(MS):
    @EP("/print")
    def print_(self, comm: Communication) -> None:
        comm.respond({})


class Rooms(MS):
    @EP("/release")
    def release_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/reserve")
    def reserve_(self, comm: Communication) -> None:
        comm.respond({})


class Sms(MS):
    @EP("/send")
    def send_(self, comm: Communication) -> None:
        comm.respond({})


class Staff(MS):
    @EP("/dismiss")
    def dismiss_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/free")
    def free_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/load")
    def load_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/name")
    def name_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/refer")
    def refer_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/surgeon")
    def surgeon_(self, comm: Communication) -> None:
        comm.respond({})


class Wards(MS):
    @EP("/children")
    def children_(self, comm: Communication) -> None:
        comm.respond({})
