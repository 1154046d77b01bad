"""The services behind."""

from mup import EP, MS


class ArticleStore(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/insert-many")
    def insert_many_(self, comm):
        comm.respond({})

    @EP("/set-state")
    def set_state_(self, comm):
        comm.respond({})

    @EP("/translation")
    def translation_(self, comm):
        comm.respond({})


class Audit(MS):
    @EP("/record")
    def record_(self, comm):
        comm.respond({})


class Auth(MS):
    @EP("/session")
    def session_(self, comm):
        comm.respond({})


class Billing(MS):
    @EP("/plan")
    def plan_(self, comm):
        comm.respond({})


class Blobs(MS):
    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Cache(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/set")
    def set_(self, comm):
        comm.respond({})


class Calendar(MS):
    @EP("/add")
    def add_(self, comm):
        comm.respond({})

    @EP("/hours")
    def hours_(self, comm):
        comm.respond({})


class Cdn(MS):
    @EP("/purge")
    def purge_(self, comm):
        comm.respond({})


class Chat(MS):
    @EP("/enqueue")
    def enqueue_(self, comm):
        comm.respond({})

    @EP("/post")
    def post_(self, comm):
        comm.respond({})

    @EP("/presence")
    def presence_(self, comm):
        comm.respond({})

    @EP("/room")
    def room_(self, comm):
        comm.respond({})


class Classifier(MS):
    @EP("/predict")
    def predict_(self, comm):
        comm.respond({})


class ClockStore(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/many")
    def many_(self, comm):
        comm.respond({})

    @EP("/overdue")
    def overdue_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Config(MS):
    @EP("/widget")
    def widget_(self, comm):
        comm.respond({})


class Crm(MS):
    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class DeadLetters(MS):
    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Directory(MS):
    @EP("/agent")
    def agent_(self, comm):
        comm.respond({})

    @EP("/customer")
    def customer_(self, comm):
        comm.respond({})

    @EP("/find-or-create")
    def find_or_create_(self, comm):
        comm.respond({})

    @EP("/lead")
    def lead_(self, comm):
        comm.respond({})

    @EP("/names")
    def names_(self, comm):
        comm.respond({})

    @EP("/next-agent")
    def next_agent_(self, comm):
        comm.respond({})

    @EP("/team")
    def team_(self, comm):
        comm.respond({})


class Embeddings(MS):
    @EP("/embed")
    def embed_(self, comm):
        comm.respond({})


class Events(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})

    @EP("/stream")
    def stream_(self, comm):
        comm.respond({})


class Exports(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/fail")
    def fail_(self, comm):
        comm.respond({})


class Flags(MS):
    @EP("/evaluate")
    def evaluate_(self, comm):
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


class Mailer(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Metrics(MS):
    @EP("/agent")
    def agent_(self, comm):
        comm.respond({})

    @EP("/value")
    def value_(self, comm):
        comm.respond({})


class Notify(MS):
    @EP("/push")
    def push_(self, comm):
        comm.respond({})


class Outbox(MS):
    @EP("/enqueue")
    def enqueue_(self, comm):
        comm.respond({})


class Pager(MS):
    @EP("/page")
    def page_(self, comm):
        comm.respond({})


class PolicyStore(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Quarantine(MS):
    @EP("/hold")
    def hold_(self, comm):
        comm.respond({})


class Renderer(MS):
    @EP("/pdf")
    def pdf_(self, comm):
        comm.respond({})

    @EP("/sheet")
    def sheet_(self, comm):
        comm.respond({})


class Reviews(MS):
    @EP("/request")
    def request_(self, comm):
        comm.respond({})


class RuleStore(MS):
    @EP("/delete-macro")
    def delete_macro_(self, comm):
        comm.respond({})

    @EP("/disable-hook")
    def disable_hook_(self, comm):
        comm.respond({})

    @EP("/hooks")
    def hooks_(self, comm):
        comm.respond({})

    @EP("/macro")
    def macro_(self, comm):
        comm.respond({})

    @EP("/macros")
    def macros_(self, comm):
        comm.respond({})

    @EP("/report-failure")
    def report_failure_(self, comm):
        comm.respond({})

    @EP("/rules")
    def rules_(self, comm):
        comm.respond({})


class Scheduler(MS):
    @EP("/at")
    def at_(self, comm):
        comm.respond({})


class Search(MS):
    @EP("/index")
    def index_(self, comm):
        comm.respond({})

    @EP("/query")
    def query_(self, comm):
        comm.respond({})

    @EP("/rebuild")
    def rebuild_(self, comm):
        comm.respond({})

    @EP("/remove")
    def remove_(self, comm):
        comm.respond({})


class Spam(MS):
    @EP("/score")
    def score_(self, comm):
        comm.respond({})


class Surveys(MS):
    @EP("/summary")
    def summary_(self, comm):
        comm.respond({})


class Templates(MS):
    @EP("/render")
    def render_(self, comm):
        comm.respond({})


class TicketStore(MS):
    @EP("/by-message")
    def by_message_(self, comm):
        comm.respond({})

    @EP("/comment")
    def comment_(self, comm):
        comm.respond({})

    @EP("/comments")
    def comments_(self, comm):
        comm.respond({})

    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/idle")
    def idle_(self, comm):
        comm.respond({})

    @EP("/insert")
    def insert_(self, comm):
        comm.respond({})

    @EP("/load")
    def load_(self, comm):
        comm.respond({})

    @EP("/update")
    def update_(self, comm):
        comm.respond({})


class Transcriber(MS):
    @EP("/start")
    def start_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})


class Translator(MS):
    @EP("/translate")
    def translate_(self, comm):
        comm.respond({})


class Vault(MS):
    @EP("/secret")
    def secret_(self, comm):
        comm.respond({})


class Vectors(MS):
    @EP("/nearest")
    def nearest_(self, comm):
        comm.respond({})


class Votes(MS):
    @EP("/cast")
    def cast_(self, comm):
        comm.respond({})


class Webhooks(MS):
    @EP("/deliver")
    def deliver_(self, comm):
        comm.respond({})
