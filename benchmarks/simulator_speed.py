"""How many events does the reference engine simulate per CPU second? One event = one timed step."""

from __future__ import annotations

import statistics
import time

from machine import describe

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task
from simulator.api import simulate

REPEATS = 5
SEED = 0
HORIZON = 400.0


def two_tiers(clients: int) -> Model:
    """Return clients -> web (4 threads) -> database (2 threads), all on a 2-core processor-sharing host."""

    def tier(name: str, threads: int, demand: float, *calls: Call) -> Task:
        work = Activity(name="work", demand=Exponential(demand), delay=Constant(0.0), calls=calls)
        entry = Entry(name="/x/", start="work", activities=(work,))
        return Task(name=name, threads=threads, processor="host", entries=(entry,))

    cycle = Activity(
        name="ask", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="Web", entry="/x/"),)
    )
    users = Task(
        name="Users",
        role="reference",
        threads=clients,
        think=Exponential(0.1),
        entries=(Entry(name="cycle", start="ask", activities=(cycle,)),),
    )
    return Model(
        name="two tiers",
        processors=(Processor(name="host", cores=2),),
        tasks=(users, tier("Web", 4, 0.004, Call(task="Db", entry="/x/")), tier("Db", 2, 0.008)),
    )


def main() -> None:
    """Print events per CPU second at low and high load."""
    print(describe("mup-framework", "simpy", "numpy"))
    for clients in (4, 64):
        rates = []
        for _ in range(REPEATS):
            start = time.process_time()
            result = simulate(two_tiers(clients), horizon=HORIZON, seed=SEED)
            rates.append(result.events / (time.process_time() - start))
        print(
            f"{clients:3d} clients, {HORIZON:g} simulated s, seed {SEED}: "
            f"{statistics.median(rates) / 1e3:.0f} thousand events per CPU second (median of {REPEATS})"
        )


if __name__ == "__main__":
    main()
