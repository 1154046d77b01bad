"""Faults: services of which parts are killed, stopped, cut off or abused.

project        the services everything is done to, and a client that writes down what it sees
database       a mongod that may be killed
system         the services, running below ``mup run``; their processes
buyers         users who go on meanwhile
crashes        processes that are killed or stopped, and what users saw of it
ledger         is everything that was acknowledged there?
hostile        clients that are slow, rude, or do not speak HTTP
hosts          services on several machines, made of network namespaces
report         tables
command        the command line
"""
