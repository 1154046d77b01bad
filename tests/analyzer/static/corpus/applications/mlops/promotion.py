"""The way of a model version into production: stages, and what is checked between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from clients import Metadata, VersionRecord
from mup import Communication
from support import FAILED, ApiError


class Stage(StrEnum):
    DRAFT = "draft"
    STAGING = "staging"
    PRODUCTION = "production"
    ARCHIVED = "archived"


@dataclass(slots=True)
class Promotion:
    comm: Communication
    model: str
    record: VersionRecord

    @property
    def key(self) -> dict[str, Any]:
        return {"model": self.model, "version": self.record.get("version", 0)}


Check = Callable[[Promotion], None]


def artifact_scanned(promotion: Promotion) -> None:
    report = promotion.comm.call(
        "Artifacts", "/scan", {"uri": promotion.record.get("uri")}, timeout=3.0
    ).get()
    if findings := report.get("findings"):
        raise ApiError(409, "artifact_rejected", findings=findings)


def good_enough(metric: str, minimum: float, promotion: Promotion) -> None:
    if promotion.record.get("metrics", {}).get(metric, 0.0) < minimum:
        raise ApiError(409, "metric_too_low", metric=metric, minimum=minimum)


def approved(promotion: Promotion) -> None:
    approval = promotion.comm.call("Approvals", "/status", promotion.key).get()
    match approval.get("state"):
        case "approved":
            return
        case "pending":
            raise ApiError(409, "approval_pending")
        case "rejected":
            raise ApiError(403, "approval_rejected", by=approval.get("by"))
        case _:
            promotion.comm.call("Approvals", "/request", promotion.key).get()
            raise ApiError(409, "approval_requested")


def warmed_up(promotion: Promotion) -> None:
    regions = promotion.record.get("regions") or ["eu"]
    warmups = {
        r: promotion.comm.call("ModelServer", "/warmup", {**promotion.key, "region": r}) for r in regions
    }
    cold = []
    for region, warmup in warmups.items():
        try:
            warmup.get()
        except FAILED:
            cold.append(region)
    if len(cold) * 2 > len(regions):
        raise ApiError(503, "warmup_failed", regions=cold)


def predecessor_archived(promotion: Promotion) -> None:
    metadata = Metadata(promotion.comm)
    current = metadata.version(promotion.model, "production")
    if current and current.get("version") != promotion.record.get("version"):
        metadata.set_stage(promotion.model, current.get("version", 0), Stage.ARCHIVED)


TRANSITIONS: dict[tuple[Stage, Stage], tuple[Check, ...]] = {
    (Stage.DRAFT, Stage.STAGING): (artifact_scanned, partial(good_enough, "auc", 0.6)),
    (Stage.STAGING, Stage.PRODUCTION): (
        partial(good_enough, "auc", 0.8),
        approved,
        warmed_up,
        predecessor_archived,
    ),
    (Stage.STAGING, Stage.ARCHIVED): (),
    (Stage.PRODUCTION, Stage.ARCHIVED): (),
    (Stage.ARCHIVED, Stage.STAGING): (artifact_scanned,),
}
