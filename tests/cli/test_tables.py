"""Every table fits its terminal without a broken word or number."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from command_line import run, saved, shop
from rich.console import Console
from terminals import assert_whole, printed

import mup.cli
from mup.cli.output.tables import lay_out, print_table, wrapped
from mup.cli.predictions.autoscale import print_steps
from mup.cli.predictions.result_summary import print_summary
from mup.cli.predictions.result_tables import print_result
from mup.cli.predictions.scenario_tables import print_scenarios
from mup.lqn import Model, load_model
from mup.lqn.edits import with_clients
from simulator import simulate
from simulator.analytic import estimate
from simulator.studies.autoscale import Settings, autoscale
from simulator.studies.differences import difference
from simulator.studies.grids import Outcome, run_scenarios
from simulator.studies.prediction import RealRun
from simulator.studies.rehearsal import rehearse
from simulator.studies.whatif import Change, Scenario, grid

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, clients: int) -> Model:
    """Return a calibrated example under load."""
    return with_clients(load_model(EXAMPLES / name / "model.json"), clients)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["acmeair", "teastore", "jpetstore", "facedetect"])
def test_estimates_of_large_models_are_not_broken(name: str) -> None:
    """The summary, and every table of the details."""
    model = example(name, 20)
    document = estimate(model).to_json()
    assert_whole(lambda out: print_summary(out, model, document, ""))
    assert_whole(lambda out: print_result(out, document, everything=True))


@pytest.mark.slow
def test_simulated_figures_are_not_broken() -> None:
    """With intervals and percentiles, and the names of calls of a large model."""
    model = example("acmeair", 64)
    document = simulate(model, horizon=30, activities=True).to_json()
    assert_whole(lambda out: print_summary(out, model, document, "task main saturates first"))
    assert_whole(lambda out: print_result(out, document, everything=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["acmeair", "teastore"])
def test_scenarios_of_large_models_are_not_broken(name: str) -> None:
    """Grid and changes, with several changes per scenario."""
    base = example(name, 1)
    service = next(t.name for t in base.tasks if t.role == "service")
    axes = [tuple(Change("clients", "", n) for n in (2, 20)), (Change("pool", service, 2),)]
    scenarios = [Scenario((), base), *grid(base, axes)]
    runs = [[simulate(s.model, horizon=150, seed=seed) for seed in range(3)] for s in scenarios]
    outcomes = [Outcome(scenarios[0], runs[0][0])]
    outcomes += [
        Outcome(scenario, found[0], difference(runs[0], found))
        for scenario, found in zip(scenarios[1:], runs[1:], strict=True)
    ]
    assert_whole(lambda out: print_scenarios(out, outcomes))


@pytest.mark.slow
def test_scenarios_of_a_small_model_are_not_broken() -> None:
    """The same, quickly."""
    axes = [tuple(Change("clients", "", n) for n in (2, 20)), (Change("pool", "B", 2),)]
    outcomes = run_scenarios([Scenario((), shop()), *grid(shop(), axes)], precision=0.2, run=RealRun(60, 1))
    assert_whole(lambda out: print_scenarios(out, outcomes))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["acmeair", "teastore"])
def test_steps_of_an_autoscaler_are_not_broken(name: str) -> None:
    """One column per service and processor does not fit: what is left out is said."""
    steps = list(
        autoscale(
            example(name, 1),
            Settings(scaling="vertical", threshold=0.85, clients=1, max_clients=2),
            lambda changed: rehearse(changed, seconds=2, precision=0.9),
        )
    )
    assert_whole(lambda out: print_steps(out, steps))
    assert "Not shown for want of width:" in printed(lambda out: print_steps(out, steps), 80)


def test_lists_of_commands_are_not_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``stats`` and ``diff`` of real models, through the commands, as COLUMNS says."""
    models = [str(EXAMPLES / name / "model.json") for name in ("tms", "facedetect")]
    for command in (("stats", models[0]), ("diff", *models)):

        def show(out: Console, command: tuple[str, ...] = command) -> None:
            monkeypatch.setenv("COLUMNS", str(out.width))
            _, text, _ = run(capsys, *command)
            out.file.write(text)

        assert_whole(show)


def test_any_table_fits_any_width() -> None:
    """Random cells, some with spaces and some long, at widths from a phone's on."""
    source = random.Random(1)
    for _ in range(300):
        columns = source.randint(1, 9)
        headings = [" ".join(["head" * source.randint(1, 3)] * source.randint(1, 3)) for _ in range(columns)]
        rows = [
            [
                " ".join("word" * source.randint(1, 5) for _ in range(source.randint(1, 6))),
                *(f"{source.random() * 10 ** source.randint(0, 9):.3f} +- 0.1" for _ in range(columns - 1)),
            ]
            for _ in range(3)
        ]
        width = source.randint(30, 140)
        spare = headings[1:2]
        found = lay_out(headings, rows, width, spare=spare)
        if found.widths is not None:
            assert sum(found.widths) + 2 * (len(found.widths) - 1) <= width
        text = printed(
            lambda out, h=headings, r=rows, s=spare: print_table(out, "t", h, r, spare=s),  # type: ignore[misc]
            width,
        )
        shown = found.columns if found.widths is not None else tuple(range(columns))
        for row in rows:
            for index in shown:
                pieces = row[index].split() if index == 0 else [row[index]]
                assert all(piece in text for piece in pieces)


def test_what_is_left_out_is_said_and_the_last_resort_is_a_block_per_row() -> None:
    """First spared columns go, with a note; then every row is a block."""
    headings, rows = (
        ["scenario", "p95 ms", "response ms"],
        [["64 clients", "200.25 +- 0.31", "93.25 +- 0.62"]],
    )

    def show(out: Console) -> None:
        print_table(out, "", headings, rows, spare=("p95 ms",), more="--json")

    assert "Not shown" not in printed(show, 50)
    assert "Not shown for want of width: p95 ms." in printed(show, 30).replace("\n", " ")
    block = printed(show, 18)
    assert "scenario 64" in block
    assert "p95 ms       200.25 +- 0.31" in block


def test_sentences_are_broken_at_words() -> None:
    """A word longer than a line has a line of its own."""
    text = wrapped("1 client: see /a/very/long/path/that/does/not/fit and go on", 20)
    assert text.split("\n") == ["1 client: see", "/a/very/long/path/that/does/not/fit", "and go on"]


def test_one_module_makes_tables() -> None:
    """Every command leaves the layout to ``mup.cli.output.tables``, so that what is true above is true of all."""
    folder = Path(mup.cli.__file__).parent
    makers = [path.name for path in folder.rglob("*.py") if "rich.table" in path.read_text()]
    assert makers == ["tables.py"]


def test_a_pipe_is_as_wide_as_columns_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """COLUMNS decides about tables and sentences that go to another program."""
    file = saved(tmp_path, shop())
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = run(capsys, "simulate", file, "--horizon", "20")
    assert max(map(len, out.splitlines())) <= 60
