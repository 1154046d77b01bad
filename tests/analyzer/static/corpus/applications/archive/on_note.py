import events


@events.happened.register(str)
def noted(event, comm):
    comm.call("Store", "/text", {"note": event}).get()
