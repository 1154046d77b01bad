"""Calls between services: one core that neither sends nor waits, and two shells that do.

caller     where a call begins, of an endpoint or a client
exchange   the core: how a call goes, step by step, and the rules for what goes wrong
request    the arguments of a call, checked, and the bytes of a request
reply      the bytes of a response, and its body decoded
replicas   which replicas there are, and which one a call goes to
registry   what the registry is asked, and what holds while it does not answer
retries    whether a failed call is made again, and when
events     what is logged of it

blocking   the shell of workers that block; sockets: their connections; resolver: asks the registry
awaited    the shell of event loops; streams: their connections; network: asks the registry
scenario   what clients of a load may do with it
"""
