import logging
import random

from mup import EP, MS, Communication
from mup.errors import CommunicationError
from tracing import count_exceptions, metrics, timer, traced, tracer

logger = logging.getLogger("main")

cached_ids = []
first_run = True


def get_products(comm, requested):
    global first_run, cached_ids
    with tracer.start_as_current_span("get_products") as span:
        if check_flag(comm, "recommendationCacheFailure"):
            span.set_attribute("cache.enabled", True)
            if random.random() < 0.5 or first_run:
                first_run = False
                span.set_attribute("cache.hit", False)
                answer = comm.call("Catalog", "/products").get()
                cached_ids = cached_ids + [p["id"] for p in answer]
                cached_ids = cached_ids + cached_ids[: len(cached_ids) // 4]
                ids = cached_ids[-100:]
            else:
                span.set_attribute("cache.hit", True)
                ids = cached_ids
        else:
            span.set_attribute("cache.enabled", False)
            ids = [p["id"] for p in comm.call("Catalog", "/products").get()]
        others = list(set(ids) - set(requested))
        chosen = random.sample(others, min(5, len(others)))
        span.set_attribute("count", len(chosen))
        return chosen


def check_flag(comm, name):
    try:
        return comm.call("Flags", "/flags/{name}", {"name": name}).get()["enabled"]
    except CommunicationError:
        return False


class Recommendation(MS):
    pool_size = 10

    @EP("/recommendations")
    def recommendations(self, comm: Communication, ids: list[str]) -> None:
        products = get_products(comm, ids)
        logger.info("recommended %s", products)
        metrics["recommendations"].add(len(products), {"type": "catalog"})
        comm.respond(products)

    @EP("/detailed")
    def detailed(self, comm: Communication, ids: list[str]) -> None:
        with timer("detailed") as t:
            products = []
            for id in get_products(comm, ids):
                with tracer.start_as_current_span("get_product") as span:
                    span.set_attribute("id", id)
                    products.append(comm.call("Catalog", "/products/{id}", {"id": id}).get())
        logger.info("took %s", t.seconds)
        comm.respond(products)

    @EP("/health", method="GET")
    def health(self, comm: Communication) -> None:
        comm.respond({"status": "SERVING"})

    @EP("/traced")
    @traced("recommendation.traced")
    def traced(self, comm: Communication) -> None:
        with tracer.start_as_current_span("ads"), timer("ads"):
            ads = comm.call("Ads", "/ads", {"keys": ["a"]}).get()
        comm.respond(ads)

    @EP("/counted")
    @count_exceptions(metrics["errors"])
    @timer("counted")
    def counted(self, comm: Communication) -> None:
        comm.respond(comm.call("Ads", "/ads", {"keys": []}).get())


class Ads(MS):
    @EP("/ads")
    @traced("ads")
    def ads(self, comm: Communication, keys: list[str] = []) -> None:
        with tracer.start_as_current_span("getAds") as span:
            found = []
            if keys:
                span.set_attribute("kind", "targeted")
                for key in keys:
                    found += comm.query("ads", "by_category", "ads", {"category": key}).get()
            if not found:
                span.set_attribute("kind", "random")
                found = comm.query("ads", "random", "ads", {}).get()
            comm.respond(found)


class Flags(MS):
    @EP("/flags/{name}")
    def flag(self, comm: Communication, name: str) -> None:
        rows = comm.query("flags", "by_name", "flags", {"name": name}).get()
        comm.respond({"enabled": bool(rows) and rows[0].get("enabled", False)})


class Catalog(MS):
    @EP("/products")
    @timer("products")
    def products(self, comm: Communication) -> None:
        comm.respond(comm.query("catalog", "all", "products", {}).get())

    @EP("/products/{id}")
    def product(self, comm: Communication, id: str) -> None:
        with tracer.start_as_current_span("product") as span:
            rows = comm.query("catalog", "one", "products", {"_id": id}).get()
            if not rows:
                span.set_attribute("error", True)
                comm.respond(None, status=404)
                return
        comm.respond(rows[0])
