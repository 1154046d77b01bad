"""The services behind."""

from mup import EP, MS


class Ace(MS):
    @EP("/bond")
    def bond_(self, comm):
        comm.respond({})

    @EP("/entry")
    def entry_(self, comm):
        comm.respond({})

    @EP("/query")
    def query_(self, comm):
        comm.respond({})


class Approvals(MS):
    @EP("/request")
    def request_(self, comm):
        comm.respond({})


class Atlas(MS):
    @EP("/lodge")
    def lodge_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})


class Audit(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})


class BookingStore(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Cache(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Catalogue(MS):
    @EP("/lookup")
    def lookup_(self, comm):
        comm.respond({})


class ClaimStore(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Compliance(MS):
    @EP("/alert")
    def alert_(self, comm):
        comm.respond({})


class Credit(MS):
    @EP("/hold")
    def hold_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})


class DeclarationStore(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Dhl(MS):
    @EP("/book")
    def book_(self, comm):
        comm.respond({})

    @EP("/cancel")
    def cancel_(self, comm):
        comm.respond({})

    @EP("/rates")
    def rates_(self, comm):
        comm.respond({})

    @EP("/surcharges")
    def surcharges_(self, comm):
        comm.respond({})

    @EP("/track")
    def track_(self, comm):
        comm.respond({})


class Docks(MS):
    @EP("/reserve")
    def reserve_(self, comm):
        comm.respond({})


class Documents(MS):
    @EP("/attach")
    def attach_(self, comm):
        comm.respond({})

    @EP("/goods-receipt")
    def goods_receipt_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})


class EtaModel(MS):
    @EP("/predict")
    def predict_(self, comm):
        comm.respond({})


class EventStore(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})

    @EP("/read")
    def read_(self, comm):
        comm.respond({})


class Evidence(MS):
    @EP("/scan")
    def scan_(self, comm):
        comm.respond({})


class Flags(MS):
    @EP("/evaluate")
    def evaluate_(self, comm):
        comm.respond({})


class Fleet(MS):
    @EP("/assign")
    def assign_(self, comm):
        comm.respond({})

    @EP("/unassign")
    def unassign_(self, comm):
        comm.respond({})


class Fx(MS):
    @EP("/rate")
    def rate_(self, comm):
        comm.respond({})


class History(MS):
    @EP("/average")
    def average_(self, comm):
        comm.respond({})


class HsModel(MS):
    @EP("/classify")
    def classify_(self, comm):
        comm.respond({})


class Idempotency(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Identity(MS):
    @EP("/verify")
    def verify_(self, comm):
        comm.respond({})


class Insurance(MS):
    @EP("/policy")
    def policy_(self, comm):
        comm.respond({})


class InvoiceStore(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Ledger(MS):
    @EP("/accrue")
    def accrue_(self, comm):
        comm.respond({})

    @EP("/charge")
    def charge_(self, comm):
        comm.respond({})

    @EP("/charges")
    def charges_(self, comm):
        comm.respond({})

    @EP("/revenue")
    def revenue_(self, comm):
        comm.respond({})

    @EP("/reverse")
    def reverse_(self, comm):
        comm.respond({})

    @EP("/unbilled")
    def unbilled_(self, comm):
        comm.respond({})


class Limits(MS):
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


class Maersk(MS):
    @EP("/book")
    def book_(self, comm):
        comm.respond({})

    @EP("/cancel")
    def cancel_(self, comm):
        comm.respond({})

    @EP("/spot")
    def spot_(self, comm):
        comm.respond({})

    @EP("/track")
    def track_(self, comm):
        comm.respond({})


class Mail(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Notifications(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Numbers(MS):
    @EP("/next")
    def next_(self, comm):
        comm.respond({})


class Orders(MS):
    @EP("/open")
    def open_(self, comm):
        comm.respond({})


class Parties(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})


class Payments(MS):
    @EP("/payout")
    def payout_(self, comm):
        comm.respond({})


class PortCalls(MS):
    @EP("/estimate")
    def estimate_(self, comm):
        comm.respond({})


class Ports(MS):
    @EP("/fees")
    def fees_(self, comm):
        comm.respond({})


class Pricing(MS):
    @EP("/surcharge")
    def surcharge_(self, comm):
        comm.respond({})


class Purchasing(MS):
    @EP("/expected")
    def expected_(self, comm):
        comm.respond({})


class QuoteStore(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Recovery(MS):
    @EP("/open")
    def open_(self, comm):
        comm.respond({})


class Routing(MS):
    @EP("/legs")
    def legs_(self, comm):
        comm.respond({})


class Sanctions(MS):
    @EP("/check")
    def check_(self, comm):
        comm.respond({})


class Schenker(MS):
    @EP("/book")
    def book_(self, comm):
        comm.respond({})

    @EP("/cancel")
    def cancel_(self, comm):
        comm.respond({})

    @EP("/rates")
    def rates_(self, comm):
        comm.respond({})

    @EP("/track")
    def track_(self, comm):
        comm.respond({})


class Secrets(MS):
    @EP("/verify")
    def verify_(self, comm):
        comm.respond({})


class ShipmentIndex(MS):
    @EP("/stale")
    def stale_(self, comm):
        comm.respond({})


class Sites(MS):
    @EP("/near")
    def near_(self, comm):
        comm.respond({})


class Subscriptions(MS):
    @EP("/of")
    def of_(self, comm):
        comm.respond({})


class Tariffs(MS):
    @EP("/rate")
    def rate_(self, comm):
        comm.respond({})


class Tasks(MS):
    @EP("/open")
    def open_(self, comm):
        comm.respond({})


class Tax(MS):
    @EP("/rate")
    def rate_(self, comm):
        comm.respond({})


class Warehousing(MS):
    @EP("/revenue")
    def revenue_(self, comm):
        comm.respond({})


class Wms(MS):
    @EP("/receive")
    def receive_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})

    @EP("/reserve")
    def reserve_(self, comm):
        comm.respond({})

    @EP("/stock")
    def stock_(self, comm):
        comm.respond({})

    @EP("/wave")
    def wave_(self, comm):
        comm.respond({})
