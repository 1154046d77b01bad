"""Workload: the clients a project is measured with, and the measurement.

client         what users write: scenarios with calls and think times
scenario       a scenario's remote calls
call_window    response times of these calls
http           requests to services that know nothing of mup
arrivals       when the cycles of an open load begin
starts         when the first cycles of a closed load begin
times_file     recorded think times and traces
timers         pauses that end on time
engine         many clients on one event loop: rounds, windows, what is recorded
driver         the process that runs the engine, and the handle to it
result         what a round returns
figures        response time, throughput, utilization, with intervals
service_logs   what the services saw of the same window
occupancy      how long the workers of a service were busy
measure        one real run of a project, or several of them
measurement    all that is known after it
machine        which machine this is
speed          how fast the machine is right now
sampled_work   what a monitor of it times
speed_monitor  how fast it was meanwhile
speed_history  how fast it was before
cpu            CPU time of processes and of the host
limits         how many connections a process may have
"""
