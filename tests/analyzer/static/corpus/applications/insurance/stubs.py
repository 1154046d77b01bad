"""The services behind."""

from mup import EP, MS


class Assessors(MS):
    @EP("/book")
    def book_(self, comm):
        comm.respond({})

    @EP("/near")
    def near_(self, comm):
        comm.respond({})

    @EP("/of_claim")
    def of_claim_(self, comm):
        comm.respond({})


class Audit(MS):
    @EP("/write")
    def write_(self, comm):
        comm.respond({})


class BackupPayments(MS):
    @EP("/charge")
    def charge_(self, comm):
        comm.respond({})


class Cache(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Calendar(MS):
    @EP("/add")
    def add_(self, comm):
        comm.respond({})

    @EP("/due")
    def due_(self, comm):
        comm.respond({})


class CaseStore(MS):
    @EP("/assign")
    def assign_(self, comm):
        comm.respond({})

    @EP("/close")
    def close_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/open")
    def open_(self, comm):
        comm.respond({})


class ClaimStore(MS):
    @EP("/evidence")
    def evidence_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Collections(MS):
    @EP("/hand_over")
    def hand_over_(self, comm):
        comm.respond({})


class Contracts(MS):
    @EP("/tier")
    def tier_(self, comm):
        comm.respond({})


class Customers(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/merge")
    def merge_(self, comm):
        comm.respond({})


class Documents(MS):
    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/ocr")
    def ocr_(self, comm):
        comm.respond({})

    @EP("/render")
    def render_(self, comm):
        comm.respond({})

    @EP("/store")
    def store_(self, comm):
        comm.respond({})


class EventStore(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})

    @EP("/read")
    def read_(self, comm):
        comm.respond({})

    @EP("/save_snapshot")
    def save_snapshot_(self, comm):
        comm.respond({})

    @EP("/snapshot")
    def snapshot_(self, comm):
        comm.respond({})


class Features(MS):
    @EP("/flags")
    def flags_(self, comm):
        comm.respond({})


class Garages(MS):
    @EP("/book")
    def book_(self, comm):
        comm.respond({})


class Geo(MS):
    @EP("/risk")
    def risk_(self, comm):
        comm.respond({})


class Idempotency(MS):
    @EP("/begin")
    def begin_(self, comm):
        comm.respond({})

    @EP("/finish")
    def finish_(self, comm):
        comm.respond({})


class Identity(MS):
    @EP("/introspect")
    def introspect_(self, comm):
        comm.respond({})

    @EP("/login")
    def login_(self, comm):
        comm.respond({})

    @EP("/verify")
    def verify_(self, comm):
        comm.respond({})


class InvoiceStore(MS):
    @EP("/attempts")
    def attempts_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/mark")
    def mark_(self, comm):
        comm.respond({})

    @EP("/overdue")
    def overdue_(self, comm):
        comm.respond({})


class Jobs(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/finish")
    def finish_(self, comm):
        comm.respond({})


class Ledger(MS):
    @EP("/balance")
    def balance_(self, comm):
        comm.respond({})

    @EP("/post")
    def post_(self, comm):
        comm.respond({})

    @EP("/reverse")
    def reverse_(self, comm):
        comm.respond({})


class Locks(MS):
    @EP("/acquire")
    def acquire_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})


class Models(MS):
    @EP("/explain")
    def explain_(self, comm):
        comm.respond({})

    @EP("/score")
    def score_(self, comm):
        comm.respond({})


class Mutual(MS):
    @EP("/bind")
    def bind_(self, comm):
        comm.respond({})

    @EP("/rate")
    def rate_(self, comm):
        comm.respond({})

    @EP("/session")
    def session_(self, comm):
        comm.respond({})


class News(MS):
    @EP("/latest")
    def latest_(self, comm):
        comm.respond({})


class NordicRe(MS):
    @EP("/bind")
    def bind_(self, comm):
        comm.respond({})

    @EP("/cancel")
    def cancel_(self, comm):
        comm.respond({})

    @EP("/quote")
    def quote_(self, comm):
        comm.respond({})


class Notifications(MS):
    @EP("/email")
    def email_(self, comm):
        comm.respond({})

    @EP("/letter")
    def letter_(self, comm):
        comm.respond({})

    @EP("/schedule")
    def schedule_(self, comm):
        comm.respond({})

    @EP("/sms")
    def sms_(self, comm):
        comm.respond({})


class Outbox(MS):
    @EP("/publish")
    def publish_(self, comm):
        comm.respond({})


class Payments(MS):
    @EP("/charge")
    def charge_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/payout")
    def payout_(self, comm):
        comm.respond({})

    @EP("/recall")
    def recall_(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})


class QuoteStore(MS):
    @EP("/count")
    def count_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class RateLimit(MS):
    @EP("/take")
    def take_(self, comm):
        comm.respond({})


class Reserves(MS):
    @EP("/draw")
    def draw_(self, comm):
        comm.respond({})

    @EP("/set")
    def set_(self, comm):
        comm.respond({})


class Sales(MS):
    @EP("/page")
    def page_(self, comm):
        comm.respond({})

    @EP("/summary")
    def summary_(self, comm):
        comm.respond({})


class Sanctions(MS):
    @EP("/screen")
    def screen_(self, comm):
        comm.respond({})


class Search(MS):
    @EP("/claims")
    def claims_(self, comm):
        comm.respond({})

    @EP("/customers")
    def customers_(self, comm):
        comm.respond({})

    @EP("/policies")
    def policies_(self, comm):
        comm.respond({})


class Statistics(MS):
    @EP("/average_premium")
    def average_premium_(self, comm):
        comm.respond({})


class Syndicate(MS):
    @EP("/decision")
    def decision_(self, comm):
        comm.respond({})

    @EP("/stamp")
    def stamp_(self, comm):
        comm.respond({})

    @EP("/submit")
    def submit_(self, comm):
        comm.respond({})

    @EP("/withdraw")
    def withdraw_(self, comm):
        comm.respond({})


class Tasks(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})


class Vehicles(MS):
    @EP("/history")
    def history_(self, comm):
        comm.respond({})


class Watchlist(MS):
    @EP("/add")
    def add_(self, comm):
        comm.respond({})

    @EP("/contains")
    def contains_(self, comm):
        comm.respond({})
