"""Message of a command when a part of mup that it needs is not installed.

A deployment installs what serves requests. Analysis, calibration and simulation need the packages of the
extra ``model``, most of the installation's size (docs/reference/installation.md).
"""

from __future__ import annotations

from mup.errors import UsageError

__all__ = ["DASK_PACKAGES", "MODEL_PACKAGES", "missing_part"]

MODEL_PACKAGES = frozenset({"jinja2", "libcst", "numpy", "scipy", "simpy", "threadpoolctl"})
"""Import names that come with the extra ``model``."""
DASK_PACKAGES = frozenset({"dask", "distributed"})
"""Import names that come with the extra ``dask``."""


def missing_part(error: ModuleNotFoundError, command: str) -> UsageError | None:
    """Return what to tell a user whose command could not import a package; None if it is no optional one.

    Args:
        error: What the import raised.
        command: The command that was asked for.
    """
    package = (error.name or "").partition(".")[0]
    if package in DASK_PACKAGES:
        return UsageError(
            f"--dask needs the package {package}, which is not installed",
            hint="install it here and on all workers: pip install 'mup-framework[model,dask]' "
            "(from a clone: pip install '.[model,dask]')",
        )
    if package not in MODEL_PACKAGES:
        return None
    return UsageError(
        f"'mup {command}' needs the package {package}, which is not installed",
        hint="install the part that models and predicts: pip install 'mup-framework[model]' "
        "(from a clone: pip install '.[model]')",
    )
