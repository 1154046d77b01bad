"""State of the compiled engine: arrays, and the meaning of their columns.

Flows, requests (frames), stations, processors and their nodes, and levels are rows of arrays. Invariants
stand beside the columns they are about. They hold whenever ``advance`` has come back, for whatever reason,
and inside of it between two flows; ``tests/simulator/machine/engine_invariants.py`` checks them.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mup.native.shapes import ANY
from simulator.machine.setups import Bounds, Knots, Seconds, SetupKinds

__all__ = ["Flows", "Frames", "Records", "Servers", "Sleeps", "State", "Stations"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]


INFINITE: Final = np.inf

# How ``advance`` ends.
DONE: Final = 0
MORE_FLOWS: Final = 1
MORE_FRAMES: Final = 2
MORE_JOBS: Final = 3
DEADLOCK: Final = 4
JOIN_STUCK: Final = 5
SPINNING: Final = 6
TOKEN_OVERFLOW: Final = 7
ENDLESS: Final = 8
PAUSED: Final = 9

PAUSE_STEPS: Final = 50_000
"""Steps after which ``advance`` comes back in any case: some milliseconds, so that limits can be kept."""

UNLIMITED: Final = 1 << 60
HALF_UNLIMITED: Final = 1 << 59

# ``State.scalars``.
EVENTS: Final = 0
HEAP_SIZE: Final = 1
FREE_FLOW: Final = 2
FREE_FRAME: Final = 3
URGENT_HEAD: Final = 4
URGENT_TAIL: Final = 5
READY_HEAD: Final = 6
READY_TAIL: Final = 7
CURRENT: Final = 8
AHEAD: Final = 9
STANDSTILL: Final = 10
CULPRIT: Final = 11
LOOK_AHEAD: Final = 12
TRACING: Final = 13
TRACED: Final = 14
SCALARS: Final = 16

# ``State.times``.
NOW: Final = 0
LOCAL: Final = 1
LAST_END: Final = 2  # the last end of a flow, which may have been ahead of the others
TIMES: Final = 4

# Columns of instructions (``Program.code``).
I_OPERATION: Final = 0
I_FIRST: Final = 1
"""First argument."""
I_SECOND: Final = 2
"""Second argument; of timed steps the distribution."""
I_WHERE: Final = 3
"""Of USE: which replica or seat of the processor, as ``BY_WORKER``, ``BY_FRONT`` or ``BY_REPLICA``, and which
set-up is on top; of DELAY: the latter."""
INSTRUCTION_INTS: Final = 4

# Columns of choices: the first of their options, and how many there are.
O_FIRST: Final = 0
O_OPTIONS: Final = 1
CHOICE_INTS: Final = 2

# Columns of joins (``Program.joins``).
J_SLOT: Final = 0
J_NEEDED: Final = 1
J_ARRIVALS: Final = 2
J_TIMER: Final = 3
J_CARRIED: Final = 4
JOIN_INTS: Final = 5

# Columns of entries (``Program.entries``).
E_TASK: Final = 0
E_START: Final = 1
E_EPILOGUE: Final = 2
E_REPLIES_ELSEWHERE: Final = 3
E_WAITS: Final = 4
E_TOKEN: Final = 5
E_LEVEL: Final = 6
"""Level of the requests inside."""
ENTRY_INTS: Final = 7

# Columns of tasks: the first of their stations, one per replica.
T_STATION: Final = 0
T_REPLICAS: Final = 1
T_RANK: Final = 2
TASK_INTS: Final = 3

# Columns of call sites (``Program.sites``).
C_ENTRY: Final = 0
C_RANK: Final = 1
C_POPULATION: Final = 2
SITE_INTS: Final = 3

# Columns of populations.
U_LEVEL: Final = 0
"""Level of the clients who think."""
POPULATION_INTS: Final = 1

# Columns of flows.
#
# Invariant: every row is in exactly one place. It is free, created (URGENT), ready, CURRENT, in the heap,
# PARKED at a join of its request, in a queue of a station, front or processor, or a job of a processor. NEXT
# links the rows of free, created, ready and queued flows, and means nothing for all others.
# Invariant: SERVER is other than -1 only in the heap, and only of a flow that has a core of an FCFS
# processor.
# Invariant: the heap is one by (time, TURN), and nothing in it is earlier than NOW.
AT: Final = 0
FRAME: Final = 1
NEXT: Final = 2
SERVER: Final = 3
OWN_CORE: Final = 4
SEAT_USED: Final = 5
EMPTY: Final = 6
COUNTED: Final = 7
KEEPS: Final = 8
"""The processor on which it has ended work, or works; once it waits for something else, -1."""
FLOW_INTS: Final = 9
SINCE: Final = 0
DEMAND: Final = 1
LEFT_OVER: Final = 2
SLEPT: Final = 3
"""How long the thread, or front, had slept that the flow has just got; only where that matters."""
STOPPED: Final = 4
"""When the flow last ended a job where threads take turns (-1: never); end of its turn; which server."""
STOPPED_UNTIL: Final = 5
STOPPED_ON: Final = 6
BEGUN: Final = 7
"""Since when it has its place in a part that queues."""
FLOW_FLOATS: Final = 8
STREAM: Final = 0
KEY: Final = 1
TURN: Final = 2
FLOW_BITS: Final = 4

# Columns of frames (requests).
#
# Invariant: ACTIVE flows are at work for a request, in it or in what they have called. REFERENCES counts
# these, the flow that is PARKED at a join, and the one that brings the reply home; at 0 the row is free, and
# CALLER links it. A request therefore outlives its reply for as long as it has a second phase.
# Invariant: PARKED and PARKED_AT are both -1, or both not: only the carrier parks, so one flow at most.
# Invariant: at most one flow carries a request (CARRIER, or AWAY during its calls), which holds the thread
# and its seat. While a flow runs a branch INLINE there is no carrier: that very flow is it again at the
# branch's end.
# Invariant: RELEASED implies ENDED: the thread is given back behind the carrier's last activity.
ENTRY: Final = 0
STATION: Final = 1
CALLER: Final = 2
RETURN_TO: Final = 3
SITE: Final = 4
CARRIER: Final = 5
ACTIVE: Final = 6
REFERENCES: Final = 7
PARKED: Final = 8
PARKED_AT: Final = 9
ENDED: Final = 10
RELEASED: Final = 11
REPLIED: Final = 12
POPULATION: Final = 13
SEAT: Final = 14
INLINE: Final = 15
SAVED_CORE: Final = 16
CARRIED: Final = 17
JOINED: Final = 18
AWAKE: Final = 19
"""Of a client's cycle: it counts among those that have something to do; only where that matters."""
FRAME_INTS: Final = 20
ARRIVED: Final = 0
WAITING_SINCE: Final = 1
ADMITTED: Final = 2
THOUGHT_TIME: Final = 3
WORKER_SHARE: Final = 4
CORE_SHARE: Final = 5
"""Of the set-up of its worker, and of the core, that a request gets; only where there are any."""
LAST_JOINED: Final = 6
"""When a branch last arrived at a join before the carrier (-1: never)."""
FRAME_FLOATS: Final = 7
SAVED_STREAM: Final = 0
SAVED_KEY: Final = 1
"""Of the flow that runs a branch inline: what is its own again at the end of the branch."""
FRAME_BITS: Final = 2

NO_FLOW: Final = -1
"""No flow carries the request (any more)."""
BY_CARRIER: Final = 1
BY_INLINE_BRANCH: Final = 2
"""Values of CARRIED: what made the call, so that the flow with the reply takes its place. (INLINE holds the
number of the flow that runs a branch inline, plus 1.)"""

AWAY: Final = -2
"""The flow that carries the request has made a call; whichever flow brings the reply carries on."""

# Columns of stations.
#
# Invariant: 0 <= S_FREE <= S_CAPACITY, unless the capacity is unlimited (then S_FREE never changes).
# Invariant: S_WAITING is the length of all queues of the station, and the content of its S_WAITING_LEVEL
# together with the other replicas. If it is positive, no place is free: one that is given back is handed on.
# Invariant of a lock instead: the S_LET_IN first readers wait only while no place is free; others wait for
# the S_WRITERS, of which one writes if and only if all places are free and no reader is let in.
# Invariant: flows wait for a front only while it is taken (S_FRONT_FREE is 0).
S_FREE: Final = 0
S_CAPACITY: Final = 1
S_ADMISSION: Final = 2
S_WAITING: Final = 3
S_WAITING_LEVEL: Final = 4
S_BUSY_LEVEL: Final = 5
S_FRONT_FREE: Final = 6
S_SEATS: Final = 7
S_SEATED: Final = 8
S_FRONT_SEAT: Final = 9
S_WRITERS: Final = 10
S_LET_IN: Final = 11
S_REST: Final = 12
"""Where ``Stations.rests`` says since when the front sleeps, followed by what the workers do; -1 if that does
not matter."""
S_RESTED: Final = 13
"""Of threads that sleep one by one: how many are known to; -1 if the replica sleeps as a whole."""
STATION_INTS: Final = 14

# Columns of the queues of fronts: first and last flow.
F_HEAD: Final = 0
F_TAIL: Final = 1
FRONT_INTS: Final = 2

# Queues of a lock.
READERS: Final = 0
WRITERS: Final = 1

# Columns of servers.
#
# Invariant of FCFS and PREEMPTIVE: flows queue only while V_FREE is 0; V_CORES - V_FREE flows are at work,
# which are in the heap (FCFS) or the first rows of ``running_ints``.
# Invariant: V_NEXT is the moment of the processor's next event, infinite if it has none or if that of an FCFS
# processor is in the heap. ``Servers.winners[1]`` is the processor whose V_NEXT is first, of several the
# first.
V_KIND: Final = 0
V_ROOT: Final = 1
V_NODE: Final = 2
V_NODES: Final = 3
V_OWN_NODE: Final = 4
V_CORES: Final = 5
V_FREE: Final = 6
V_BY_PRIORITY: Final = 7
V_ARRIVALS: Final = 8
V_NEXT_NODE: Final = 9
V_PARTS: Final = 10
V_FALLS: Final = 11
"""Where ``Servers.falls`` says since when cores sleep; -1 if that does not matter."""
V_EXPIRES: Final = 12
"""Where threads take turns: whether the next event of a core is the end of a turn, not of a job."""
SERVER_INTS: Final = 13
V_SPEED: Final = 0
V_PACE: Final = 1
V_NEXT: Final = 2
V_LAST: Final = 3
V_BUSY: Final = 4
V_DONE: Final = 5
V_STARTS: Final = 6
V_WAKE: Final = 7
V_STEAL: Final = 8
V_BALANCE: Final = 9
V_BALANCE_AT: Final = 10
V_AWAKE: Final = 11
"""Of a tree, if it matters since when cores sleep: how many of them are busy."""
V_QUANTUM: Final = 12
"""Of a STICKY processor; 0 = the threads on a core share it."""
V_PREEMPT: Final = 13
SERVER_FLOATS: Final = 14

# Columns of flows that run on a preemptive processor, one row per core.
R_ARRIVAL: Final = 0
R_RANK: Final = 1
R_FLOW: Final = 2
RUNNING_INTS: Final = 3

# Columns of nodes.
#
# Invariant of a core of a STICKY processor: N_SLOTS counts its N_JOBS, and the seats of parts that run on it,
# whose P_NUMBER is not 0.
# Invariant of one where threads take turns: the place of a job is its end, that of a seat its P_PLACE. Places
# differ and are not 0, and who has the first runs: between events this is N_FIRST, below 0, of seat N_HEAD,
# or of the first job if that is -1. LEFT_OVER of the flow of a job is its work as of V_LAST.
N_SERVER: Final = 0
N_PARENT: Final = 1
N_QUEUES: Final = 2
N_JOBS: Final = 3
N_SLOTS: Final = 4
N_SEAT: Final = 5
N_SEATS_END: Final = 6
N_HEAD: Final = 7
N_LOWEST: Final = 8
"""The lowest place that was given on a core where threads take turns: who runs, and who was pushed aside."""
NODE_INTS: Final = 9
N_CORES: Final = 0
N_SPEED: Final = 1
N_PACE: Final = 2
N_VIRTUAL: Final = 3
N_RATE: Final = 4
N_BUSY: Final = 5
N_DONE: Final = 6
N_LOAD: Final = 7
N_FIRST: Final = 8
N_UNTIL: Final = 9
"""End of the turn."""
N_IDLE_SINCE: Final = 10
"""Of a part that queues: when it last had no job any more."""
NODE_FLOATS: Final = 11

# Columns of the seats of parts of a sticky processor.
P_NODE: Final = 0
P_CORE: Final = 1
P_NUMBER: Final = 2
P_PINNED: Final = 3
P_PLACE: Final = 4
PART_INTS: Final = 5

# Columns of when a seat of a part last went to sleep where threads take turns (-1: never), and of the end of
# its turn.
M_STOPPED: Final = 0
M_UNTIL: Final = 1
MARK_FLOATS: Final = 2

# Columns of levels.
L_ENTERED: Final = 0
L_LEFT: Final = 1
L_CONTENT: Final = 2
L_AREA: Final = 3
L_SINCE: Final = 4
L_TIME: Final = 5
L_LAST: Final = 6
LEVEL_FLOATS: Final = 8

# Columns of sums and of single times, in the order of ``simulator.machine.recording.Layout``.
CYCLES: Final = 0
RESPONSE_TIMES: Final = 1
CYCLE_TIMES: Final = 2
CYCLE_SUMS: Final = 3
REQUESTS: Final = 0
WAITED: Final = 1
SITE_SUMS: Final = 2
COMPLETIONS: Final = 0
DELAYED: Final = 1
JOIN_SUMS: Final = 2
EXECUTIONS: Final = 0
LASTED: Final = 1
WAITED_FOR_CORE: Final = 2
ACTIVITY_SUMS: Final = 3
ADDITIONS: Final = 0
ADDED: Final = 1
SETUP_SUMS: Final = 2
SAMPLE_END: Final = 0
SAMPLE_VALUE: Final = 1
SAMPLE_FLOATS: Final = 2
KEPT: Final = 0
MASK: Final = 1
"""Of the counts of single times: how many are kept, and which moments stay."""
COUNT_INTS: Final = 2


class Servers(NamedTuple):
    """Processors: one row each, nodes of those that share, and the jobs on the nodes."""

    ints: Annotated[Longs, (ANY, SERVER_INTS)]
    floats: Annotated[Floats, (ANY, SERVER_FLOATS)]
    bits: Annotated[Bits, (ANY,)]
    heads: Annotated[Ints, (ANY, ANY)]
    tails: Annotated[Ints, (ANY, ANY)]
    running_ends: Annotated[Floats, (ANY, ANY)]
    running_ints: Annotated[Longs, (ANY, ANY, RUNNING_INTS)]
    node_ints: Annotated[Longs, (ANY, NODE_INTS)]
    node_floats: Annotated[Floats, (ANY, NODE_FLOATS)]
    job_ends: Annotated[Floats, (ANY, ANY)]
    job_numbers: Annotated[Longs, (ANY, ANY)]
    job_flows: Annotated[Ints, (ANY, ANY)]
    seat_cores: Annotated[Ints, (ANY,)]
    part_seats: Annotated[Longs, (ANY, PART_INTS)]
    part_marks: Annotated[Floats, (ANY, MARK_FLOATS)]
    falls: Annotated[Floats, (ANY,)]
    winners: Annotated[Ints, (ANY,)]


class Flows(NamedTuple):
    """Flows: one row each."""

    ints: Annotated[Ints, (ANY, FLOW_INTS)]
    floats: Annotated[Floats, (ANY, FLOW_FLOATS)]
    bits: Annotated[Bits, (ANY, FLOW_BITS)]


class Frames(NamedTuple):
    """Requests: one row each."""

    ints: Annotated[Ints, (ANY, FRAME_INTS)]
    floats: Annotated[Floats, (ANY, FRAME_FLOATS)]
    bits: Annotated[Bits, (ANY, FRAME_BITS)]
    clocks: Annotated[Floats, (ANY, ANY)]
    registers: Annotated[Longs, (ANY, ANY)]
    slots: Annotated[Ints, (ANY, ANY)]


class Stations(NamedTuple):
    """Threads and fronts of every replica; since when they sleep."""

    ints: Annotated[Longs, (ANY, STATION_INTS)]
    bits: Annotated[Bits, (ANY,)]
    heads: Annotated[Ints, (ANY, ANY)]
    tails: Annotated[Ints, (ANY, ANY)]
    front_heads: Annotated[Ints, (ANY, FRONT_INTS)]
    seat_stack: Annotated[Ints, (ANY,)]
    rests: Annotated[Floats, (ANY,)]


class Records(NamedTuple):
    """What is counted (see ``simulator.machine.recording``)."""

    levels: Annotated[Floats, (ANY, LEVEL_FLOATS)]
    cycles: Annotated[Floats, (ANY, CYCLE_SUMS)]
    site_sums: Annotated[Floats, (ANY, SITE_SUMS)]
    join_sums: Annotated[Floats, (ANY, JOIN_SUMS)]
    activity_sums: Annotated[Floats, (ANY, ACTIVITY_SUMS)]
    cycle_samples: Annotated[Floats, (ANY, ANY, SAMPLE_FLOATS)]
    cycle_counts: Annotated[Longs, (ANY, COUNT_INTS)]
    entry_samples: Annotated[Floats, (ANY, ANY, SAMPLE_FLOATS)]
    entry_counts: Annotated[Longs, (ANY, COUNT_INTS)]
    scratch: Annotated[Floats, (ANY,)]


class Sleeps(NamedTuple):
    """What sleep costs (``simulator.machine.sleeping``), and since when the clients of a population sleep."""

    knots: Knots
    bounds: Bounds
    seconds: Seconds
    kinds: SetupKinds
    sums: Annotated[Floats, (ANY, SETUP_SUMS)]
    clients_awake: Annotated[Longs, (ANY,)]
    client_rests: Annotated[Floats, (ANY,)]


class State(NamedTuple):
    """All arrays the interpreter works on; the column names above say what is where."""

    scalars: Annotated[Longs, (SCALARS,)]
    times: Annotated[Floats, (TIMES,)]
    code: Annotated[Ints, (ANY, INSTRUCTION_INTS)]
    kinds: Annotated[Longs, (ANY,)]
    parameters: Annotated[Floats, (ANY, 3)]
    data: Annotated[Floats, (ANY,)]
    choice_bounds: Annotated[Ints, (ANY, CHOICE_INTS)]
    choice_odds: Annotated[Floats, (ANY,)]
    choice_addresses: Annotated[Ints, (ANY,)]
    joins: Annotated[Ints, (ANY, JOIN_INTS)]
    entries: Annotated[Ints, (ANY, ENTRY_INTS)]
    tasks: Annotated[Ints, (ANY, TASK_INTS)]
    sites: Annotated[Ints, (ANY, SITE_INTS)]
    populations: Annotated[Ints, (ANY, POPULATION_INTS)]
    servers: Servers
    flows: Flows
    frames: Frames
    stations: Stations
    records: Records
    sleeps: Sleeps
    heap_times: Annotated[Floats, (ANY,)]
    heap_flows: Annotated[Ints, (ANY,)]
    trace_times: Annotated[Floats, (ANY,)]
    trace_keys: Annotated[Bits, (ANY,)]
