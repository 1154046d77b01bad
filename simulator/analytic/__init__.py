"""What does a model predict, roughly, within milliseconds? See `simulator.analytic.solver`.

Files: ``layers`` makes stations and plans (one per entry) of a model; ``entries`` are what follows from the
graph of an entry; ``evaluation`` are times and loads at an ``operating_point``, which ``fixed_point``
iterates with the ``approximations``; ``solver`` starts it, and ``reports`` are its figures and what is
doubtful about them. ``candidates`` are many models of one structure, for which ``compiled`` is the iteration
in machine code. ``product_form`` is another method, exact where there are no layers.

Glossary, in the symbols of queueing networks:

    station         a place where requests queue: the threads of a task, a front, a processor, a part of one
    plan            an entry, or a front: what a request does there
    customer        a client, thread or core that holds its place while it visits stations of a closed network
    N   population  customers of a network at most
    X   rate        cycles (of customers), visits (of stations), requests (of plans) per second
    D   profile     what a customer asks of the stations per cycle: visits, seconds of service, ... (a *load*)
    n               jobs at a station; mu(n), its *rates*, are the jobs per second completed with n there
    U   utilization busy servers over servers
    W   wait        seconds in the queue per visit
    L   jobs        mean number of jobs at a station, those in service included
    stretch         residence over service at a station of processor sharing
    theta           customers per job: below 1 where a customer has several jobs at once, in parallel branches
    pace            busy servers with n jobs there, as corrected for the variability of services
    scv             squared coefficient of variation
    occupancy       probability of 0, 1, ... jobs at a station
    view            a station as the customers of one network see it, the others being sources (*background*)
    relative work   residence of a customer per visit over that of all
    interlock       customers of a station who wait for one that is there, so that they are not
    second phase    what a thread does after its reply; overtaking: to meet that of the request before
    unawaited       work no customer waits for: messages, detached branches, arrivals from outside
    hold, reply     time until the thread is free, until the reply is out
    release         that a request gives up its thread on the way and takes another later
"""

from simulator.analytic.candidates.estimator import Estimator
from simulator.analytic.solver import CycleEstimate, Estimate, TaskEstimate, estimate

__all__ = ["CycleEstimate", "Estimate", "Estimator", "TaskEstimate", "estimate"]
