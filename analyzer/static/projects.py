"""What does the application of a project do, with the settings and databases the project names?"""

from __future__ import annotations

from analyzer.static.analysis_cache import AnalysisCache
from analyzer.static.application import Application
from mup.project import Project

__all__ = ["analyse_project"]

CACHE_FILE = "analysis.json"


def analyse_project(project: Project, *, remember: bool = False, with_code: bool = False) -> Application:
    """Analyse the services and the client a project names.

    Args:
        project: The project.
        remember: Keep the result in the project's ``.mup``, and analyse only services again that depend on
            something that has changed since.
        with_code: Also tell the definitions behind every endpoint and scenario; nothing is remembered then.

    Returns:
        What was found. Source that cannot be analysed is in ``diagnostics``, not an exception.

    Raises:
        AnalysisError: There is no such source folder.
    """
    services = {s.name: s.target for s in project.services}
    clients = [project.client] if project.client else []
    databases = [d.name for d in project.databases]
    said = ("pool_size", "replicas", "port", "admission")
    overrides = {s.name: {name: getattr(s, name) for name in said} for s in project.services}
    skip = project.analysis.skip
    transparent, swallowing = project.analysis.transparent, project.analysis.swallowing
    cache = None
    if remember and not with_code:
        settings = [str(project.source), services, clients, databases, overrides, skip]
        settings += [sorted(transparent), sorted(swallowing)]
        cache = AnalysisCache(project.state / CACHE_FILE, settings, project.source, services, clients)
        known = cache.application()
        if known is not None:
            return known
    # What parses source is loaded where there is something to parse.
    from analyzer.static.analysis import analyse  # noqa: PLC0415
    from analyzer.static.names import Declared  # noqa: PLC0415

    return analyse(
        project.source,
        services=services,
        clients=clients,
        databases=databases,
        overrides=overrides,
        skip=skip,
        declared=Declared(frozenset(transparent), frozenset(swallowing)),
        cache=cache,
        with_code=with_code,
    )
