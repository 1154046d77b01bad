"""Workers of a replica: started, replaced when they die, added and let go while it serves.

A worker has a number and a line to the front. What it is depends on the runtime: a process of its own,
or one of several in a process that is handed a line for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from mup.errors import DeploymentError
from mup.runtime.pool.front import Front, WorkerLink
from mup.runtime.process.debugging import prepare
from mup.runtime.process.service_log import set_up_logging
from mup.runtime.process.stacks import Stacks
from mup.runtime.protocol.wire import Line, line
from mup.runtime.worker.threads import run_threads, send_slot
from mup.runtime.worker.tray import Tray
from mup.runtime.worker.worker import ServiceRun, run_worker

__all__ = ["Workforce", "open_descriptors"]

_log = logging.getLogger("mup.runtime")

STILL_RUNS = "has closed its socket"
"""How a worker ended whose process has not."""

TEARDOWN_SECONDS = 2.0
"""What a worker that is to end gets for its teardown before it is killed."""


class _Worker(NamedTuple):
    """A worker that has been started: its number, its process, and the front's end of its line."""

    number: int
    pid: int
    line: Line


class Workforce:
    """The workers of one replica.

    Args:
        run: What they serve.
        size: How many there are at first.
        inherited: Descriptors that stay open in worker processes.

    Attributes:
        ending: Whether the replica stops: who dies is not replaced any more.

    Raises:
        DeploymentError: The system has no room for them.
    """

    # Invariants, whenever the event loop is free:
    #
    # - A process in `_crews` has its `_stacks`, and if it has several workers its socket in `_controls`: they
    #   come and go together. It leaves `_crews` with the first of its lines that closes, so that at most one
    #   task replaces it, however many workers it had.
    # - No number is given to a new worker that is wanted, or that a link has which still lives (`_grow`).
    # - A process on trial is not replaced by `_lost`: the code that waits for its setup starts it again, or
    #   fails.

    def __init__(self, run: ServiceRun, size: int, inherited: set[int]) -> None:
        self._run = run
        self._inherited = inherited
        # Numbers of the workers there should be. One that is not among them is not replaced.
        self._wanted = set(range(size))
        self._links: set[WorkerLink] = set()
        self._changing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        # Processes of workers that were let go.
        self._leaving: set[int] = set()
        # Processes waited for until all their workers are set up; the waiting code restarts those that die.
        self._on_trial: set[int] = set()
        # Per worker process: the numbers of its workers, and the socket that brings it more lines.
        self._crews: dict[int, list[int]] = {}
        self._controls: dict[int, socket.socket] = {}
        self._stacks: dict[int, Stacks] = {}
        # Processes that are about to be killed.
        self._doomed: set[int] = set()
        try:
            self._tray = Tray()
        except OSError as error:
            raise _no_room(error) from error
        self.ending = False
        # The pages of what is imported by now stay shared with the workers.
        gc.freeze()
        # Before there is an event loop: nothing of it gets into them.
        self._forked = self._start(sorted(self._wanted))

    @property
    def _alone(self) -> bool:
        """Whether every worker has a process of its own."""
        return self._run.runtime == "process"

    async def join(self, front: Front) -> None:
        """Wait until the first workers are set up, and let them work for a front.

        Raises:
            DeploymentError: A setup failed.
        """
        self._front = front
        front.replace = self._kill
        if self._run.admission == "fifo":
            # Else any of those that wait is the next one, not the oldest.
            front.tray = self._tray
        await self._take_on(self._forked)

    async def resize(self, size: int) -> None:
        """Have so many workers from now on.

        New ones are set up when this returns. Those that are not wanted any more get no further request and
        end with the one they have.

        Raises:
            DeploymentError: New workers cannot be had; the pool is as it was.
        """
        async with self._changing:
            if self.ending:
                raise DeploymentError("the replica is stopping")
            more = size - len(self._wanted)
            if more > 0:
                await self._grow(more)
            elif more < 0:
                self._shrink(-more)

    async def end(self) -> None:
        """Let the workers tear down and flush their logs; kill the ones that do not end."""
        self.ending = True
        pending = {link.pid for link in self._links} | self._leaving
        for link in self._links:
            link.end()
        for control in self._controls.values():
            control.close()
        await _reap(pending)
        self._tray.close()

    def show_stacks(self) -> None:
        """Log what every worker process is doing right now."""
        self._spawn(self._log_stacks())

    async def _log_stacks(self) -> None:
        for pid in sorted(self._crews):
            await self._log_stack(pid)

    async def _log_stack(self, pid: int) -> None:
        numbers = self._crews.get(pid)
        if numbers is None or pid not in self._stacks:
            return  # it has ended meanwhile
        lines = await self._stacks[pid].ask(pid)
        who = f"worker {numbers[0]}" if self._alone else f"the process of {len(numbers)} workers"
        what = "is doing this" if lines else "does not say what it is doing"
        _log.warning("%s (pid %d) %s", who, pid, what, extra={"fields": {"stacks": lines}})

    def _kill(self, pid: int, why: str) -> None:
        """End a process that does not end by itself; its successor starts when it has."""
        if pid not in self._doomed:
            self._doomed.add(pid)
            self._spawn(self._end_stuck(pid, why))

    async def _end_stuck(self, pid: int, why: str) -> None:
        # Who looks for the reason finds it in the log.
        await self._log_stack(pid)
        self._doomed.discard(pid)
        # One that has ended its request meanwhile, and may have another one, is let go on.
        if pid in self._crews and all(link.overdue for link in self._links if link.pid == pid):
            _log.warning("process %d %s: it is killed", pid, why)
            os.kill(pid, signal.SIGKILL)

    # Starting.

    def _start(self, numbers: Iterable[int]) -> list[_Worker]:
        """Start workers: each in a process of its own, or all of them in one.

        Raises:
            DeploymentError: The system has no process or descriptor left for one of them; none is started.
        """
        if self._alone:
            return self._all_of(self._start_alone, numbers)
        pid = self._start_crew()
        try:
            return self._all_of(partial(self._start_in, pid), numbers)
        except DeploymentError:
            self._dismiss(pid)
            raise

    def _all_of(self, start: Callable[[int], _Worker], numbers: Iterable[int]) -> list[_Worker]:
        """Start workers, all of them or none.

        Raises:
            DeploymentError: One could not be started.
        """
        workers: list[_Worker] = []
        try:
            for number in numbers:
                workers.append(start(number))  # noqa: PERF401 - those before one that fails have to be ended
        except OSError as error:
            for worker in workers:
                worker.line.close()
                if self._alone:
                    self._dismiss(worker.pid)
                else:
                    self._crews[worker.pid].remove(worker.number)
            raise _no_room(error) from error
        return workers

    def _dismiss(self, pid: int) -> None:
        """End a process that has just been started and does not serve yet."""
        self._crews.pop(pid, None)
        self._close_descriptors(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def _close_descriptors(self, pid: int) -> None:
        """Give back what a process was watched and told with."""
        self._stacks.pop(pid).close()
        control = self._controls.pop(pid, None)
        if control is not None:
            control.close()

    def _start_crew(self) -> int:
        """Start a process that is to have several workers; return its pid.

        Raises:
            DeploymentError: The system has no process or descriptor left for it.
        """
        if self._run.runtime == "thread":
            serve = run_threads
        else:
            # A service without an event loop of its own does not carry what one needs.
            from mup.runtime.worker.event_loop import run_loop as serve  # noqa: PLC0415
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            work = partial(serve, self._run, theirs, os.getpid(), self._tray)
            with theirs:
                pid = self._fork("workers", {theirs.fileno()}, work)
        except OSError as error:
            raise _no_room(error) from error
        self._controls[pid] = ours
        self._crews[pid] = []
        return pid

    def _start_alone(self, number: int) -> _Worker:
        ours, theirs = line()
        work = partial(run_worker, self._run, number, theirs, os.getpid(), self._tray)
        pid = self._fork(f"w{number}", set(theirs.filenos()), work)
        theirs.close()
        ours.setblocking(False)
        self._crews[pid] = [number]
        return _Worker(number, pid, ours)

    def _start_in(self, pid: int, number: int) -> _Worker:
        """Start one more worker in a process that serves several."""
        ours, theirs = line()
        # A process that has died is noticed at the front's end of the line, like one that dies later.
        with contextlib.suppress(ConnectionError):
            send_slot(self._controls[pid], number, theirs)
        theirs.close()
        ours.setblocking(False)
        self._crews[pid].append(number)
        return _Worker(number, pid, ours)

    def _fork(self, name: str, kept: set[int], serve: Callable[[], None]) -> int:
        """Start a worker process, which keeps some descriptors; return its pid."""
        # A signal that arrived in the child before it has set its handlers would be taken for the front's.
        signals = {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1}
        stacks = Stacks()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        try:
            pid = os.fork()
            if pid == 0:
                self._be_worker(name, kept, stacks, blocked, serve)
        except OSError:
            stacks.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self._stacks[pid] = stacks
        return pid

    def _be_worker(
        self, name: str, kept: set[int], stacks: Stacks, blocked: set[Any], serve: Callable[[], None]
    ) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            keep = self._inherited | kept | {0, 1, 2, stacks.fileno(), self._tray.fileno()}
            for descriptor in open_descriptors() - keep:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.close(nothing)
            if self._run.debug is not None:
                prepare(self._run.debug)
            stacks.register()
            set_up_logging(self._run.service, self._run.replica, name)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            serve()
            status = 0
        except BaseException:  # noqa: BLE001 - nothing of the worker may go on in the front's code
            _log.exception("worker process %s failed", name)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            # Not exit(): what the front has registered to happen at its exit is not the worker's business.
            os._exit(status)

    async def _connect(self, worker: _Worker, *, missed: bool = True) -> WorkerLink:
        """Take the front's end of a worker's line.

        Args:
            worker: It has just been started.
            missed: Whether its end is that of its process, which is replaced.
        """
        loop = asyncio.get_running_loop()
        link = WorkerLink(worker.number, worker.pid, loop)
        link.retiring = not missed
        link.on_lost = self._lost
        self._links.add(link)
        # Nothing comes from where requests go.
        link.requests, _ = await loop.create_unix_connection(asyncio.Protocol, sock=worker.line.requests)
        await loop.create_unix_connection(lambda: link, sock=worker.line.answers)
        return link

    async def _set_up(self, link: WorkerLink) -> None:
        """Wait until a worker is set up.

        Raises:
            DeploymentError: Its setup failed, or it has died.
        """
        error = await link.ready
        if error:
            raise DeploymentError(error, where=f"services.{self._run.service}")
        if link.lost:
            raise self._died()

    def _died(self) -> DeploymentError:
        return DeploymentError("a worker died right after its setup", where=f"services.{self._run.service}")

    async def _take_on(self, workers: list[_Worker]) -> list[WorkerLink]:
        """Wait until workers that have just been started are set up, and let them work; return their links.

        Raises:
            DeploymentError: A setup failed, or one has died: its process is not replaced elsewhere.
        """
        pids = {worker.pid for worker in workers}
        self._on_trial |= pids
        try:
            links = [await self._connect(worker) for worker in workers]
            for link in links:
                await self._set_up(link)
                if self._alone:
                    self._on_trial.discard(link.pid)
                self._front.add(link)
            if not self._alone and any(link.lost for link in links):
                raise self._died()
            return links
        finally:
            self._on_trial -= pids

    # Changing size.

    async def _grow(self, count: int) -> None:
        taken = self._wanted | {link.number for link in self._links}
        numbers = list(itertools.islice((n for n in itertools.count() if n not in taken), count))
        if not self._alone and not self._crews:
            raise DeploymentError("the process of the workers is being replaced", hint="try again")
        if self._alone:
            workers = self._start(numbers)
        else:
            workers = self._all_of(partial(self._start_in, next(iter(self._crews))), numbers)
        # Until all are set up none is missed: one that ends meanwhile does not take its neighbours along.
        links = [await self._connect(worker, missed=False) for worker in workers]
        try:
            for link in links:
                await self._set_up(link)
            if any(link.lost for link in links):
                raise self._died()
        except DeploymentError:
            for link in links:
                link.end()
            raise
        for link in links:
            link.retiring = False
        self._wanted.update(numbers)
        self._front.resized(len(self._wanted))
        for link in links:
            self._front.add(link)

    def _shrink(self, count: int) -> None:
        working = self._front.workers

        def hardness(number: int) -> tuple[bool, bool, int]:
            # One that has died and is not back yet is not missed, one that rests ends at once.
            link = working.get(number)
            return link is not None, link is not None and link.ticket is not None, -number

        for number in sorted(self._wanted, key=hardness)[:count]:
            self._wanted.discard(number)
            if number in working:
                self._front.retire(working[number])
        self._front.resized(len(self._wanted))

    # Ending.

    def _lost(self, link: WorkerLink) -> None:
        """A worker has ended: report it, and replace it unless it or the replica is to end."""
        self._links.discard(link)
        if self.ending:
            self._front.remove(link, "has ended")
            return
        if link.retiring and link.ticket is None:
            self._front.remove(link, "has ended")
            self._forget(link)
            return
        crew = self._crews.pop(link.pid, None)
        assert crew is None or link.pid in self._stacks  # noqa: S101 - invariant
        if crew is None:
            # One of several workers of a process that has ended; they are replaced together.
            self._front.remove(link, link.fate or "has ended with its process")
            return
        self._close_descriptors(link.pid)
        how = _how_it_ended(link.pid)
        for other in self._links:
            if other.pid == link.pid:
                other.fate = how
        self._front.remove(link, how)
        if how == STILL_RUNS:
            # Whatever it does, it serves no request any more.
            with contextlib.suppress(ProcessLookupError):
                os.kill(link.pid, signal.SIGKILL)
            self._spawn(self._see_off(link.pid))
        who = f"worker {link.number}" if self._alone else f"the process of {len(crew)} workers"
        _log.error("%s (pid %d) %s", who, link.pid, how)
        if link.pid not in self._on_trial and link.ready.result() == "":
            self._spawn(self._replace(crew, link.started))

    def _forget(self, link: WorkerLink) -> None:
        """Take a worker that was let go from its process, or see its process off."""
        if self._alone:
            self._crews.pop(link.pid, None)
            self._stacks.pop(link.pid).close()
            self._spawn(self._see_off(link.pid))
        elif link.number in (crew := self._crews.get(link.pid, [])):
            crew.remove(link.number)

    async def _see_off(self, pid: int) -> None:
        self._leaving.add(pid)
        await _reap({pid})
        self._leaving.discard(pid)

    async def _replace(self, crew: list[int], started: float) -> None:
        # One that died at once would die again: at most one attempt per second.
        await asyncio.sleep(max(0.0, started + 1.0 - time.monotonic()))
        while not self.ending:
            # The pool may have changed meanwhile.
            numbers = [n for n in crew if n in self._wanted] if self._alone else sorted(self._wanted)
            if not numbers:
                return
            try:
                links = await self._take_on(self._start(numbers))
            except DeploymentError as error:
                _log.error("worker %d cannot be replaced: %s", numbers[0], error.message)
                self._front.cannot_replace()
                await asyncio.sleep(1.0)
            else:
                _log.warning("worker %s was replaced (pid %d)", ", ".join(map(str, numbers)), links[0].pid)
                for link in links:
                    if link.number not in self._wanted:
                        self._front.retire(link)
                return

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def open_descriptors() -> set[int]:
    """Return the numbers of this process's open descriptors."""
    folder = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    found = [int(path.name) for path in Path(folder).iterdir()]
    # The listing itself had one, which is closed by now: its number would be that of the next file opened.
    return {number for number in found if _is_open(number)}


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _no_room(error: OSError) -> DeploymentError:
    return DeploymentError(f"no worker can be started: {error.strerror or error}")


async def _reap(pids: set[int]) -> None:
    """Collect children that are about to end; kill the ones that take too long."""
    pending = set(pids)
    give_up = time.monotonic() + TEARDOWN_SECONDS
    while pending:
        pending = {pid for pid in pending if not _reaped(pid)}
        if pending and time.monotonic() > give_up:
            for pid in pending:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            give_up = time.monotonic() + TEARDOWN_SECONDS
        if pending:
            await asyncio.sleep(0.005)


def _reaped(pid: int) -> bool:
    """Collect a child that has ended; False = it has not."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def _how_it_ended(pid: int) -> str:
    """Collect a child whose socket is closed, and say how it ended."""
    give_up = time.monotonic() + 0.2
    while time.monotonic() < give_up:
        # Its socket closes an instant before the kernel has its exit status.
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            break
        if done:
            code = os.waitstatus_to_exitcode(status)
            return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        time.sleep(0.001)
    return STILL_RUNS
