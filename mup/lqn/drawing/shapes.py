"""Measures and shapes shared by all parts of a picture."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Box", "text_width"]

CHARACTER = 6.6  # width of an average character; bold ones are wider
BOLD = 7.4
LINE = 14
ACTIVITY_HEIGHT = 36
ROW_GAP = 26
LANE_GAP = 18
PADDING = 12
GAP = 24
TITLE = 24


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    def moved(self, dx: float, dy: float) -> Box:
        """Return the box somewhere else."""
        return replace(self, x=self.x + dx, y=self.y + dy)

    @property
    def middle(self) -> float:
        """Return x of the vertical middle line."""
        return self.x + self.width / 2

    @property
    def right(self) -> float:
        """Return x of the right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Return y of the lower edge."""
        return self.y + self.height

    def overlaps(self, other: Box) -> bool:
        """Return whether the two have a common area."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


def text_width(name: str, *texts: str) -> float:
    """Return the width of a bold name with plain lines below it."""
    return max(len(name) * BOLD, *(len(t) * CHARACTER for t in texts), 0)
