"""One approximation per file, each with its source: what the estimate takes instead of the truth.

convolution.py        closed network of one class, for every number of customers
aggregation.py        a pool as one station of the speed of its subnetwork (flow-equivalent service)
replicas.py           identical stations between which requests choose at random
general_service.py    services that are not exponential (Marie's method)
felt_variability.py   residual services, and requests that come straight back
shared_station.py     other chains at a station as finite sources (method of layers)
interlock.py          customers who cannot be there, as they wait elsewhere
parallel_branches.py  branches of a request that meet
second_phases.py      work after the reply, overtaking
unawaited.py          messages, detached branches, arrivals from outside
many_customers.py     populations beyond what keeps the slowest station busy

The literature leaves the choice of these constants open: they bound what is taken to a limit, or were chosen
by measurement. How much errors depend on each is in benchmarks/published/analytic.md ("Constants"); a
constant that makes a difference says so itself.
"""
