"""What a run over a site remembers of every GPU once its evidence is gone: where it sits and what it is worth."""

from dataclasses import dataclass

from core.evidence import Evidence
from core.finding import Finding
from core.verification import Ledger


@dataclass(frozen=True, slots=True)
class Worth:
    """What a claim is worth a month: dollars, by which ledger."""

    usd_month: float
    ledger: Ledger


class Roster:
    """GPUs of a fleet, gathered chunk by chunk."""

    def __init__(self) -> None:
        self._hosts: dict[str, str | None] = {}
        self._count: dict[str, int] = {}
        self._usd_per_h: dict[str, float] = {}
        self._usd_per_kwh: float | None = None

    def add(self, chunk: Evidence) -> None:
        """Take in the GPUs of a chunk."""
        site = chunk.site
        if site.pays_for_power and site.tariff_usd_per_kwh is not None:
            self._usd_per_kwh = site.tariff_usd_per_kwh * site.pue
        for gpu in chunk.gpus:
            host = gpu.identity.host
            self._hosts[gpu.gpu_uuid] = host
            if host is not None:
                self._count[host] = gpu.host_gpu_count
            if gpu.price is not None:
                self._usd_per_h[gpu.gpu_uuid] = float(gpu.price.usd_per_gpu_hour)

    def host_of(self, gpu_uuid: str) -> str | None:
        """Its host; None: not known."""
        return self._hosts.get(gpu_uuid)

    def count_on(self, host: str) -> int:
        """GPUs known on a host, whether they have data or not."""
        return self._count.get(host, 0)

    def worth(self, finding: Finding) -> Worth | None:
        """What the most valuable of its claims is worth; None: it claims nothing, or one that has no price here.

        A freed GPU-hour is worth what its GPU costs; a kWh the site's tariff times its PUE, where it pays for power.
        """
        saving = finding.saving
        rates = [self._usd_per_h.get(uuid) for uuid in finding.gpu_uuids]
        known = [rate for rate in rates if rate is not None]
        per_gpu_h = sum(known) / len(known) if known and len(known) == len(rates) else None
        found: list[Worth] = []
        for ledger, rate in (
            (Ledger.CASH, 1.0),
            (Ledger.CAPACITY, per_gpu_h),
            (Ledger.ENERGY, self._usd_per_kwh),
        ):
            claim = getattr(saving, ledger.field)
            if claim is None:
                continue
            if rate is None:
                return None
            found.append(Worth(claim.p50 * rate, ledger))
        return max(found, key=lambda worth: worth.usd_month, default=None)
