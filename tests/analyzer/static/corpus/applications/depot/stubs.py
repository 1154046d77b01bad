"""The services behind."""

from mup import EP, MS


class Log(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})

    @EP("/health")
    def health_(self, comm):
        comm.respond({})


class Prices(MS):
    @EP("/base")
    def base_(self, comm):
        comm.respond({})

    @EP("/discount")
    def discount_(self, comm):
        comm.respond({})

    @EP("/health")
    def health_(self, comm):
        comm.respond({})


class Desk(MS):
    @EP("/assign")
    def assign_(self, comm):
        comm.respond({})

    @EP("/note")
    def note_(self, comm):
        comm.respond({})

    @EP("/close")
    def close_(self, comm):
        comm.respond({})

    @EP("/page")
    def page_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})

    @EP("/move")
    def move_(self, comm):
        comm.respond({})


class Media(MS):
    @EP("/thumb")
    def thumb_(self, comm):
        comm.respond({})


class Users(MS):
    @EP("/name")
    def name_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/many")
    def many_(self, comm):
        comm.respond({})


class Filter(MS):
    @EP("/spam")
    def spam_(self, comm):
        comm.respond({})

    @EP("/language")
    def language_(self, comm):
        comm.respond({})

    @EP("/clean")
    def clean_(self, comm):
        comm.respond({})

    @EP("/links")
    def links_(self, comm):
        comm.respond({})


class Locks(MS):
    @EP("/lock")
    def lock_(self, comm):
        comm.respond({})

    @EP("/unlock")
    def unlock_(self, comm):
        comm.respond({})


class Feed(MS):
    @EP("/top")
    def top_(self, comm):
        comm.respond({})

    @EP("/by")
    def by_(self, comm):
        comm.respond({})

    @EP("/all")
    def all_(self, comm):
        comm.respond({})

    @EP("/near")
    def near_(self, comm):
        comm.respond({})

    @EP("/far")
    def far_(self, comm):
        comm.respond({})

    @EP("/page")
    def page_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Ads(MS):
    @EP("/slot")
    def slot_(self, comm):
        comm.respond({})


class Badges(MS):
    @EP("/of")
    def of_(self, comm):
        comm.respond({})

    @EP("/many")
    def many_(self, comm):
        comm.respond({})


class Traces(MS):
    @EP("/span")
    def span_(self, comm):
        comm.respond({})
