"""What functions do, in all the forms a program handles them."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.values import Const
from analyzer.static.values.callables import BUILT_IN, Closure, External, FunctionValue, Partial


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("same", FunctionValue),
        ("lambda x: x", Closure),
        ("functools.partial(same)", Partial),
        ("math.floor", External),
    ],
)
def test_each_form_has_a_kind(probe: Probe, code: str, kind: type) -> None:
    done = probe(f"return {code}", "import functools, math\ndef same(x):\n    return x\n")
    assert isinstance(done.value, kind)


@pytest.mark.parametrize(
    "code", ["same", "(lambda x: x)", "functools.partial(same)", "functools.partial(pair, 1)"]
)
def test_calling_it_runs_the_function(probe: Probe, code: str) -> None:
    module = "import functools\ndef same(x):\n    return x\ndef pair(x, y):\n    return y\n"
    assert probe(f"return {code}(3)", module).value == Const.of(3)


def test_classes_of_constants() -> None:
    assert External("builtins.int").has_instance(5) is True
    assert External("somewhere.int").has_instance(5) is None
    assert set(BUILT_IN) == {"str", "int", "float", "bool", "bytes"}
