"""Workload: the clients a project is measured with, and the measurement.

client       what users write: scenarios with calls and think times
calls        a scenario's remote calls
engine       many clients on one event loop: rounds, windows, what is recorded
driver       the process that runs the engine, and the handle to it
result       what a round returns
figures      response time, throughput, utilization and their intervals
measure      one real run of a project: response times, throughput, utilization, CPU
cpu          CPU time of processes and of the host
"""
