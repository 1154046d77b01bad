"""The services behind."""

from mup import EP, MS


class Users(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/whoami")
    def whoami_(self, comm):
        comm.respond({})

    @EP("/touch")
    def touch_(self, comm):
        comm.respond({})

    @EP("/many")
    def many_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})


class Progress(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/set")
    def set_(self, comm):
        comm.respond({})

    @EP("/done")
    def done_(self, comm):
        comm.respond({})


class News(MS):
    @EP("/latest")
    def latest_(self, comm):
        comm.respond({})


class Courses(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/lesson")
    def lesson_(self, comm):
        comm.respond({})

    @EP("/seats")
    def seats_(self, comm):
        comm.respond({})

    @EP("/enroll")
    def enroll_(self, comm):
        comm.respond({})

    @EP("/wait")
    def wait_(self, comm):
        comm.respond({})

    @EP("/popular")
    def popular_(self, comm):
        comm.respond({})


class Notes(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})


class Quiz(MS):
    @EP("/check")
    def check_(self, comm):
        comm.respond({})


class Mail(MS):
    @EP("/send")
    def send_(self, comm):
        comm.respond({})


class Model(MS):
    @EP("/recommend")
    def recommend_(self, comm):
        comm.respond({})


class Images(MS):
    @EP("/render")
    def render_(self, comm):
        comm.respond({})


class Gateway(MS):
    @EP("/read")
    def read_(self, comm):
        comm.respond({})

    @EP("/stop")
    def stop_(self, comm):
        comm.respond({})

    @EP("/start")
    def start_(self, comm):
        comm.respond({})

    @EP("/state")
    def state_(self, comm):
        comm.respond({})

    @EP("/ping")
    def ping_(self, comm):
        comm.respond({})


class Calibration(MS):
    @EP("/offset")
    def offset_(self, comm):
        comm.respond({})


class Alarms(MS):
    @EP("/reset")
    def reset_(self, comm):
        comm.respond({})

    @EP("/raise")
    def raise_(self, comm):
        comm.respond({})


class Leases(MS):
    @EP("/take")
    def take_(self, comm):
        comm.respond({})

    @EP("/give")
    def give_(self, comm):
        comm.respond({})


class Inventory(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/ping")
    def ping_(self, comm):
        comm.respond({})


class Series(MS):
    @EP("/write")
    def write_(self, comm):
        comm.respond({})


class Rollout(MS):
    @EP("/push")
    def push_(self, comm):
        comm.respond({})

    @EP("/health")
    def health_(self, comm):
        comm.respond({})

    @EP("/revert")
    def revert_(self, comm):
        comm.respond({})


class Sessions(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})


class Metrics(MS):
    @EP("/count")
    def count_(self, comm):
        comm.respond({})


class Posts(MS):
    @EP("/recent")
    def recent_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/search")
    def search_(self, comm):
        comm.respond({})

    @EP("/like")
    def like_(self, comm):
        comm.respond({})


class Notify(MS):
    @EP("/mention")
    def mention_(self, comm):
        comm.respond({})

    @EP("/milestone")
    def milestone_(self, comm):
        comm.respond({})


class Idempotency(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Runner(MS):
    @EP("/start")
    def start_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})


class Git(MS):
    @EP("/tree")
    def tree_(self, comm):
        comm.respond({})

    @EP("/diff")
    def diff_(self, comm):
        comm.respond({})


class Logs(MS):
    @EP("/page")
    def page_(self, comm):
        comm.respond({})


class Hot(MS):
    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Cold(MS):
    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Index(MS):
    @EP("/add")
    def add_(self, comm):
        comm.respond({})


class Scheduler(MS):
    @EP("/cron")
    def cron_(self, comm):
        comm.respond({})

    @EP("/at")
    def at_(self, comm):
        comm.respond({})
