"""The services behind."""

from mup import EP, MS


class Accounts(MS):
    @EP("/authenticate")
    def authenticate_(self, comm):
        comm.respond({})

    @EP("/by-email")
    def by_email_(self, comm):
        comm.respond({})

    @EP("/check-code")
    def check_code_(self, comm):
        comm.respond({})

    @EP("/create-bot")
    def create_bot_(self, comm):
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm):
        comm.respond({})

    @EP("/import")
    def import_(self, comm):
        comm.respond({})

    @EP("/preferences")
    def preferences_(self, comm):
        comm.respond({})

    @EP("/suspend")
    def suspend_(self, comm):
        comm.respond({})

    @EP("/user")
    def user_(self, comm):
        comm.respond({})

    @EP("/users")
    def users_(self, comm):
        comm.respond({})

    @EP("/verify")
    def verify_(self, comm):
        comm.respond({})


class Approvals(MS):
    @EP("/request")
    def request_(self, comm):
        comm.respond({})


class Apps(MS):
    @EP("/by-token")
    def by_token_(self, comm):
        comm.respond({})

    @EP("/command")
    def command_(self, comm):
        comm.respond({})

    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm):
        comm.respond({})

    @EP("/disable")
    def disable_(self, comm):
        comm.respond({})

    @EP("/subscribe")
    def subscribe_(self, comm):
        comm.respond({})

    @EP("/subscriptions")
    def subscriptions_(self, comm):
        comm.respond({})


class Audit(MS):
    @EP("/record")
    def record_(self, comm):
        comm.respond({})


class Cases(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/update")
    def update_(self, comm):
        comm.respond({})


class ChannelStore(MS):
    @EP("/add-member")
    def add_member_(self, comm):
        comm.respond({})

    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/members")
    def members_(self, comm):
        comm.respond({})

    @EP("/update")
    def update_(self, comm):
        comm.respond({})


class Classifier(MS):
    @EP("/score")
    def score_(self, comm):
        comm.respond({})


class Counters(MS):
    @EP("/threads")
    def threads_(self, comm):
        comm.respond({})

    @EP("/unread")
    def unread_(self, comm):
        comm.respond({})


class DeadLetters(MS):
    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Directory(MS):
    @EP("/lookup")
    def lookup_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Events(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})


class Files(MS):
    @EP("/begin")
    def begin_(self, comm):
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm):
        comm.respond({})

    @EP("/publish")
    def publish_(self, comm):
        comm.respond({})

    @EP("/scan")
    def scan_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Flags(MS):
    @EP("/evaluate")
    def evaluate_(self, comm):
        comm.respond({})


class Hooks(MS):
    @EP("/deliver")
    def deliver_(self, comm):
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


class Invites(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Jobs(MS):
    @EP("/schedule")
    def schedule_(self, comm):
        comm.respond({})

    @EP("/start")
    def start_(self, comm):
        comm.respond({})


class Links(MS):
    @EP("/reputation")
    def reputation_(self, comm):
        comm.respond({})


class Mailer(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class MessageStore(MS):
    @EP("/count-old")
    def count_old_(self, comm):
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/insert")
    def insert_(self, comm):
        comm.respond({})

    @EP("/page")
    def page_(self, comm):
        comm.respond({})

    @EP("/purge")
    def purge_(self, comm):
        comm.respond({})

    @EP("/replies")
    def replies_(self, comm):
        comm.respond({})

    @EP("/update")
    def update_(self, comm):
        comm.respond({})


class Metrics(MS):
    @EP("/count")
    def count_(self, comm):
        comm.respond({})


class Outbox(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})

    @EP("/due")
    def due_(self, comm):
        comm.respond({})

    @EP("/failed")
    def failed_(self, comm):
        comm.respond({})

    @EP("/pending")
    def pending_(self, comm):
        comm.respond({})


class Pager(MS):
    @EP("/page")
    def page_(self, comm):
        comm.respond({})


class Polls(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})


class Preferences(MS):
    @EP("/batch")
    def batch_(self, comm):
        comm.respond({})


class Presence(MS):
    @EP("/batch")
    def batch_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/set")
    def set_(self, comm):
        comm.respond({})

    @EP("/team")
    def team_(self, comm):
        comm.respond({})


class Push(MS):
    @EP("/mute")
    def mute_(self, comm):
        comm.respond({})

    @EP("/send")
    def send_(self, comm):
        comm.respond({})

    @EP("/unmute")
    def unmute_(self, comm):
        comm.respond({})


class Ranking(MS):
    @EP("/top")
    def top_(self, comm):
        comm.respond({})


class RateLimiter(MS):
    @EP("/take")
    def take_(self, comm):
        comm.respond({})


class Reactions(MS):
    @EP("/toggle")
    def toggle_(self, comm):
        comm.respond({})


class Realtime(MS):
    @EP("/publish")
    def publish_(self, comm):
        comm.respond({})


class Retention(MS):
    @EP("/policies")
    def policies_(self, comm):
        comm.respond({})


class SearchIndex(MS):
    @EP("/index")
    def index_(self, comm):
        comm.respond({})

    @EP("/query")
    def query_(self, comm):
        comm.respond({})

    @EP("/remove")
    def remove_(self, comm):
        comm.respond({})


class Sessions(MS):
    @EP("/open")
    def open_(self, comm):
        comm.respond({})


class SpareMailer(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Spelling(MS):
    @EP("/suggest")
    def suggest_(self, comm):
        comm.respond({})


class Strikes(MS):
    @EP("/add")
    def add_(self, comm):
        comm.respond({})


class Templates(MS):
    @EP("/render")
    def render_(self, comm):
        comm.respond({})


class Tenants(MS):
    @EP("/limits")
    def limits_(self, comm):
        comm.respond({})

    @EP("/plan")
    def plan_(self, comm):
        comm.respond({})


class Translate(MS):
    @EP("/basic")
    def basic_(self, comm):
        comm.respond({})

    @EP("/text")
    def text_(self, comm):
        comm.respond({})


class Unfurl(MS):
    @EP("/preview")
    def preview_(self, comm):
        comm.respond({})
