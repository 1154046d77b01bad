"""``mup simulate`` prints the figures of each engine, and names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import activity, entry, model, run, saved, shop, users

from mup.lqn import Call, Task


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A small calibrated model on disk."""
    return saved(tmp_path, shop())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["analytic", "fluid"])
def test_estimates_are_labelled_and_have_no_interval(
    capsys: pytest.CaptureFixture[str], file: str, engine: str
) -> None:
    """Human output calls them estimates; in JSON every ci95 is null; means are near the simulated ones."""
    code, out, _ = run(capsys, "simulate", file, "--engine", engine)
    assert code == 0
    assert "ESTIMATE" in out
    assert "+-" not in out
    code, out, _ = run(capsys, "simulate", file, "--engine", engine, "--json")
    data = json.loads(out)
    assert (data["engine"], data["estimate"]) == (engine, True)
    assert data["cycle"]["response_time"]["ci95"] is None
    code, out, _ = run(capsys, "simulate", file, "--json")
    simulated = json.loads(out)["cycle"]["throughput"]["mean"]
    assert data["cycle"]["throughput"]["mean"] == pytest.approx(simulated, rel=0.15)


@pytest.mark.slow
def test_both_simulators_give_the_same_numbers(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """The reference and the compiled engine take the same steps; their sums may round differently."""
    documents = []
    for engine in ("compiled", "reference"):
        _, out, _ = run(capsys, "simulate", file, "--engine", engine, "--horizon", "20", "--json")
        documents.append(json.loads(out))
    compiled, reference = documents
    assert (compiled["engine"], reference["engine"]) == ("compiled", "reference")
    assert compiled["events"] == reference["events"]
    for figure in ("throughput", "response_time"):
        assert compiled["cycle"][figure]["mean"] == pytest.approx(
            reference["cycle"][figure]["mean"], rel=1e-9
        )


def test_the_fluid_follows_the_means_over_time(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """With a horizon its figures are those of that moment, and the way there is in the JSON."""
    _, out, _ = run(capsys, "simulate", file, "--engine", "fluid", "--horizon", "2", "--json")
    data = json.loads(out)
    assert data["time"] == 2
    assert data["trajectory"]["times"][-1] == 2


@pytest.mark.slow
def test_activities_calls_joins_and_processors_are_printed(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """Every kind of figure has a table with units."""
    code, out, _ = run(capsys, "simulate", file, "--activities", "--horizon", "20")
    assert code == 0
    for text in (
        "waiting for a thread ms",
        "A/a/:miss -> B/b/",
        "service time ms",
        "A/a/:in",
        "cores",
        "other",
    ):
        assert text in out
    _, out, _ = run(capsys, "simulate", file, "--horizon", "20", "--json")
    assert json.loads(out)["activities"] == {}


@pytest.mark.slow
def test_arrivals_replace_clients(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """With ``--arrivals 40`` forty cycles begin per second, however many are under way."""
    _, out, _ = run(capsys, "simulate", file, "--arrivals", "40", "--precision", "0.03", "--json")
    data = json.loads(out)
    throughput = data["cycle"]["throughput"]
    assert abs(throughput["mean"] - 40) < 3 * throughput["ci95"]
    assert data["saturation"]["present"] == {"U": {"arrivals": pytest.approx(40)}}


@pytest.mark.slow
def test_long_tables_are_cut_with_a_note(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of 40 entries the most important are printed; ``--all`` prints them all."""
    entries = tuple(entry(f"/e{i}/", activity("w", 0.0001 * (i + 1))) for i in range(40))
    calls = [Call(task="T", entry=e.name) for e in entries]
    file = saved(tmp_path, model(users(*calls), Task(name="T", entries=entries)))
    _, out, _ = run(capsys, "simulate", file, "--horizon", "20", "--details")
    assert "the 25 of 40 entries" in out
    assert "\nT/e39/" in out
    assert "\nT/e3/" not in out
    _, out, _ = run(capsys, "simulate", file, "--horizon", "20", "--all")
    assert "\nT/e3/" in out
    assert "--all" not in out


def test_replicas_have_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each replica of a task has its own utilization."""
    service = Task(name="T", replicas=2, entries=(entry("/e/", activity("w", 0.01)),))
    file = saved(tmp_path, model(users(Call(task="T", entry="/e/")), service))
    _, out, _ = run(capsys, "simulate", file, "--horizon", "20", "--details")
    assert "T 1" in out
    assert "T 2" in out


@pytest.mark.slow
def test_lqnx_can_be_simulated(capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str) -> None:
    """A converted model gives the same throughput as the native one."""
    other = str(tmp_path / "shop.lqnx")
    assert run(capsys, "convert", file, other)[0] == 0
    figures = []
    for path in (file, other):
        _, out, _ = run(capsys, "simulate", path, "--precision", "0.02", "--json")
        figures.append(json.loads(out)["cycle"]["throughput"]["mean"])
    assert figures[0] == pytest.approx(figures[1], rel=0.05)
    for command in ("stats", "graph"):
        assert run(capsys, command, other)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--engine", "compield"), "did you mean 'compiled'?"),
        (("--engine", "analytic", "--precision", "0.1"), "--precision means nothing to --engine analytic"),
        (("--engine", "analytic", "--horizon", "3"), "--horizon means nothing"),
        (("--engine", "fluid", "--seed", "0"), "--seed means nothing to --engine fluid"),
        (("--clients", "3", "--arrivals", "2"), "exclude each other"),
        (("--arrivals", "-2"), "-2"),
        (("--horizon", "-1"), "-1"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], file: str, arguments: tuple[str, ...], says: str
) -> None:
    """One message, exit code 2, nothing on stdout."""
    code, out, err = run(capsys, "simulate", file, *arguments)
    assert (code, out) == (2, "")
    assert says in err


def test_the_first_run_says_that_it_compiles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without compiled code on disk there is a note on stderr; with it there is none."""
    from mup.cli.first_run import announce_compilation
    from mup.native import loading
    from mup.native.libraries import SIMULATOR

    with monkeypatch.context() as nothing:
        nothing.setattr(loading, "BUILT", tmp_path)
        nothing.setattr(loading, "_libraries", {})
        nothing.setenv("XDG_CACHE_HOME", str(tmp_path))
        announce_compilation()
    out, err = capsys.readouterr()
    assert (out, err.partition(",")[0]) == ("", "compiling the simulator")
    loading.loaded(SIMULATOR)
    announce_compilation()
    assert capsys.readouterr() == ("", "")
