import events


@events.happened.register
def uploaded(event: int, comm):
    comm.call("Store", "/scan", {"size": event}).get()
