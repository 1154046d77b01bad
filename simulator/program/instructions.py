"""Instructions of an engine.

A *flow* is a program counter that moves through the code with a stream of random numbers. It works for
a *request* (one execution of an entry) and either *carries* the request or is an auxiliary branch.
Instructions (``a``, ``b``, ``c`` are the operands):

    USE a b c     spend a time drawn from distribution b on processor a (a drawn time of 0 never visits it);
                  c is BY_WORKER; BY_FRONT if the front does it; BY_REPLICA if a is the first of as many
                  servers as the task has replicas: that of the request's own is used. With set-up i on top
                  of the drawn time, c is that plus (i + 1) * SETUP_STEP
    DELAY b c     let a time drawn from distribution b pass; with set-up i on top, c is i + 1
    WAKE a b c    the request begins its work, or a client goes on after thinking: note how long worker and
                  core slept, for sleep a on processor b (-1 if there is one for every thread); c as for USE
    REST          a client has nothing to do
    THINK b       the same; it counts as think time if the flow carries a client's cycle
    THOUGHT       ... which has ended
    SERVED a b    a USE of processor b has ended, for activity a
    CALL a b      send a request to entry a from call site b: pick a replica, continue at the entry's first
                  instruction; RETURN comes back
    SEND a b      the same without reply: a new flow executes the entry, this one goes on
    FORWARD a b   leave the request; its reply will be that of entry a
    FRONT_TAKE, FRONT_GIVE   wait for, and free, the front of the request's replica (one at a time, FIFO)
    ADMIT a       wait for a thread of the request's replica (a is FOR_THREAD), or to hold a lock
                  (FOR_READING, FOR_WRITING), or for nothing (FOR_NOTHING)
    RELEASE       give the thread back for a while
    REACQUIRE     wait for a thread again
    FORK a        start an auxiliary flow at address a
    FORK_JOIN a   the same where the flow goes on to a JOIN of just these two; see ``optimise``
    JOIN a        arrive at join a
    BRANCH_END a  the JOIN at the end of the branch that a FORK_JOIN started
    CHOICE a      continue at one of the addresses of choice a
    GOTO a        continue at address a
    FAN_OUT a b c let join a wait for copies of a branch: register b says how many there are, register b + 1
                  how many are to be begun at once. c is 0; at most how many at once; or -1 - k if k suffice
    BRANCH a      begin an auxiliary flow at address a, for a request of its own within this one
    TAKE a b      of such a flow: continue at address b if register a of the request around is 0, else
                  subtract 1
    LEAVE         ... go back to the request around
    COUNT a b     draw how often a loop is run (distribution b) into register a
    LOOP a b      continue at address b if register a is 0, else subtract 1
    BEGIN a b     activity a begins; note the time in clock b
    FINISH a b    it ends
    SPLIT a       branches begin; note the time in clock a
    REPLY         the flow leaves the request behind with the reply; a new flow carries on the work after it
    END           the flow is over: free the thread if it carries the request, and reply if it has not
    RETURN        hand the reply to the flow that called
    CYCLE         a client's cycle is complete; begin the next one
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ACQUIRES",
    "ADMIT",
    "ADMITS",
    "BEGIN",
    "BRANCH",
    "BRANCH_END",
    "BY_FRONT",
    "BY_REPLICA",
    "BY_WORKER",
    "CALL",
    "CHOICE",
    "COUNT",
    "CYCLE",
    "DELAY",
    "END",
    "ENDS",
    "FAN_OUT",
    "FCFS",
    "FIFO",
    "FINISH",
    "FORK",
    "FORK_JOIN",
    "FORWARD",
    "FOR_NOTHING",
    "FOR_READING",
    "FOR_THREAD",
    "FOR_WRITING",
    "FRONT_GIVE",
    "FRONT_TAKE",
    "GIVE_BACK",
    "GOTO",
    "HAD_TURN",
    "JOIN",
    "LATE",
    "LEAVE",
    "LOCKED",
    "LOCKS",
    "LOOP",
    "MAX_EMPTY_CYCLES",
    "MAX_STANDSTILL",
    "PLAIN",
    "PREEMPTIVE",
    "PRIORITY",
    "RANDOM",
    "REACQUIRE",
    "RELEASE",
    "RELEASES",
    "REPLY",
    "REST",
    "RETURN",
    "SEND",
    "SERVED",
    "SETUP_STEP",
    "SHARED",
    "SPLIT",
    "STICKY",
    "TAKE",
    "THINK",
    "THOUGHT",
    "UNREADS",
    "UNWRITES",
    "USE",
    "WAKE",
    "Instruction",
]

# Plain integers, not an Enum: engines compare them millions of times.
USE: Final = 0
DELAY: Final = 1
THINK: Final = 2
CALL: Final = 3
FRONT_TAKE: Final = 4
FRONT_GIVE: Final = 5
ADMIT: Final = 6
FORK: Final = 7
JOIN: Final = 8
CHOICE: Final = 9
GOTO: Final = 10
REPLY: Final = 11
END: Final = 12
RETURN: Final = 13
CYCLE: Final = 14
SEND: Final = 15
FORWARD: Final = 16
RELEASE: Final = 17
REACQUIRE: Final = 18
COUNT: Final = 19
LOOP: Final = 20
BEGIN: Final = 21
FINISH: Final = 22
SPLIT: Final = 23
FORK_JOIN: Final = 24
BRANCH_END: Final = 25
THOUGHT: Final = 26
SERVED: Final = 27
WAKE: Final = 28
REST: Final = 29
FAN_OUT: Final = 30
BRANCH: Final = 31
TAKE: Final = 32
LEAVE: Final = 33

LATE: Final = 0
"""Address of the END where a flow goes on that comes to a join that has already let the others go on."""

BY_WORKER: Final = 0
BY_FRONT: Final = 1
BY_REPLICA: Final = 2
SETUP_STEP: Final = 4

# What kind of server a processor is.
FCFS: Final = 0
SHARED: Final = 1
PREEMPTIVE: Final = 2
STICKY: Final = 3
HAD_TURN: Final = 1 << 50
"""Added to the place of a thread whose turn on a core is over, so that who has woken up comes before it."""

# Who gets the next free thread.
FIFO: Final = 0
RANDOM: Final = 1
PRIORITY: Final = 2
LOCKED: Final = 3
"""Readers share the threads, a writer has them alone (``simulator.machine.reference.servers.Lock``)."""

# What happens to the thread at the end of an entry.
PLAIN: Final = 0
LOCKS: Final = -1
ACQUIRES: Final = 1
RELEASES: Final = 2
UNREADS: Final = 3
UNWRITES: Final = 4
ENDS: Final = {
    "": PLAIN,
    "acquire": ACQUIRES,
    "release": RELEASES,
    "read-lock": LOCKS,
    "read-unlock": UNREADS,
    "write-lock": LOCKS,
    "write-unlock": UNWRITES,
}
GIVE_BACK: Final = (RELEASES, UNREADS, UNWRITES)

# What a request waits for.
FOR_THREAD: Final = 0
FOR_NOTHING: Final = 1
FOR_READING: Final = 2
FOR_WRITING: Final = 3
ADMITS: Final = {
    "": FOR_THREAD,
    "acquire": FOR_THREAD,
    "release": FOR_NOTHING,
    "read-lock": FOR_READING,
    "read-unlock": FOR_NOTHING,
    "write-lock": FOR_WRITING,
    "write-unlock": FOR_NOTHING,
}

Instruction = tuple[int, int, int, int]
"""Operation, a, b, c."""

MAX_EMPTY_CYCLES: Final = 10_000
"""Cycles of no duration in a row before a client is declared to spin."""

MAX_STANDSTILL: Final = 50_000_000
"""Steps at one instant before it is declared to be endless."""
