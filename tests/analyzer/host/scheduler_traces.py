"""A short trace of two cores, made of lines as the kernel writes them, in which everything is known."""

from __future__ import annotations

HEADER = """# tracer: nop
#
# entries-in-buffer/entries-written: 22/22   #P:2
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""


def switch(time: float, cpu: int, leaves: int, state: str, comes: int) -> str:
    """Return the line of a context switch."""
    return (
        f"          {name(leaves)}-{leaves}       [{cpu:03d}] d..2. {time:.6f}: sched_switch: prev_comm={name(leaves)} "
        f"prev_pid={leaves} prev_prio=120 prev_state={state} ==> next_comm={name(comes)} next_pid={comes} next_prio=120"
    )


def woken(time: float, cpu: int, waker: int, pid: int, target: int, *, timer: bool = False) -> str:
    """Return the two lines of a wake-up."""
    head = f"          {name(waker)}-{waker}       [{cpu:03d}] {'d.h3.' if timer else 'd..3.'} {time:.6f}: "
    tail = f"comm={name(pid)} pid={pid} prio=120 target_cpu={target:03d}"
    return f"{head}sched_waking: {tail}\n{head}sched_wakeup: {tail}"


def moved(time: float, cpu: int, pid: int, source: int, target: int) -> str:
    """Return the line of a migration."""
    return (
        f"          <idle>-0       [{cpu:03d}] d..2. {time:.6f}: sched_migrate_task: comm={name(pid)} pid={pid} "
        f"prio=120 orig_cpu={source} dest_cpu={target}"
    )


def name(pid: int) -> str:
    """Return the command of a thread, with the spaces and dashes real ones have."""
    return f"swapper/{pid}" if pid == 0 else f"my work-{pid}"


def trace(*lines: str) -> str:
    """Return a whole trace."""
    return HEADER + "\n".join(lines) + "\n"


# Threads 11, 12, 13. Until 1.000 both cores get known. 11 works on core 0 and wakes 12, whose last core is 0, too:
# it stays there although core 1 idles, and takes the core at once. 11 goes on when 12 has slept. Then a timer wakes
# 13, which moves to the idle core 1.
SHORT = trace(
    switch(0.900000, 0, 12, "S", 0),
    switch(0.900100, 0, 0, "R", 13),
    switch(0.900200, 0, 13, "S", 11),
    switch(0.900300, 1, 7, "S", 0),
    woken(1.000000, 0, 11, 12, 0),
    switch(1.000010, 0, 11, "R+", 12),
    switch(1.002000, 0, 12, "S", 11),
    moved(1.003000, 0, 13, 0, 1),
    woken(1.003000, 0, 11, 13, 1, timer=True),
    switch(1.003050, 1, 0, "R", 13),
    switch(1.004000, 1, 13, "S", 0),
    switch(1.005000, 0, 11, "S", 0),
    switch(1.006000, 1, 0, "R", 7),
    switch(1.006100, 1, 7, "S", 0),
)
