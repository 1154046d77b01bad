"""The time of very many scenarios or clients is said beforehand, with a question."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run, saved, shop

from mup.addresses import why_not_bound

FAST = ("--precision", "0.2", "--no-difference", "--no-saturation", "--no-interval")


def numbers(count: int) -> str:
    return ",".join(str(n) for n in range(1, count + 1))


@pytest.fixture
def file(tmp_path: Path) -> str:
    return saved(tmp_path, shop())


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_a_huge_grid_is_refused_where_no_user_can_be_asked(
    json_too: tuple[str, ...], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A million scenarios: their number, about how long, and the remedies; nothing is simulated."""
    grid = ("--clients", numbers(1000), "--pool", f"A={numbers(1000)}")
    status, out, err = run(capsys, "whatif", file, *grid, *FAST, *json_too)
    assert status == 2
    assert re.search(
        r"1,000,000 scenarios, about \d+ (s|minutes|hours|days), and no terminal to ask", out + err
    )
    assert "add --yes" in out + err


@pytest.mark.slow
def test_a_large_grid_says_how_large(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """From fifty scenarios on, on standard error; they are simulated without a question."""
    status, _, err = run(capsys, "whatif", file, "--pool", f"A={numbers(50)}", *FAST, "--json")
    assert status == 0
    assert re.match(r"50 scenarios, about \d+ (s|minutes)\n", err)


def test_a_small_grid_says_nothing(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Seconds need no announcement."""
    _, _, err = run(capsys, "whatif", file, "--pool", "A=1,2", *FAST, "--json")
    assert "scenarios" not in err


def test_very_many_clients_say_how_long_they_take(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Judged by a hundredth of them."""
    options = ("--clients", "200000", "--horizon", "0.01", "--no-saturation", "--json")
    _, _, err = run(capsys, "simulate", file, *options)
    assert re.match(r"200,000 clients: about \d+ (s|minutes); Ctrl-C stops\n", err)


@pytest.mark.parametrize("names", [("", ""), ("U=", "U=")])
def test_a_load_is_closed_or_open(
    names: tuple[str, str], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both at once are refused by the names of the options."""
    loads = ("--clients", f"{names[0]}2", "--arrivals", f"{names[1]}4")
    status, _, err = run(capsys, "whatif", file, *loads)
    assert status == 2
    assert "--clients and --arrivals" in err
    assert "exclude each other" in err


@pytest.mark.slow
@pytest.mark.parametrize(("host", "remedy"), [("eth9", "ip address"), ("192.0.2.1", "ip address")])
def test_run_at_an_address_of_no_interface(host: str, remedy: str, tmp_path: Path) -> None:
    """The remedy is another address, not another port."""
    (tmp_path / "services.py").write_text(
        "from mup import EP, MS\n\n\nclass A(MS):\n"
        '    @EP("/a/")\n    def a(self, comm):\n        comm.respond(1)\n'
    )
    (tmp_path / "mup.toml").write_text('[registry]\nport = 0\n[services.A]\nclass = "services:A"\n')
    words = [sys.executable, "-m", "mup", "run", str(tmp_path), "--host", host]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert f"cannot listen at '{host}', which is no address of this machine" in done.stderr
    assert remedy in done.stderr
    assert "stop what listens" not in done.stderr


def test_other_reasons_not_to_listen_have_their_own_remedies() -> None:
    """A port in use, one that needs root, and what is unheard of."""
    for error, remedy in (
        (OSError(98, "Address already in use"), "stop what listens there"),
        (PermissionError(13, "Permission denied"), "above 1023"),
        (OverflowError("bind(): port must be 0-65535."), "another port"),
    ):
        assert remedy in why_not_bound(error, "127.0.0.1", 80, "replica 0")[1]


def test_unknown_fields_of_a_service_are_compared_with_all_that_it_can_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``static`` is one, also where the service has none."""
    (tmp_path / "mup.toml").write_text('[services.A]\nclass = "services:A"\nstatics = {}\n')
    status, _, err = run(capsys, "paths", str(tmp_path))
    assert status == 2
    assert "did you mean 'static'" in err
