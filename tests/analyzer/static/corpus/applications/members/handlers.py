"""What listens, and what answers."""

import events
from events import (
    admin,
    after,
    before,
    bus,
    commands,
    late,
    logged,
    once,
    platform,
    router,
    signals,
    steps,
    topics,
)


@bus.on("created")
def index_it(comm, event):
    comm.call("Tools", "/index", event).get()


@bus.on("created")
def mail_it(comm, event):
    if event.get("mail"):
        comm.call("Tools", "/mail", event).get()


@bus.on("deleted")
@bus.on("expired")
def unindex(comm, event):
    comm.call("Tools", "/unindex", event).get()


@events.other.on("created")
def elsewhere(comm, event):
    comm.call("Tools", "/off", event).get()


on_moved = bus.on("moved")
listen = bus.on


@on_moved
def moved(comm, event):
    comm.call("Tools", "/on", event).get()


@listen("moved")
def moved_too(comm, event):
    comm.call("Tools", "/off", event).get()


async def remember(comm, event):
    await comm.call("Tools", "/track", event)


async def announce(comm, event):
    await comm.call("Tools", "/chat", event)


topics.subscribe(announce, "created", "deleted").subscribe(remember)


@before.add
def check(comm, label):
    comm.call("Tools", "/on", {"label": label}).get()


@after.add
def audit(comm, label):
    comm.call("Tools", "/track", {"label": label}).get()


before.add(audit)


@commands.command()
def on(comm):
    return comm.call("Tools", "/on").get()


@commands.command("stop")
def off(comm):
    return comm.call("Tools", "/off").get()


@admin.command()
def reset(comm):
    return comm.call("Tools", "/alarm").get()


@router.route("GET", "/pro")
def get_pro(comm):
    comm.call("Tools", "/pro").get()


@router.route("PUT", "/pro")
def put_pro(comm):
    comm.call("Tools", "/team").get()


def post(comm):
    comm.call("Tools", "/post").get()


signals.connect("sent", post)
signals.connect("sent", lambda comm: comm.call("Tools", "/bike").get())


@logged.on("created")
def logged_created(comm, event):
    comm.call("Tools", "/low", event).get()


@steps
def reserve(comm):
    comm.call("Tools", "/reserve").get()


@steps
def charge(comm):
    comm.call("Tools", "/charge").get()


@platform.events.on("started")
def started(comm, event):
    comm.call("Tools", "/high", event).get()


class Mailer:
    def __init__(self, path):
        self.path = path

    def send(self, comm, event):
        comm.call("Tools", self.path, event).get()

    def __call__(self, comm, event):
        self.send(comm, event)


bus.on("mailed")(Mailer("/mail"))
bus.on("mailed")(Mailer("/chat").send)

late.when("x", post)
once.next_time(post)
