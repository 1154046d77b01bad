"""How does one service call another? One core without sockets, and two shells: blocking and awaited.

request    the arguments of a call, checked, and the bytes of a request
reply      the bytes of a response, and its body decoded
retries    whether a failed call is made again, and when
resolver   which replicas there are, and which one a call goes to
sockets    connections of a blocking worker
blocking   calls of a blocking worker: sent at once, read when they are asked for
awaited    calls of an event loop
"""
