"""The services behind."""

from mup import EP, MS


class AlertStore(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class Approvals(MS):
    @EP("/request")
    def request_(self, comm):
        comm.respond({})


class Audit(MS):
    @EP("/record")
    def record_(self, comm):
        comm.respond({})


class Auth(MS):
    @EP("/introspect")
    def introspect_(self, comm):
        comm.respond({})


class BackupPayments(MS):
    @EP("/charge")
    def charge_(self, comm):
        comm.respond({})


class Broker(MS):
    @EP("/price")
    def price_(self, comm):
        comm.respond({})


class Bus(MS):
    @EP("/publish")
    def publish_(self, comm):
        comm.respond({})


class ColdStore(MS):
    @EP("/range")
    def range_(self, comm):
        comm.respond({})


class Collections(MS):
    @EP("/open")
    def open_(self, comm):
        comm.respond({})


class Contracts(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/update")
    def update_(self, comm):
        comm.respond({})


class Crm(MS):
    @EP("/case")
    def case_(self, comm):
        comm.respond({})

    @EP("/customer")
    def customer_(self, comm):
        comm.respond({})

    @EP("/note")
    def note_(self, comm):
        comm.respond({})

    @EP("/preferences")
    def preferences_(self, comm):
        comm.respond({})


class CustomerIndex(MS):
    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class DeadLetters(MS):
    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Dedup(MS):
    @EP("/claim")
    def claim_(self, comm):
        comm.respond({})


class Email(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Exchange(MS):
    @EP("/price")
    def price_(self, comm):
        comm.respond({})


class Flags(MS):
    @EP("/evaluate")
    def evaluate_(self, comm):
        comm.respond({})


class Flexibility(MS):
    @EP("/candidates")
    def candidates_(self, comm):
        comm.respond({})


class Gateway(MS):
    @EP("/cancel")
    def cancel_(self, comm):
        comm.respond({})

    @EP("/configure")
    def configure_(self, comm):
        comm.respond({})

    @EP("/flash")
    def flash_(self, comm):
        comm.respond({})

    @EP("/presence")
    def presence_(self, comm):
        comm.respond({})

    @EP("/rollback")
    def rollback_(self, comm):
        comm.respond({})

    @EP("/send")
    def send_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})


class Geo(MS):
    @EP("/lookup")
    def lookup_(self, comm):
        comm.respond({})


class Idempotency(MS):
    @EP("/lookup")
    def lookup_(self, comm):
        comm.respond({})

    @EP("/store")
    def store_(self, comm):
        comm.respond({})


class Imports(MS):
    @EP("/rejects")
    def rejects_(self, comm):
        comm.respond({})


class Inventory(MS):
    @EP("/release")
    def release_(self, comm):
        comm.respond({})

    @EP("/reserve")
    def reserve_(self, comm):
        comm.respond({})


class InvoiceStore(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/mark")
    def mark_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class Jobs(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/fail")
    def fail_(self, comm):
        comm.respond({})

    @EP("/finish")
    def finish_(self, comm):
        comm.respond({})

    @EP("/progress")
    def progress_(self, comm):
        comm.respond({})


class Layouts(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})


class Ledger(MS):
    @EP("/balance")
    def balance_(self, comm):
        comm.respond({})

    @EP("/post")
    def post_(self, comm):
        comm.respond({})


class Limiter(MS):
    @EP("/take")
    def take_(self, comm):
        comm.respond({})


class Locks(MS):
    @EP("/acquire")
    def acquire_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})


class MeterIndex(MS):
    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class MeterStore(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/insert")
    def insert_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/update")
    def update_(self, comm):
        comm.respond({})


class Oncall(MS):
    @EP("/schedule")
    def schedule_(self, comm):
        comm.respond({})


class PagerHub(MS):
    @EP("/resolve")
    def resolve_(self, comm):
        comm.respond({})

    @EP("/trigger")
    def trigger_(self, comm):
        comm.respond({})


class Payments(MS):
    @EP("/charge")
    def charge_(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund_(self, comm):
        comm.respond({})


class Pdf(MS):
    @EP("/render")
    def render_(self, comm):
        comm.respond({})


class Pki(MS):
    @EP("/issue")
    def issue_(self, comm):
        comm.respond({})

    @EP("/revoke")
    def revoke_(self, comm):
        comm.respond({})


class Profiles(MS):
    @EP("/baseline")
    def baseline_(self, comm):
        comm.respond({})

    @EP("/expected")
    def expected_(self, comm):
        comm.respond({})


class Push(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class RunStore(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})

    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/events")
    def events_(self, comm):
        comm.respond({})


class SiteIndex(MS):
    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Sms(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Spool(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})


class Suppliers(MS):
    @EP("/offer")
    def offer_(self, comm):
        comm.respond({})


class TariffStore(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class Tsdb(MS):
    @EP("/latest")
    def latest_(self, comm):
        comm.respond({})

    @EP("/range")
    def range_(self, comm):
        comm.respond({})

    @EP("/rollup")
    def rollup_(self, comm):
        comm.respond({})

    @EP("/write")
    def write_(self, comm):
        comm.respond({})


class Weather(MS):
    @EP("/current")
    def current_(self, comm):
        comm.respond({})

    @EP("/forecast")
    def forecast_(self, comm):
        comm.respond({})
