"""Services as people write them: every target is found, and whatever they do was predicted."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from program_runs import Decisions, Recorder, Sites, accepts, load, run, shown
from source_outline import outline

from analyzer.static import Application, analyse

FOLDER = Path(__file__).parent / "realistic"
RUNS = 150

PRODUCT = "query:shop.product get:0"
VOUCHERS = f"{PRODUCT} query:shop.vouchers get:2"
ITEM = "query:media.item_by_id get:0"
PAGE = f"{ITEM} query:media.tags_of_item call:Store/v1/sign/ get:3"
ORDER = "query:carts.cart get:0 call:Prices/list/ get:2 call:Stock/reserve/ get:4 call:Payments/pay/ get:6"


@dataclass(frozen=True)
class Example:
    """An application and what must be found in it.

    Attributes:
        paths: By endpoint some of its paths, the ones a reader of the source would name first.
        targets: By endpoint everything it calls and queries.
        params: By name what a parameter of a request may be.
        answers: By target what an operation may answer.
        modules: In the order in which they can be imported.
    """

    name: str
    paths: Mapping[str, Sequence[str]]
    targets: Mapping[str, Sequence[str]]
    params: Mapping[str, Sequence[Any]]
    answers: Mapping[str, Sequence[Any]]
    modules: Sequence[str]


SHOP = Example(
    name="shop_layered",
    paths={
        "Shop/category/": ["query:shop.products_of_category get:0 respond"],
        "Shop/compare/": [f"{PRODUCT} respond", f"{PRODUCT} query:shop.product get:2 respond"],
        "Shop/order/": [
            f"{PRODUCT} respond",
            f"{VOUCHERS} call:Payment/charge/ get:4 respond",
            (
                f"{VOUCHERS} call:Payment/charge/ get:4 query:shop.insert_order get:6 query:shop.take_stock get:8"
                " call:Warehouse/announce/ respond"
            ),
            (
                f"{VOUCHERS} call:Payment/rating/ get:4 query:shop.insert_order get:6 query:shop.take_stock get:8"
                " call:Warehouse/announce/ respond"
            ),
            (
                f"{VOUCHERS} query:shop.use_voucher get:4 call:Payment/charge/ get:6 query:shop.insert_order get:8"
                " query:shop.take_stock get:10 call:Warehouse/announce/ respond"
            ),
        ],
        "Shop/history/": ["query:shop.orders_of_customer get:0 respond"],
        "Shop/cancel/": [
            "query:shop.order get:0 respond",
            "query:shop.order get:0 query:shop.set_status get:2 respond",
        ],
        "BackOffice/ship/": [
            "query:shop.order get:0 respond",
            "query:shop.order get:0 call:Warehouse/ship/ get:2 query:shop.set_status get:4 respond",
            "query:shop.order get:0 call:Warehouse/ship/ get:2 call:Warehouse/ship/ get:4 respond",
        ],
        "Payment/charge/": [
            "query:bank.account get:0 respond",
            "query:bank.account get:0 query:bank.book get:2 respond",
        ],
    },
    targets={
        "Shop/category/": ["shop.products_of_category"],
        "Shop/compare/": ["shop.product"],
        "Shop/order/": [
            "Payment/charge/",
            "Payment/rating/",
            "Warehouse/announce/",
            "shop.insert_order",
            "shop.product",
            "shop.take_stock",
            "shop.use_voucher",
            "shop.vouchers",
        ],
        "Shop/history/": ["shop.orders_of_customer"],
        "BackOffice/cancel/": ["shop.order", "shop.set_status"],
        "BackOffice/ship/": ["Warehouse/ship/", "shop.order", "shop.set_status"],
    },
    params={
        "amount": [10],
        "category": ["books"],
        "customer": ["c"],
        "first": ["p"],
        "lines": [[]],
        "number": ["1"],
        "order": ["1"],
        "payment": ["card", "invoice"],
        "quantity": ["1", "5", "0", "x"],
        "second": ["q"],
        "sku": ["p"],
    },
    answers={
        "Payment/charge/": [{"reference": "r"}],
        "Payment/rating/": [{"limit": 0}, {"limit": 10_000}],
        "Warehouse/announce/": [{}],
        "Warehouse/ship/": [{"tracking": "t"}],
        "bank.account": [[], [{"_id": "a", "balance": 5}], [{"_id": "a", "balance": 50}]],
        "bank.book": [[]],
        "bank.rating": [[], [{"limit": 5}]],
        "shop.insert_order": [[]],
        "shop.order": [[], [{"status": "shipped"}], [{"status": "paid"}]],
        "shop.orders_of_customer": [[], [{"_id": "1", "status": "paid", "total": 5}]],
        "shop.product": [
            [],
            [{"_id": "p", "price": 700, "stock": 3}],
            [{"_id": "p", "price": 9000, "stock": 9}],
        ],
        "shop.products_of_category": [[], [{"_id": "p", "price": 7}]],
        "shop.set_status": [[]],
        "shop.take_stock": [[]],
        "shop.use_voucher": [[]],
        "shop.vouchers": [[], [{"_id": "v", "value": 100}]],
        "stock.pick": [[]],
    },
    modules=("shop", "shop.domain", "shop.repositories", "shop.gateways", "shop.services", "app"),
)

MEDIA = Example(
    name="media_functional",
    paths={
        "Library/item/": [
            f"{ITEM} respond",
            f"{PAGE} get:2 respond",
            f"{PAGE} call:Search/v1/similar/ get:5 get:2 respond",
            f"{PAGE} call:Store/v1/sign/ get:5 call:Search/v1/similar/ get:7 get:2 respond",
        ],
        "Library/process/": [
            f"{ITEM} respond",
            f"{ITEM} query:media.save_item get:2 call:Search/v1/index/ respond",
            f"{ITEM} call:Transcoder/v1/transcode/ get:2 query:media.save_item get:4 call:Search/v1/index/ respond",
            (
                f"{ITEM} call:Transcoder/v1/transcode/ call:Transcoder/v1/transcode/ call:Transcoder/v1/thumbnail/ get:4"
                " get:2 get:3 query:media.save_item get:8 call:Search/v1/index/ respond"
            ),
            (
                f"{ITEM} call:Transcoder/v1/thumbnail/ call:Transcoder/v1/thumbnail/ call:Transcoder/v1/thumbnail/ get:2"
                " get:3 get:4 query:media.save_item get:8 call:Search/v1/index/ respond"
            ),
        ],
        "Library/export/": ["loop[call:Store/v1/blob/ get:0] respond"],
    },
    targets={
        "Library/item/": [
            "Search/v1/similar/",
            "Store/v1/sign/",
            "media.item_by_id",
            "media.tags_of_item",
        ],
        "Library/album/": ["Store/v1/sign/", "media.items_of_owner"],
        "Search/v1/index/": ["media.item_by_id"],
    },
    params={
        "after": [None],
        "format": ["mp3"],
        "from": [None],
        "id": ["1"],
        "item": ["1"],
        "key": ["k"],
        "like": ["1"],
        "owner": ["o"],
        "related": ["yes", "no"],
        "size": ["1", "3"],
        "width": [64],
    },
    answers={
        "Search/v1/index/": [{}],
        "Search/v1/similar/": [{"items": []}],
        "Store/v1/blob/": [{"keys": ["k"]}, {"keys": ["k"], "next": "k"}],
        "Store/v1/sign/": [{"url": "u"}],
        "Transcoder/v1/thumbnail/": [{"key": "k"}],
        "Transcoder/v1/transcode/": [{"key": "k"}],
        "blobs.list": [[], [{"key": "k"}]],
        "index.neighbours": [[]],
        "media.item_by_id": [
            [],
            *(
                [{"_id": "1", "key": "k", "kind": kind}]
                for kind in ("image", "video", "audio", "document", "?")
            ),
        ],
        "media.items_of_owner": [[], [{"_id": str(i), "key": "k", "created": i} for i in range(2)]],
        "media.save_item": [[]],
        "media.tags_of_item": [[{"tag": "t"}]],
    },
    modules=("media", "media.names", "media.decorators", "media.store", "media.pipeline", "services"),
)

ASYNC = Example(
    name="orders_async",
    paths={
        "Orders/order/": [
            "query:carts.cart get:0 respond",
            f"{ORDER} query:orders.insert get:8 call:Mail/send/ respond",
            f"{ORDER} call:Stock/release/ get:8 respond",
        ],
        "Orders/orders/": ["query:orders.of_user get:0 loop[call:Stock/track/ get:0] respond"],
        "Orders/cancel/": [
            "query:orders.by_number get:0 respond",
            "query:orders.by_number get:0 call:Stock/release/ call:Payments/refund/ get:2 get:3 respond",
            "query:orders.by_number get:0 call:Stock/release/ get:2 respond",
        ],
        "Stock/reserve/": [
            "query:stock.take get:0 respond",
            "query:stock.take get:0 query:stock.take get:2 query:stock.take get:4 respond",
        ],
        "Mail/send/": ["respond query:mail.log get:1"],
    },
    targets={
        "Orders/cart/": ["Prices/list/", "Users/profile/", "carts.cart"],
        "Orders/order/": [
            "Mail/send/",
            "Payments/pay/",
            "Prices/list/",
            "Stock/release/",
            "Stock/reserve/",
            "carts.cart",
            "orders.insert",
        ],
        "Orders/front/": [
            "Users/profile/",
            "articles.shelf_new",
            "articles.shelf_popular",
            "articles.shelf_reduced",
        ],
    },
    params={},
    answers={},
    modules=(),
)

ALL = [
    pytest.param(SHOP, id="layers"),
    pytest.param(MEDIA, id="functions"),
    pytest.param(ASYNC, id="async"),
]


def analysed(example: Example) -> Application:
    application = analyse(FOLDER / example.name)
    assert [f"{d.code} {d.file}:{d.line} {d.message}" for d in application.errors] == []
    return application


@pytest.mark.parametrize("example", ALL)
def test_paths_of_a_realistic_service(example: Example) -> None:
    """No finding, all targets, and the paths that a reader of the source would name."""
    application = analysed(example)
    for label, targets in example.targets.items():
        operations = {o.target for p in application.endpoint(label).paths for o in p.walk() if o.target}
        assert sorted(operations) == list(targets), label
    for label, paths in example.paths.items():
        assert set(paths) <= set(outline(application, label)), label


@pytest.mark.parametrize("example", ALL[:2])
def test_whatever_a_realistic_service_does_is_a_path(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random requests, answers and failures: the sequence of operations was predicted, site by site."""
    application = analysed(example)
    folder = FOLDER / example.name
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    *_, module = load(folder, *example.modules)
    sites = Sites(folder)
    for service in application.services:
        instance = getattr(module, service.name)()
        for endpoint in service.endpoints:
            method = getattr(instance, endpoint.function.rsplit(".", 1)[-1])
            draw = random.Random(endpoint.label)
            for _ in range(RUNS):
                params = {name: draw.choice(options) for name, options in example.params.items()}
                failing = draw.choice((0, 0, draw.randrange(1, 12)))
                decisions = Decisions(source=draw)
                comm = Recorder(sites, decisions, failing, params=params, answers=example.answers)
                done = run(method, comm)
                assert accepts(endpoint.paths, done.steps, prefix=done.ended is not None), (
                    endpoint.label,
                    shown(done.steps),
                    done.ended,
                )
