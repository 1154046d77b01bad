"""The services behind."""

from mup import EP, MS


class AccountStore(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/remove")
    def remove_(self, comm):
        comm.respond({})


class Audit(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})


class Calendar(MS):
    @EP("/next-business-day")
    def next_business_day_(self, comm):
        comm.respond({})


class Cases(MS):
    @EP("/open")
    def open_(self, comm):
        comm.respond({})


class ConsentStore(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class Directory(MS):
    @EP("/audience")
    def audience_(self, comm):
        comm.respond({})

    @EP("/introspect")
    def introspect_(self, comm):
        comm.respond({})

    @EP("/profile")
    def profile_(self, comm):
        comm.respond({})


class Documents(MS):
    @EP("/enqueue")
    def enqueue_(self, comm):
        comm.respond({})

    @EP("/render")
    def render_(self, comm):
        comm.respond({})

    @EP("/upload")
    def upload_(self, comm):
        comm.respond({})


class Enrichment(MS):
    @EP("/categorise")
    def categorise_(self, comm):
        comm.respond({})


class Flags(MS):
    @EP("/evaluate")
    def evaluate_(self, comm):
        comm.respond({})


class Forecast(MS):
    @EP("/project")
    def project_(self, comm):
        comm.respond({})


class HeritageBank(MS):
    @EP("/accounts")
    def accounts_(self, comm):
        comm.respond({})

    @EP("/balances")
    def balances_(self, comm):
        comm.respond({})

    @EP("/consent")
    def consent_(self, comm):
        comm.respond({})

    @EP("/login")
    def login_(self, comm):
        comm.respond({})

    @EP("/logout")
    def logout_(self, comm):
        comm.respond({})

    @EP("/pay")
    def pay_(self, comm):
        comm.respond({})

    @EP("/payment")
    def payment_(self, comm):
        comm.respond({})

    @EP("/revoke")
    def revoke_(self, comm):
        comm.respond({})

    @EP("/transactions")
    def transactions_(self, comm):
        comm.respond({})


class Hooks(MS):
    @EP("/deliver")
    def deliver_(self, comm):
        comm.respond({})

    @EP("/subscribers")
    def subscribers_(self, comm):
        comm.respond({})


class Idempotency(MS):
    @EP("/claim")
    def claim_(self, comm):
        comm.respond({})

    @EP("/complete")
    def complete_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})


class Ledger(MS):
    @EP("/balance")
    def balance_(self, comm):
        comm.respond({})

    @EP("/entries")
    def entries_(self, comm):
        comm.respond({})

    @EP("/hold")
    def hold_(self, comm):
        comm.respond({})

    @EP("/import")
    def import_(self, comm):
        comm.respond({})

    @EP("/post")
    def post_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})

    @EP("/totals")
    def totals_(self, comm):
        comm.respond({})


class Limits(MS):
    @EP("/hit")
    def hit_(self, comm):
        comm.respond({})


class Mail(MS):
    @EP("/ping")
    def ping_(self, comm):
        comm.respond({})

    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class NordBank(MS):
    @EP("/accounts")
    def accounts_(self, comm):
        comm.respond({})

    @EP("/balances")
    def balances_(self, comm):
        comm.respond({})

    @EP("/consent")
    def consent_(self, comm):
        comm.respond({})

    @EP("/pay")
    def pay_(self, comm):
        comm.respond({})

    @EP("/payment")
    def payment_(self, comm):
        comm.respond({})

    @EP("/revoke")
    def revoke_(self, comm):
        comm.respond({})

    @EP("/transactions")
    def transactions_(self, comm):
        comm.respond({})


class OrderStore(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})

    @EP("/events")
    def events_(self, comm):
        comm.respond({})

    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class PaymentStore(MS):
    @EP("/begin")
    def begin_(self, comm):
        comm.respond({})

    @EP("/commit")
    def commit_(self, comm):
        comm.respond({})

    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/rollback")
    def rollback_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class Prefs(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class Push(MS):
    @EP("/ping")
    def ping_(self, comm):
        comm.respond({})

    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Rates(MS):
    @EP("/daily")
    def daily_(self, comm):
        comm.respond({})

    @EP("/quote")
    def quote_(self, comm):
        comm.respond({})


class Risk(MS):
    @EP("/score")
    def score_(self, comm):
        comm.respond({})


class Sanctions(MS):
    @EP("/screen")
    def screen_(self, comm):
        comm.respond({})

    @EP("/screen-batch")
    def screen_batch_(self, comm):
        comm.respond({})


class Sca(MS):
    @EP("/challenge")
    def challenge_(self, comm):
        comm.respond({})

    @EP("/verify")
    def verify_(self, comm):
        comm.respond({})


class Scheduler(MS):
    @EP("/enqueue")
    def enqueue_(self, comm):
        comm.respond({})


class SearchIndex(MS):
    @EP("/query")
    def query_(self, comm):
        comm.respond({})


class Sms(MS):
    @EP("/ping")
    def ping_(self, comm):
        comm.respond({})

    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Sparwell(MS):
    @EP("/accounts")
    def accounts_(self, comm):
        comm.respond({})

    @EP("/balances")
    def balances_(self, comm):
        comm.respond({})

    @EP("/consent")
    def consent_(self, comm):
        comm.respond({})

    @EP("/pay")
    def pay_(self, comm):
        comm.respond({})

    @EP("/payment")
    def payment_(self, comm):
        comm.respond({})

    @EP("/revoke")
    def revoke_(self, comm):
        comm.respond({})

    @EP("/transactions")
    def transactions_(self, comm):
        comm.respond({})


class Templates(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})
