"""The services behind."""

from mup import EP, MS


class Identity(MS):
    @EP("/session")
    def session_(self, comm):
        comm.respond({})

    @EP("/credentials")
    def credentials_(self, comm):
        comm.respond({})

    @EP("/second-factor")
    def second_factor_(self, comm):
        comm.respond({})

    @EP("/tokens")
    def tokens_(self, comm):
        comm.respond({})

    @EP("/users/{user_id}/roles")
    def users_user_id_roles_(self, comm):
        comm.respond({})

    @EP("/users/{user_id}/roles/set")
    def users_user_id_roles_set_(self, comm):
        comm.respond({})


class Audit(MS):
    @EP("/record")
    def record_(self, comm):
        comm.respond({})

    @EP("/history")
    def history_(self, comm):
        comm.respond({})


class Flags(MS):
    @EP("/evaluate")
    def evaluate_(self, comm):
        comm.respond({})


class Mailer(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})

    @EP("/batch")
    def batch_(self, comm):
        comm.respond({})


class Queue(MS):
    @EP("/publish")
    def publish_(self, comm):
        comm.respond({})


class Students(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/holds")
    def holds_(self, comm):
        comm.respond({})

    @EP("/holds/add")
    def holds_add_(self, comm):
        comm.respond({})

    @EP("/holds/remove")
    def holds_remove_(self, comm):
        comm.respond({})


class Catalogue(MS):
    @EP("/courses/{code}")
    def courses_code_(self, comm):
        comm.respond({})

    @EP("/sections")
    def sections_(self, comm):
        comm.respond({})

    @EP("/taught")
    def taught_(self, comm):
        comm.respond({})


class Admission(MS):
    @EP("/rules")
    def rules_(self, comm):
        comm.respond({})

    @EP("/scores")
    def scores_(self, comm):
        comm.respond({})

    @EP("/places/take")
    def places_take_(self, comm):
        comm.respond({})

    @EP("/places/return")
    def places_return_(self, comm):
        comm.respond({})


class ApplicationStore(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class Documents(MS):
    @EP("/scan")
    def scan_(self, comm):
        comm.respond({})

    @EP("/upload")
    def upload_(self, comm):
        comm.respond({})

    @EP("/remove")
    def remove_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/photos")
    def photos_(self, comm):
        comm.respond({})


class EnrolmentStore(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm):
        comm.respond({})


class Seats(MS):
    @EP("/reserve")
    def reserve_(self, comm):
        comm.respond({})

    @EP("/release")
    def release_(self, comm):
        comm.respond({})

    @EP("/waitlist")
    def waitlist_(self, comm):
        comm.respond({})

    @EP("/waitlist/join")
    def waitlist_join_(self, comm):
        comm.respond({})


class Rooms(MS):
    @EP("/availability")
    def availability_(self, comm):
        comm.respond({})

    @EP("/book")
    def book_(self, comm):
        comm.respond({})

    @EP("/cancel")
    def cancel_(self, comm):
        comm.respond({})


class Calendar(MS):
    @EP("/terms")
    def terms_(self, comm):
        comm.respond({})

    @EP("/events")
    def events_(self, comm):
        comm.respond({})

    @EP("/publish")
    def publish_(self, comm):
        comm.respond({})


class GradeBook(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})

    @EP("/scheme")
    def scheme_(self, comm):
        comm.respond({})

    @EP("/passed")
    def passed_(self, comm):
        comm.respond({})

    @EP("/attempts")
    def attempts_(self, comm):
        comm.respond({})


class ExamBoard(MS):
    @EP("/sittings")
    def sittings_(self, comm):
        comm.respond({})

    @EP("/register")
    def register_(self, comm):
        comm.respond({})

    @EP("/cases/open")
    def cases_open_(self, comm):
        comm.respond({})


class Ledger(MS):
    @EP("/balance")
    def balance_(self, comm):
        comm.respond({})

    @EP("/entries")
    def entries_(self, comm):
        comm.respond({})

    @EP("/post")
    def post_(self, comm):
        comm.respond({})

    @EP("/tariff")
    def tariff_(self, comm):
        comm.respond({})


class Invoices(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})

    @EP("/events/seen")
    def events_seen_(self, comm):
        comm.respond({})

    @EP("/events/done")
    def events_done_(self, comm):
        comm.respond({})


class Payments(MS):
    @EP("/charge")
    def charge_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund_(self, comm):
        comm.respond({})

    @EP("/charges/{charge_id}")
    def charges_charge_id_(self, comm):
        comm.respond({})


class LoanStore(MS):
    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/save")
    def save_(self, comm):
        comm.respond({})


class LibraryCatalogue(MS):
    @EP("/title")
    def title_(self, comm):
        comm.respond({})

    @EP("/requests")
    def requests_(self, comm):
        comm.respond({})

    @EP("/requests/add")
    def requests_add_(self, comm):
        comm.respond({})

    @EP("/branches")
    def branches_(self, comm):
        comm.respond({})

    @EP("/keep")
    def keep_(self, comm):
        comm.respond({})


class Archive(MS):
    @EP("/put")
    def put_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})


class Signing(MS):
    @EP("/sign")
    def sign_(self, comm):
        comm.respond({})

    @EP("/check")
    def check_(self, comm):
        comm.respond({})


class SigningBackup(MS):
    @EP("/sign")
    def sign_(self, comm):
        comm.respond({})
