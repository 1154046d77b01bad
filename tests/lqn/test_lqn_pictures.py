"""Every model can be drawn, with nothing on top of anything else."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from model_strategies import models

from mup.lqn import Model
from mup.lqn.drawing import draw, layout

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.slow
@settings(
    max_examples=40, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=SLOW
)
@given(models())
def test_any_model_is_drawn_without_overlaps(model: Model) -> None:
    """Over random models: well-formed XML; tasks, entries and activities are apart."""
    assert ET.fromstring(draw(model)).get("viewBox")
    picture = layout(model)
    for boxes in (picture.tasks, picture.entries, picture.activities):
        for (one, box), (other, second) in itertools.combinations(boxes.items(), 2):
            assert not box.overlaps(second), (one, other)
