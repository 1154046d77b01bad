"""The services behind."""

from mup import EP, MS


class Approvals(MS):
    @EP("/request")
    def request_(self, comm):
        comm.respond({})


class Audit(MS):
    @EP("/record")
    def record_(self, comm):
        comm.respond({})


class Backoffice(MS):
    @EP("/alert")
    def alert_(self, comm):
        comm.respond({})

    @EP("/enqueue")
    def enqueue_(self, comm):
        comm.respond({})

    @EP("/retry_later")
    def retry_later_(self, comm):
        comm.respond({})


class BookingStore(MS):
    @EP("/begin")
    def begin_(self, comm):
        comm.respond({})

    @EP("/commit")
    def commit_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/insert")
    def insert_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/rollback")
    def rollback_(self, comm):
        comm.respond({})

    @EP("/upcoming")
    def upcoming_(self, comm):
        comm.respond({})

    @EP("/update")
    def update_(self, comm):
        comm.respond({})


class Cache(MS):
    @EP("/invalidate")
    def invalidate_(self, comm):
        comm.respond({})


class Campaigns(MS):
    @EP("/factor")
    def factor_(self, comm):
        comm.respond({})


class CarPartner(MS):
    @EP("/rentals")
    def rentals_(self, comm):
        comm.respond({})


class Coaches(MS):
    @EP("/emergency")
    def emergency_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Customers(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/mark_unreachable")
    def mark_unreachable_(self, comm):
        comm.respond({})

    @EP("/preferences")
    def preferences_(self, comm):
        comm.respond({})

    @EP("/put_preferences")
    def put_preferences_(self, comm):
        comm.respond({})


class Documents(MS):
    @EP("/render")
    def render_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})


class EventStore(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})

    @EP("/read")
    def read_(self, comm):
        comm.respond({})

    @EP("/version")
    def version_(self, comm):
        comm.respond({})


class Flags(MS):
    @EP("/evaluate")
    def evaluate_(self, comm):
        comm.respond({})


class HotelPartner(MS):
    @EP("/stays")
    def stays_(self, comm):
        comm.respond({})


class Idempotency(MS):
    @EP("/abandon")
    def abandon_(self, comm):
        comm.respond({})

    @EP("/begin")
    def begin_(self, comm):
        comm.respond({})

    @EP("/finish")
    def finish_(self, comm):
        comm.respond({})


class Identity(MS):
    @EP("/verify")
    def verify_(self, comm):
        comm.respond({})


class Inventory(MS):
    @EP("/block")
    def block_(self, comm):
        comm.respond({})

    @EP("/confirm")
    def confirm_(self, comm):
        comm.respond({})

    @EP("/load")
    def load_(self, comm):
        comm.respond({})

    @EP("/lock")
    def lock_(self, comm):
        comm.respond({})

    @EP("/locked")
    def locked_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})

    @EP("/seatmap")
    def seatmap_(self, comm):
        comm.respond({})


class Locks(MS):
    @EP("/acquire")
    def acquire_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})


class Lounges(MS):
    @EP("/list")
    def list_(self, comm):
        comm.respond({})


class Mail(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Metrics(MS):
    @EP("/count")
    def count_(self, comm):
        comm.respond({})


class Offers(MS):
    @EP("/for")
    def for_(self, comm):
        comm.respond({})


class Outbox(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/park")
    def park_(self, comm):
        comm.respond({})


class Payments(MS):
    @EP("/authorize")
    def authorize_(self, comm):
        comm.respond({})

    @EP("/capture")
    def capture_(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})

    @EP("/void")
    def void_(self, comm):
        comm.respond({})


class PriceBook(MS):
    @EP("/base")
    def base_(self, comm):
        comm.respond({})

    @EP("/cheapest")
    def cheapest_(self, comm):
        comm.respond({})

    @EP("/estimate")
    def estimate_(self, comm):
        comm.respond({})

    @EP("/put_rule")
    def put_rule_(self, comm):
        comm.respond({})

    @EP("/simulate")
    def simulate_(self, comm):
        comm.respond({})


class PriceEngine(MS):
    @EP("/price")
    def price_(self, comm):
        comm.respond({})


class Push(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Quotes(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class Railcards(MS):
    @EP("/check")
    def check_(self, comm):
        comm.respond({})


class RateLimit(MS):
    @EP("/hit")
    def hit_(self, comm):
        comm.respond({})


class Realtime(MS):
    @EP("/annotate")
    def annotate_(self, comm):
        comm.respond({})

    @EP("/delay")
    def delay_(self, comm):
        comm.respond({})

    @EP("/delays")
    def delays_(self, comm):
        comm.respond({})

    @EP("/history")
    def history_(self, comm):
        comm.respond({})


class Regional(MS):
    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Risk(MS):
    @EP("/declined")
    def declined_(self, comm):
        comm.respond({})

    @EP("/dispute")
    def dispute_(self, comm):
        comm.respond({})

    @EP("/score")
    def score_(self, comm):
        comm.respond({})


class Sequences(MS):
    @EP("/next")
    def next_(self, comm):
        comm.respond({})


class Sms(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})

    @EP("/verify")
    def verify_(self, comm):
        comm.respond({})


class Snapshots(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/request")
    def request_(self, comm):
        comm.respond({})


class Stations(MS):
    @EP("/suggest")
    def suggest_(self, comm):
        comm.respond({})


class Storage(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Subscribers(MS):
    @EP("/page")
    def page_(self, comm):
        comm.respond({})


class Tenants(MS):
    @EP("/config")
    def config_(self, comm):
        comm.respond({})


class Timetable(MS):
    @EP("/between")
    def between_(self, comm):
        comm.respond({})

    @EP("/board")
    def board_(self, comm):
        comm.respond({})

    @EP("/nearest")
    def nearest_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})

    @EP("/suspend")
    def suspend_(self, comm):
        comm.respond({})

    @EP("/trip")
    def trip_(self, comm):
        comm.respond({})

    @EP("/upsert")
    def upsert_(self, comm):
        comm.respond({})


class Vouchers(MS):
    @EP("/issue")
    def issue_(self, comm):
        comm.respond({})

    @EP("/validate")
    def validate_(self, comm):
        comm.respond({})


class Waitlist(MS):
    @EP("/join")
    def join_(self, comm):
        comm.respond({})


class Warehouse(MS):
    @EP("/aggregate")
    def aggregate_(self, comm):
        comm.respond({})

    @EP("/previous")
    def previous_(self, comm):
        comm.respond({})
