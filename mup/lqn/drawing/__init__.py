"""Draw a ``Model`` as an SVG picture; nothing but Python is needed.

Tasks are boxes in layers: clients on top, everything else below those that call it, the network
at the bottom. Inside a task are its entries, inside an entry its activity graph from top to
bottom: every branch of a fork has a lane of its own. Big models show their entries as boxes without
activities; of models too big for that, a task is drawn with its neighbours. What a workload never
reached is grey.

All coordinates are in SVG user units; x grows to the right, y downwards.
"""

from mup.lqn.drawing.layout import Picture, layout
from mup.lqn.drawing.part import around, check_size, is_drawable
from mup.lqn.drawing.shapes import Box
from mup.lqn.drawing.svg import draw

__all__ = ["Box", "Picture", "around", "check_size", "draw", "is_drawable", "layout"]
