"""What ``mup explore --for`` and ``--width`` ask for, and what they refuse before anything is started."""

from pathlib import Path

import pytest
from command_line import run

from mup.cli.measurements.question_options import question, share
from mup.errors import UsageError
from simulator.studies.whatif import Change

SERVICES = """\
from mup import EP, MS, Client, Communication

class A(MS):
    @EP("/x/")
    def x(self, comm: Communication) -> None:
        comm.respond(1)

class B(MS):
    runtime = "thread"

    @EP("/y/")
    def y(self, comm: Communication) -> None:
        if comm.params["n"]:
            comm.call("A", "/x/", {}).get()
        comm.respond(1)

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.01)
        await comm.call("B", "/y/", {"n": 1})
"""
TOML = """\
[project]
client = "services:User"
[registry]
port = 0
[services.A]
class = "services:A"
[services.B]
class = "services:B"
"""


@pytest.fixture
def project(tmp_path: Path) -> str:
    """Two services; nothing of it runs in these tests."""
    (tmp_path / "services.py").write_text(SERVICES)
    (tmp_path / "mup.toml").write_text(TOML)
    return str(tmp_path)


def test_several_changes_make_one_scenario() -> None:
    """Lists of values make several, as those of 'mup whatif' do."""
    asked = question(["clients=8,64 pool:A=4", "probability:A/x/:cached=0.5"], 0.05).as_written
    assert asked["clients=8,64 pool:A=4"] == (
        (Change("clients", "", 8), Change("clients", "", 64)),
        (Change("pool", "A", 4),),
    )
    assert asked["probability:A/x/:cached=0.5"] == ((Change("probability", "A/x/:cached", 0.5),),)


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("0.05", 0.05), (" 12.5 % ", 0.125)])
def test_widths_are_fractions_or_percentages(text: str, value: float) -> None:
    """Both mean the same."""
    assert share(text, "--width") == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "5", "0", "100%", "5%%", "five", "nan", "-3%", "5% 3"])
def test_other_widths_are_refused(text: str) -> None:
    """With an example of both."""
    with pytest.raises(UsageError, match="--width: must be a part between 0 and 1") as caught:
        share(text, "--width")
    assert caught.value.hint == "for example --width 5% or --width 0.05"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--for", "client=64"], "'client=64' changes nothing that is known; did you mean 'clients'"),
        (["--for", "64"], "'64' changes nothing that is known"),
        (["--for", " "], "no change is named"),
        (["--for", "clients=many"], "--clients: must be numbers separated by commas, got 'many'"),
        (["--for", "pool=8"], "--pool: must be NAME=NUMBER"),
        (["--for", "clients=8 arrivals=3"], "--clients and --arrivals exclude each other"),
        (["--for", "clients=8 clients=9"], "clients is given twice"),
        (["--for", "clients=-1"], "clients"),
        (["--for", "pool:C=8"], "'C'"),
        (["--for", "cores:hots=8"], "'hots'"),
        (["--for", "place:A=nowhere"], "'nowhere'"),
        (["--for", "probability:B/y/:nowhere=0.5"], "nowhere"),
        (["--for", "clients=8", "--width", "5"], "--width: must be a part between 0 and 1"),
        (
            ["--for", "clients=8", "--precision", "0.01"],
            "--precision and --for (or --width) exclude each other",
        ),
        (["--width", "5%", "--precision", "0.01"], "--precision and --for (or --width) exclude each other"),
        (["--for", "clients=8", "--full-width"], "--full-width belongs to --precision"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(
    arguments: list[str], message: str, project: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One message, exit code 2, and nothing is started or written."""
    code, out, err = run(capsys, "explore", project, *arguments)
    assert code == 2, err
    assert message in err
    assert "Traceback" not in err
    assert not out
    assert not list(Path(project).glob(".mup/runs/*"))
