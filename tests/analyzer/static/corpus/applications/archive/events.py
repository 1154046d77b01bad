"""What happens for an event is said by other modules."""

import functools


@functools.singledispatch
def happened(event, comm):
    comm.call("Store", "/drop").get()
