"""``mup run``: start a project, keep it running, stop it cleanly."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from mup.project import Project
    from mup.runtime.deployment.launcher import Deployment
    from mup.tls import TlsFiles


@click.command(
    epilog=examples(
        "mup run shop", "mup run shop --pool Stock=4 --reload", "mup run shop --service Stock --debug"
    )
)
@click.argument("project", default=".", type=click.Path())
@option("--pool", "pools", multiple=True)
@option("--replicas")
@option(
    "--admission",
    "admissions",
    help="Which waiting request is served next: fifo or random; repeatable.",
)
@option("--service", "services", multiple=True, help="Run only this service; repeatable.")
@option("--registry", help="URL of a running registry to join; none is started then.")
@option("--host", default="127.0.0.1")
@option("--advertise")
@option("--first-replica", type=click.IntRange(0), default=0)
@option("--tls-cert")
@option("--tls-key")
@option("--tls-ca")
@option("--tls-client-ca")
@option("--log", "log_dir")
@option("--production")
@option("--reload")
@option("--debug")
@option("--debug-port", type=click.IntRange(1, 65535))
@option("--json")
def command(
    project: str,
    pools: tuple[str, ...],
    replicas: tuple[str, ...],
    admissions: tuple[str, ...],
    services: tuple[str, ...],
    registry: str,
    host: str,
    advertise: str,
    first_replica: int,
    tls_cert: str,
    tls_key: str,
    tls_ca: str,
    tls_client_ca: str,
    log_dir: str | None,
    production: bool,
    reload: bool,
    debug: bool,
    debug_port: int | None,
    as_json: bool,
) -> None:
    """Start the registry, databases and services of PROJECT, and print where they listen; Ctrl-C stops them.

    A service or a registry that dies is restarted. With --reload, services whose source has changed are
    replaced without a pause, unless the new source does not start.

    With --registry, services join others that run already, possibly on other machines; databases are then
    used, not started. With --debug, the one worker of a service reads from this terminal and has no time
    limits.
    """
    import os

    from mup.cli.options import assignments, named_texts, registry_url
    from mup.cli.services.foreground import kept_terminal, the_service
    from mup.cli.services.serving import SourceCheck
    from mup.errors import UsageError
    from mup.project import load_project
    from mup.runtime.deployment.launcher import Deployment
    from mup.runtime.process.debugging import Debugging
    from mup.workload.limits import allow_many_files

    # Each process it starts is some descriptors; they inherit the limit.
    allow_many_files()
    loaded = load_project(project)
    pool_sizes, copies = assignments(pools, "--pool"), assignments(replicas, "--replicas")
    debugging = None
    if debug or debug_port:
        if pools or replicas or reload:
            raise UsageError("--debug means one worker: leave out --pool, --replicas and --reload")
        services = (the_service(loaded, services, debug_port or 0),)
        pool_sizes, copies = {services[0]: 1}, {services[0]: 1}
        debugging = Debugging(os.dup(0), debug_port or 0)
    deployment = Deployment(
        loaded,
        log_dir=Path(log_dir) if log_dir else None,
        pools=pool_sizes,
        replicas=copies,
        admissions=named_texts(admissions, "--admission", "B=random"),
        reloading=reload,
        services=services,
        registry=registry and registry_url(registry),
        host=host,
        advertise=advertise,
        first_replica=first_replica,
        debug=debugging,
        tls=_tls(tls_cert, tls_key, tls_ca, tls_client_ca),
        production=production,
    )
    # `kill` and the end of the terminal stop it as cleanly as Ctrl-C does; nohup and the like stay in force.
    # SIGINT itself too: a shell script starts its background jobs with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    checked = not (production or loaded.production)
    # Looks at the files before services load them: a change in between would be missed for ever.
    reloader = _Reloader(deployment, loaded) if reload else None
    with (
        contextlib.suppress(KeyboardInterrupt),
        kept_terminal(),
        deployment,
        contextlib.closing(SourceCheck(Path(project), loaded)) as check,
    ):
        _show(deployment, as_json=as_json)
        if checked:
            check.start()
        while True:
            time.sleep(0.5 if reload else 1.0)
            for event in [*deployment.supervise(), *check.look(deployment.endpoints())]:
                _say(event)
            if reloader is not None and reloader.look() and checked:
                check.start()
    _say("stopped")


def _tls(cert: str, key: str, ca: str, client_ca: str) -> TlsFiles | None:
    """Return what the options say of TLS; None = nothing.

    Raises:
        UsageError: One without the other.
    """
    from mup.errors import UsageError
    from mup.tls import TlsFiles

    if not (cert or key or ca or client_ca):
        return None
    if not cert or not key:
        raise UsageError(
            "--tls-cert and --tls-key go together",
            hint="--tls-ca alone is for callers: set MUP_TLS_CA instead",
        )
    # The processes that read them have other working folders.
    return TlsFiles(
        cert=str(Path(cert).resolve()),
        key=str(Path(key).resolve()),
        ca=ca and str(Path(ca).resolve()),
        client_ca=client_ca and str(Path(client_ca).resolve()),
    )


class _Reloader:
    """Restarts the services whose source has changed."""

    def __init__(self, deployment: Deployment, project: Project) -> None:
        from mup.runtime.deployment.watching import SourceWatcher

        self._deployment = deployment
        self._services = [service.name for service in project.services]
        self._watcher = SourceWatcher(project.source)
        # What they have loaded since their source broke is not known: any change may mend them.
        self._broken: set[str] = set()
        self._wrong: dict[Path, str] = {}

    def look(self) -> bool:
        """Restart what has to be, and return whether anything was; what cannot start goes on as it was."""
        from mup.errors import DeploymentError

        changed = self._watcher.changed()
        if not changed:
            return False
        reloaded = False
        touched = [
            service
            for service in self._services
            if service in self._broken or changed & self._deployment.made_of(service)
        ]
        for service in self._without_mistake(touched, changed):
            try:
                self._deployment.reload(service)
            except DeploymentError as error:
                self._broken.add(service)
                _say(f"{service} goes on as it was: {error}")
            else:
                self._broken.discard(service)
                _say(f"{service} was reloaded")
                reloaded = True
        return reloaded

    def _without_mistake(self, touched: list[str], changed: set[Path]) -> list[str]:
        """Return the services whose source parses; of the others, say once what is wrong with it."""
        from mup.runtime.deployment.watching import syntax_errors

        reported, wrong = self._wrong, syntax_errors(changed | self._wrong.keys())
        self._wrong = wrong
        going_on = [name for name in touched if wrong.keys() & self._deployment.made_of(name)]
        if not going_on:
            return touched
        self._broken.update(going_on)
        for file, problem in wrong.items():
            if reported.get(file) != problem:
                _say(problem)
        many = len(going_on) > 1
        _say(f"{', '.join(going_on)} {'go on as they were' if many else 'goes on as it was'}")
        return [name for name in touched if name not in going_on]


def _say(event: str) -> None:
    # Standard error may be a file on a disk that is full: no reason to stop services.
    with contextlib.suppress(OSError):
        click.echo(f"mup: {event}", err=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _show(deployment: Deployment, *, as_json: bool) -> None:
    services = deployment.services()
    described: dict[str, Any] = {
        "registry": deployment.registry_url,
        "services": {
            name: {
                "pool_size": info.pool_size,
                "replicas": [r.url for r in deployment.replicas() if r.service == name],
            }
            for name, info in services.items()
        },
        "databases": {name: _server(database.uri) for name, database in deployment.databases().items()},
        "token_file": str(deployment.token_file) if deployment.token_file else None,
    }
    if as_json:
        import json

        click.echo(json.dumps(described, indent=1))
        return
    from mup.cli.output.display import console, say
    from mup.cli.output.tables import print_table
    from mup.runtime.protocol.run_token import is_run_token

    rows = [
        [name, str(len(service["replicas"])), str(service["pool_size"]), "\n".join(service["replicas"])]
        for name, service in described["services"].items()
    ]
    out = console()
    headings = ["service", "replicas", "pool (workers per replica)", "URL"]
    print_table(out, "", headings, rows, words=("URL",))
    say(out, f"registry  {deployment.registry_url}")
    for name, database in deployment.databases().items():
        kind = "embedded, in memory" if database.embedded else database.version
        say(out, f"database  {name}: {_server(database.uri)} ({kind})")
    if deployment.token_file is not None:
        # Not the token itself: output is kept, and shown around.
        say(out, f"token     {_short(deployment.token_file)}")
    elif is_run_token(deployment.token):
        _say("the token of this run cannot be kept for commands in other terminals: set MUP_REGISTRY_TOKEN")
    click.echo("running; Ctrl-C stops", err=True)


def _short(file: Path) -> str:
    """Return a path as people write it."""
    with contextlib.suppress(ValueError, RuntimeError):
        return f"~/{file.relative_to(Path.home())}"
    return str(file)


def _server(uri: str) -> str:
    """Return a database's address without what may be secret in its URI."""
    from mup.databases.address import server_of

    return server_of(uri)
