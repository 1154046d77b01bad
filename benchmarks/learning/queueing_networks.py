"""Learn closed queueing networks from queue lengths: the studies of the thesis, section 3.2.1.

    python benchmarks/learning/queueing_networks.py            # the running example and all ten networks
    python benchmarks/learning/queueing_networks.py --quick    # the running example and one small network

*Running example*: 50 traces of 500 runs; servers (1000, 30, 25), then (1000, 6, 1). Here the fluid is also
fitted to the error that is reported (``mup learn qn --method worst-moment``) and as the papers do (``adam``).

*Random networks*: M = 5 (seeds 1 to 5) and M = 10 (seeds 6 to 10); routing uniform, rates in [4, 30], servers
in {15, .., 30}; 100 traces of 500 runs from 0 to 40 clients per station, dt = 0.01, 10 s. Half of the traces
are learned from.

- *Population*: 100 unseen states of 0 to 120 clients per station (the papers show one with 111).
- *Concurrency*: 20 servers more at the bottleneck, again and again until it is none; states as learned from.

What really happens is the mean of 200 simulations of the true network. Predictions are the papers' (fluid of
the uncorrected network), and simulated ones of the corrected and of the TRUE network: the floor, which is the
noise of the runs they are compared with. Errors are the largest part of clients misplaced, percent.

A network that is done is kept in benchmarks/results and is not computed again; ``--networks`` chooses some,
with ``--minutes`` it stops and goes on later (``--minutes 0`` prints what there is). ``--traces``, ``--runs``
and ``--unseen`` make a smaller study, which is kept apart.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

from analyzer.learning.misplaced import misplaced
from analyzer.learning.network_learning import learn_network
from analyzer.learning.traces import Traces
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import fluid_means
from simulator.networks.prediction import predicted_means
from simulator.networks.simulation import transient_means

RESULTS = Path(__file__).resolve().parents[1] / "results" / "queueing-networks.jsonl"
DT, SAMPLES = 0.01, 1001
RUNS, PREDICTION_RUNS = 200, 40
STATES = 5
"""Per step of concurrency."""
STATIONS = {seed: 5 if seed <= 5 else 10 for seed in range(1, 11)}
"""By the seed of the network."""
SECONDS = {5: 2.0, 10: 5.0}
POPULATION_LIMIT, OVER_FLOOR = 10.0, 1.5
"""Wanted: processor time to learn, by stations; percent misplaced for other populations; error for other
concurrency over that of the true network."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a study is: traces (half of them to learn from), runs of each, unseen states."""

    traces: int = 100
    runs: int = 500
    unseen: int = 100


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Predictor = Callable[[ClosedNetwork, IntArray], FloatArray]


def balancer(servers: tuple[float, ...]) -> ClosedNetwork:
    """Return the running example of the thesis."""
    routing = np.array([[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]])
    return ClosedNetwork(
        names=("M1", "M2", "M3"),
        rates=np.array([1.0, 11.0, 11.0]),
        routing=routing,
        servers=np.array(servers),
    )


def random_network(stations: int, seed: int) -> ClosedNetwork:
    """Draw a network from the ranges of the thesis, section 3.2.1."""
    draw = np.random.default_rng(seed)
    routing = draw.uniform(size=(stations, stations))
    np.fill_diagonal(routing, 0.0)
    return ClosedNetwork(
        names=tuple(f"M{i + 1}" for i in range(stations)),
        rates=draw.uniform(4.0, 30.0, stations),
        routing=routing / routing.sum(axis=1, keepdims=True),
        servers=draw.integers(15, 31, stations).astype(float),
    )


def states(seed: int, many: int, stations: int, most: int) -> IntArray:
    """Draw states of 0 to ``most`` clients per station, none of them empty."""
    drawn = np.random.default_rng(seed).integers(0, most + 1, (many, stations))
    drawn[drawn.sum(axis=1) == 0, 0] = 1
    return drawn


def real(network: ClosedNetwork, starts: IntArray, runs: int, seed: int) -> Any:
    """Return simulated means of what really happens."""
    return transient_means(network, starts, dt=DT, samples=SAMPLES, runs=runs, seed=seed)


def fluid(network: ClosedNetwork, starts: IntArray) -> FloatArray:
    """Predict with the fluid."""
    return fluid_means(network, starts.astype(float), dt=DT, samples=SAMPLES)


def simulated(network: ClosedNetwork, starts: IntArray) -> FloatArray:
    """Predict by simulation."""
    return predicted_means(network, starts, dt=DT, samples=SAMPLES, runs=PREDICTION_RUNS, seed=9).x


def judge(
    truth: ClosedNetwork,
    networks: dict[str, tuple[ClosedNetwork, Predictor]],
    starts: IntArray,
    change: Callable[[ClosedNetwork], ClosedNetwork],
    seed: int,
) -> dict[str, list[float]]:
    """Return the errors of each prediction from each state, in the changed system."""
    observed = real(change(truth), starts, RUNS, seed).x
    return {
        name: misplaced(observed, predict(change(network), starts)).tolist()
        for name, (network, predict) in networks.items()
    }


def study(truth: ClosedNetwork, seed: int, size: Size) -> dict[str, Any]:
    """Learn one network and ask the what-ifs of the thesis."""
    stations = len(truth.names)
    starts = states(seed, size.traces, stations, 40)
    means = real(truth, starts, size.runs, seed)
    traces = Traces(x=means.x, dt=DT, names=truth.names, servers=truth.servers)
    warm_up(traces)
    learned = learn_network(traces)
    networks: dict[str, tuple[ClosedNetwork, Predictor]] = {
        "fluid": (learned.uncorrected, fluid),
        "corrected": (learned.network, simulated),
        "true": (truth, simulated),
    }
    unseen = states(seed + 100, size.unseen, stations, 120)
    population = judge(truth, networks, unseen, lambda n: n, seed + 200)
    concurrency: dict[str, list[float]] = {name: [] for name in networks}
    steps, added = bottleneck_steps(truth, means.x)
    for number, more in enumerate(added):
        name = truth.names[steps]
        servers = float(truth.servers[steps]) + more
        errors = judge(
            truth,
            networks,
            starts[:STATES],
            lambda n, name=name, servers=servers: n.with_servers(name, servers),  # type: ignore[misc]
            seed + 300 + number,
        )
        for key, values in errors.items():
            concurrency[key] += values
    return {
        "stations": stations,
        "seed": seed,
        "size": asdict(size),
        "clients": unseen.sum(axis=1).tolist(),
        "seconds": learned.seconds,
        "err_train": learned.err_train.mean,
        "err_validation": learned.err_validation.mean,
        "rates_off": {
            "uncorrected": float(np.abs(learned.uncorrected.rates / truth.rates - 1).max()),
            "corrected": float(np.abs(learned.network.rates / truth.rates - 1).max()),
        },
        "covered": covered(learned.rates_half, learned.network.rates, truth.rates),
        "population": population,
        "steps": added,
        "concurrency": concurrency,
    }


def covered(half: FloatArray | None, rates: FloatArray, truth: FloatArray) -> float:
    """Return the part of the rates that are within their intervals."""
    return float(np.mean(np.abs(rates - truth) <= (0.0 if half is None else half)))


def warm_up(traces: Traces) -> None:
    """Compile everything before processor time is taken."""
    few = traces.select(range(4))
    learn_network(few)


def bottleneck_steps(truth: ClosedNetwork, x: FloatArray) -> tuple[int, list[float]]:
    """Return the station with the longest queue per server, and by how much it has to grow."""
    final = x[:, -1].mean(axis=0)
    station = int(np.argmax(final / truth.servers))
    starts = x[:, 0]
    added: list[float] = []
    while True:
        added.append(20.0 * (len(added) + 1))
        wider = truth.with_servers(truth.names[station], float(truth.servers[station]) + added[-1])
        rest = fluid_means(wider, starts, dt=DT, samples=SAMPLES)[:, -1].mean(axis=0)
        if int(np.argmax(rest / wider.servers)) != station or len(added) >= 10:
            return station, added


def running_example() -> None:
    """Print the running example beside the figures of the thesis."""
    truth, changed = balancer((1000, 30, 25)), (1000, 6, 1)
    starts = np.vstack(([[26, 86, 0]], states(1, 49, 3, 100)))
    means = real(truth, starts, Size().runs, 1)
    traces = Traces(x=means.x, dt=DT, names=truth.names, servers=truth.servers)
    warm_up(traces)
    began = time.process_time()
    learned = learn_network(traces)
    seconds = time.process_time() - began
    networks: dict[str, tuple[ClosedNetwork, Predictor]] = {
        "fluid, least squares": (learned.uncorrected, fluid)
    }
    for method in ("worst-moment", "adam"):
        other = learn_network(traces, method=method, correction="none")
        networks[f"fluid, {method}"] = (other.network, fluid)
        print(f"{method}: {other.seconds['fit']:.2f} s to fit; least squares: {learned.seconds['fit']:.2f} s")
    networks |= {"simulated, corrected": (learned.network, simulated), "simulated, true": (truth, simulated)}
    for name, (network, predict) in networks.items():
        print(f"running example, {name}: rates {np.round(network.rates, 3).tolist()} (true 1, 11, 11)")
        print(f"  routing from M1 {np.round(network.routing[0], 3).tolist()} (true 0, 0.5, 0.5)")
        trained = misplaced(means.x, predict(network, starts))
        print(
            f"  training: (26, 86, 0) {trained[0]:.2f} % (thesis 0.69 %);"
            f" all 50 traces: mean {trained.mean():.2f} %, worst {trained.max():.2f} %"
        )
    narrow = balancer(changed)
    start = np.array([[49, 47, 0]])
    observed = real(narrow, start, Size().runs, 2).x
    for name, (network, predict) in networks.items():
        asked = ClosedNetwork(
            names=network.names, rates=network.rates, routing=network.routing, servers=narrow.servers
        )
        error = misplaced(observed, predict(asked, start))[0]
        print(f"  servers (1000, 6, 1) from (49, 47, 0), {name}: {error:.2f} % (thesis 1.49 %)")
    print(f"  {seconds:.1f} s of processor time, judging included")


COLUMNS = (
    "network",
    "s to learn, with judging",
    "fluid misplaces: learned from, held back",
    "rates off: fluid, corrected",
    "rates in their intervals",
    "population: fluid, corrected, true",
    "concurrency: fluid, corrected, true (steps)",
    "corrected over true",
)
KINDS = ("fluid", "corrected", "true")


def row(one: dict[str, Any]) -> str:
    """Return the line of a network: errors are those of the worst case."""
    learning = _learning_seconds(one)
    off = one["rates_off"]
    cells = [
        f"M = {one['stations']}, {one['seed']}",
        f"{learning:.1f}, {sum(one['seconds'].values()):.1f}",
        f"{one['err_train']:.2f} %, {one['err_validation']:.2f} %",
        f"{100 * off['uncorrected']:.1f} %, {100 * off['corrected']:.1f} %",
        f"{100 * one['covered']:.0f} %",
        ", ".join(f"{max(one['population'][kind]):.2f} %" for kind in KINDS),
        ", ".join(f"{max(one['concurrency'][kind]):.2f} %" for kind in KINDS) + f" ({len(one['steps'])})",
        f"{_over_floor(one):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def _learning_seconds(one: dict[str, Any]) -> float:
    return float(sum(one["seconds"].values()) - one["seconds"]["judging"])


def _over_floor(one: dict[str, Any]) -> float:
    return float(max(one["concurrency"]["corrected"]) / max(one["concurrency"]["true"]))


def summary(done: Sequence[dict[str, Any]]) -> None:
    """Print all networks together, what is wanted, and the papers' figures."""
    for kind in ("population", "concurrency"):
        for name in KINDS:
            values = np.concatenate([one[kind][name] for one in done])
            low, median, high = np.percentile(values, [25, 50, 75])
            print(
                f"{kind:12s} {name:10s} median {median:.2f} [{low:.2f}, {high:.2f}],"
                f" worst {values.max():.2f} of {len(values)}"
            )
    wanted = {
        f"population below {POPULATION_LIMIT:g} %": [
            max(one["population"]["corrected"]) < POPULATION_LIMIT for one in done
        ],
        f"concurrency within {OVER_FLOOR:g} times the true network's": [
            _over_floor(one) <= OVER_FLOOR for one in done
        ],
        "learned within 2 s (M = 5), 5 s (M = 10)": [
            _learning_seconds(one) <= SECONDS[one["stations"]] for one in done
        ],
    }
    for name, met in wanted.items():
        print(f"{name}: {sum(met)} of {len(met)} networks")
    print("Thesis: population below 10 %, concurrency below 5 %; 74 minutes (M = 5), 86 minutes (M = 10).")


def main() -> None:
    """Study the networks that are missing, print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one small network only; nothing is kept")
    parser.add_argument("--networks", default="1,2,3,4,5,6,7,8,9,10", help="1 to 5: M = 5, 6 to 10: M = 10")
    parser.add_argument("--traces", type=int, default=Size().traces, help="half of them to learn from")
    parser.add_argument("--runs", type=int, default=Size().runs, help="averaged per trace")
    parser.add_argument("--unseen", type=int, default=Size().unseen, help="unseen states that are predicted")
    parser.add_argument("--no-example", action="store_true", help="leave out the running example")
    parser.add_argument("--only-example", action="store_true", help="nothing but the running example")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no network after so many")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    last = time.monotonic() + 60 * options.minutes
    print(describe("numpy", "scipy"))
    if not options.no_example:
        running_example()
    if options.only_example:
        return
    size = Size(options.traces, options.runs, options.unseen)
    wanted = [1] if options.quick else [int(text) for text in options.networks.split(",")]
    stored = {} if options.quick else _stored(options.results, size)
    print(f"\n| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    done = []
    for seed in wanted:
        if seed not in stored:
            if time.monotonic() > last:
                continue
            stored[seed] = study(random_network(STATIONS[seed], seed), seed, size)
            if not options.quick:
                _store(options.results, stored[seed])
        done.append(stored[seed])
        print(row(done[-1]), flush=True)
    if done:
        summary(done)


def _stored(results: Path, size: Size) -> dict[int, dict[str, Any]]:
    """Return the networks studied in this size, by seed."""
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    return {one["seed"]: one for one in rows if one["size"] == asdict(size)}


def _store(results: Path, one: dict[str, Any]) -> None:
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a") as file:
        file.write(json.dumps(one) + "\n")


if __name__ == "__main__":
    main()
