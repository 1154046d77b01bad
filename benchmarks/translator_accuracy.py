"""Accuracy of the translator's model over whole demos: explore, calibrate, predict, measure."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from machine import describe


def demo(clients: str, duration: float, explore_seconds: float) -> dict[str, Any]:
    """Run one demo in a folder of its own and return its JSON document."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "mup", "demo", "--json"),
            *("--clients", clients, "--duration", str(duration), "--max-seconds", str(explore_seconds)),
            *("--output", str(Path(folder) / "demo")),
        ]
        finished = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    document: dict[str, Any] = json.loads(finished.stdout)
    return document


def main() -> None:
    """Print the errors per load: every run, and the median of the runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--clients", default="1,2,4,8,16,32")
    parser.add_argument("--duration", type=float, default=12.0)
    parser.add_argument("--explore-seconds", type=float, default=60.0)
    options = parser.parse_args()
    print(describe("mup-framework"))
    errors: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for _ in range(options.repeats):
        document = demo(options.clients, options.duration, options.explore_seconds)
        for scenario in document["scenarios"]:
            predicted, measured = scenario["predicted"]["utilization"], scenario["measured"]["utilization"]
            gaps = [
                abs(predicted[t]["mean"] - measured[t]["mean"])
                for t in predicted
                if predicted[t] and measured[t]
            ]
            errors[scenario["change"]["clients"]].append(
                (scenario["error"]["response_time"], scenario["error"]["throughput"], max(gaps, default=0.0))
            )
    print(f"\n{options.repeats} demos; response time error of each, then medians")
    print("clients  errors of the mean response time    median   throughput   utilization (absolute)")
    for clients, rows in sorted(errors.items()):
        each = " ".join(f"{row[0]:+7.1%}" for row in rows)
        medians = [statistics.median(row[i] for row in rows) for i in range(3)]
        print(f"{clients:7d}  {each:34s} {medians[0]:+7.1%}   {medians[1]:+7.1%}        {medians[2]:.3f}")
    worst = max(abs(row[0]) for rows in errors.values() for row in rows)
    print(f"largest single error of the mean response time: {worst:.1%}")


if __name__ == "__main__":
    main()
