"""Questions rules ask of a fleet: which GPU is it, can its billing unit be released, how well is it covered."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from core.evidence import Evidence, GpuEvidence, Price, Site
from core.finding import Subject
from core.units import HOURS_PER_MONTH

CASH_BILLING: Final = frozenset({"on_demand", "spot"})
"""Billing that ends when a unit is handed back; reserved and owned capacity costs the same used or not."""


@dataclass(frozen=True, slots=True)
class Release:
    """Whether handing back a GPU lowers the bill, and why not."""

    cash: bool
    why_not: str | None = None


def label(gpu: GpuEvidence) -> str:
    """``GPU 3 on node-07``, as far as it is known."""
    name = "GPU" if gpu.identity.index is None else f"GPU {gpu.identity.index}"
    return f"{name} on {gpu.identity.host}" if gpu.identity.host else f"{name} {gpu.gpu_uuid}"


def gpu_subject(gpu: GpuEvidence) -> Subject:
    """The GPU as what a finding is about."""
    return Subject("gpu", gpu.gpu_uuid, label(gpu))


def month_h(evidence: Evidence, hours: float) -> float:
    """Hours of the window as hours of a 730-hour month at the same pace."""
    return hours / evidence.window.hours * HOURS_PER_MONTH if evidence.window.hours > 0 else 0.0


def billing(price: Price | None, site: Site) -> str:
    """How the GPU is paid: the user's own price row knows, else the site's setting."""
    return price.billing if price is not None and price.from_user else site.billing


def releases(evidence: Evidence, qualifying: Collection[str]) -> Mapping[str, Release]:
    """For each qualifying GPU, whether releasing all of ``qualifying`` ends the billing unit that holds it.

    The user's price row knows the unit. A catalogue price does not know this machine: there the unit is the host,
    because nobody hands back one GPU of a running instance. Where such GPUs are sold in larger units than the host
    shows, it is not known whether the host is the unit, and nothing ends.
    """
    wanted = set(qualifying)
    by_host: dict[str | None, int] = defaultdict(int)
    for gpu in evidence.gpus:
        if gpu.gpu_uuid in wanted:
            by_host[gpu.identity.host] += 1
    return {
        gpu.gpu_uuid: _release(gpu, evidence.site, by_host[gpu.identity.host])
        for gpu in evidence.gpus
        if gpu.gpu_uuid in wanted
    }


def _release(gpu: GpuEvidence, site: Site, qualifying_on_host: int) -> Release:
    price = gpu.price
    if price is None:
        return Release(cash=False, why_not="this GPU has no price: add a price row to see money")
    paid = billing(price, site)
    if paid not in CASH_BILLING:
        return Release(
            cash=False,
            why_not=f"{paid} capacity costs the same used or not: the hours can be used, the bill does not fall",
        )
    if price.from_user and price.gpus_per_unit <= 1:
        return Release(cash=True)
    if gpu.identity.host is None:
        return Release(cash=False, why_not="its host is not known, and with it the unit that is billed")
    if qualifying_on_host < gpu.host_gpu_count:
        settle = "" if price.from_user else "; a price row of your own with gpus_per_unit 1 says otherwise"
        return Release(
            cash=False,
            why_not=f"it is billed with its host, where {qualifying_on_host} of {gpu.host_gpu_count} GPUs could be released{settle}",
        )
    if gpu.host_gpu_count < price.gpus_per_unit:
        seen = f"{gpu.host_gpu_count} {'is' if gpu.host_gpu_count == 1 else 'are'} seen on this host"
        unsettled = (
            "whether the host is the unit is not known; a price row of your own with gpus_per_unit settles it"
        )
        return Release(
            cash=False,
            why_not=f"such GPUs are sold in units of {price.gpus_per_unit} and {seen}"
            + ("" if price.from_user else f": {unsettled}"),
        )
    return Release(cash=True)
