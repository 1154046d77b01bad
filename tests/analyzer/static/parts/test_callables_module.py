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


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("Shop().buy(2)", "/buy 2"),
        ("Shop.buy(Shop(), 2)", "/buy 2"),
        ("Shop().sell()", "/sell 1"),
        ("Shop().sell(number=3)", "/sell 3"),
        ("Shop().plain('/plain', 4)", "/plain 4"),
    ],
)
def test_a_partial_method_gets_its_object_first(probe: Probe, code: str, expected: str) -> None:
    module = """
    import functools
    class Shop:
        def ask(self, path, number):
            return f"{path} {number}" if isinstance(self, Shop) else None
        buy = functools.partialmethod(ask, "/buy")
        sell = functools.partialmethod(ask, "/sell", number=1)
        plain = functools.partialmethod(ask)
    """
    assert probe(f"return {code}", module).value == Const.of(expected)


def test_classes_of_constants() -> None:
    assert External("builtins.int").has_instance(5) is True
    assert External("somewhere.int").has_instance(5) is None
    assert set(BUILT_IN) == {"str", "int", "float", "bool", "bytes"}
