"""Services of several machines are kept apart from those of one, and from strangers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from deployments import SOURCE, ask, make_project, running

from mup.addresses import is_loopback
from mup.cli.main import main
from mup.errors import DeploymentError, ProjectError, UsageError
from mup.project import load_project
from mup.runtime.deployment.launcher import Deployment
from mup.runtime.deployment.registration import advertised_host

LOCAL, REMOTE = "http://127.0.0.1:9099", "http://192.0.2.7:9099"


@pytest.mark.parametrize(
    ("listen", "advertise", "registry", "told"),
    [
        pytest.param("127.0.0.1", "", LOCAL, "127.0.0.1", id="one-machine"),
        pytest.param("127.0.0.1", "", "http://localhost:9099", "127.0.0.1", id="localhost"),
        pytest.param("0.0.0.0", "", LOCAL, "127.0.0.1", id="all-addresses-local-registry"),
        pytest.param("192.0.2.8", "", REMOTE, "192.0.2.8", id="address"),
        pytest.param("0.0.0.0", "shop.example", REMOTE, "shop.example", id="translated"),
    ],
)
def test_what_others_are_told(listen: str, advertise: str, registry: str, told: str) -> None:
    """A replica tells where it listens, or what its operator says."""
    assert advertised_host(listen, advertise, registry) == told


@pytest.mark.parametrize(
    ("listen", "advertise"),
    [("127.0.0.1", ""), ("127.0.0.1", "192.0.2.8"), ("0.0.0.0", "127.0.0.1"), ("192.0.2.8", "localhost")],
)
def test_loopback_is_not_told_to_other_machines(listen: str, advertise: str) -> None:
    """A replica that no other machine could reach does not register where others look."""
    with pytest.raises(DeploymentError, match="this machine") as caught:
        advertised_host(listen, advertise, REMOTE)
    assert "--host" in caught.value.hint


def test_a_name_that_does_not_resolve_is_not_this_machine() -> None:
    """Unknown names count as other machines: nothing is told to them by mistake."""
    assert not is_loopback("name.invalid")
    assert is_loopback("::1")
    assert is_loopback("127.8.8.8")


@pytest.mark.services
def test_a_registry_for_others_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a token a project's registry does not listen beyond loopback; nothing is started."""
    monkeypatch.delenv("MUP_REGISTRY_TOKEN", raising=False)
    project = replace(make_project(tmp_path, SOURCE, "One"), registry_host="0.0.0.0")
    with pytest.raises(DeploymentError, match="needs a token") as caught:
        Deployment(project).start()
    assert "MUP_REGISTRY_TOKEN" in caught.value.hint


@pytest.mark.slow
@pytest.mark.services
def test_a_deployment_with_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Services find each other with the token; strangers are told nothing, and cannot join."""
    monkeypatch.delenv("MUP_REGISTRY_TOKEN", raising=False)
    monkeypatch.setenv("SHOP_TOKEN", "hush")
    project = replace(make_project(tmp_path / "a", SOURCE, "One", "Caller"), registry_token="${SHOP_TOKEN}")
    with running(project) as system:
        registry = system.deployment.registry_url
        assert system.ask("Caller", "/chain/?tag=x").raw == b"x"
        assert ask(registry, "/services").status == 401
        stranger = make_project(tmp_path / "b", SOURCE, "One")
        with pytest.raises(DeploymentError, match="wants a token"):
            Deployment(stranger, registry=registry).start()
        with pytest.raises(SystemExit):
            main(["services", "--registry", registry])
        assert "wants a token" in capsys.readouterr().err
        monkeypatch.setenv("MUP_REGISTRY_TOKEN", "hush")
        with pytest.raises(SystemExit) as ended:
            main(["services", "--registry", registry, "--json"])
        assert ended.value.code == 0
        listed = json.loads(capsys.readouterr().out)
        assert {name: len(live) for name, live in listed["services"].items()} == {"Caller": 1, "One": 1}


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('token = "hush"', "[registry] token: must refer to an environment variable"),
        ("cache = -1", "[registry] cache: must be a number >= 0"),
        ("host = 1", "[registry] host: must be a text"),
    ],
)
def test_wrong_settings(tmp_path: Path, table: str, says: str) -> None:
    """Settings of the registry are checked; a token in the file is refused and not repeated."""
    (tmp_path / "mup.toml").write_text(f'[registry]\n{table}\n[services.A]\nclass = "a:A"\n')
    with pytest.raises(ProjectError) as caught:
        load_project(tmp_path)
    assert says in str(caught.value)
    assert "hush" not in str(caught.value)


def test_unknown_names(tmp_path: Path) -> None:
    """A service that is none is refused with a suggestion, a registry that is none with an example."""
    project = make_project(tmp_path, SOURCE, "One")
    with pytest.raises(ProjectError, match="did you mean 'One'"):
        Deployment(project, services=["Ona"])
    from mup.cli.options import registry_url

    with pytest.raises(UsageError, match=r"http://10\.0\.0\.5:9099"):
        registry_url("10.0.0.5")
