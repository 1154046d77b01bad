"""Workload: the clients a project is measured with, and the measurement.

client         what users write: scenarios with calls and think times
calls          a scenario's remote calls
http           requests to services that know nothing of mup
arrivals       when the cycles of an open load begin
times_file     recorded think times and traces
timers         pauses that end on time
engine         many clients on one event loop: rounds, windows, what is recorded
driver         the process that runs the engine, and the handle to it
result         what a round returns
figures        response time, throughput, utilization
intervals      how sure they are
service_logs   what the services saw of the same window
measure        one real run of a project, or several of them
measurement    all that is known after it
speed          how fast the machine is right now
speed_monitor  how fast it was meanwhile
cpu            CPU time of processes and of the host
limits         how many connections a process may have
"""
