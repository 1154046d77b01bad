"""Which endpoints of a model are measured as a whole, and what does that mean for predictions?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mup.lqn import Model

__all__ = ["whole_endpoints"]


def whole_endpoints(model: Model) -> list[str]:
    """Return a sentence for each endpoint of a model that is not analysed but measured as a whole."""
    return [
        f"{label} is measured as a whole ([analysis] skip): its work and its calls are means of the run,"
        " the calls one after the other"
        for label in model.provenance.get("whole", ())
    ]
