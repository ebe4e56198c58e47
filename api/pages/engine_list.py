"""Engines to choose from, before their hours are read: enough to filter them and to put them in order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from api.pages.sorting import Column
from api.pages.view import Address
from api.resources.by import By
from api.resources.pricing import PriceLookup
from api.resources.report import Question, report
from api.resources.report_filters import Filters
from api.resources.scope import Scope
from catalog.gpu_specs import resolve
from core.readings import GpuIdentity
from store.known import known_gpus
from store.queries import ledger_sums
from store.queries.engine_sums import EngineSum, engine_sums
from store.queries.fleet import FleetEngine


class Rates:
    """What GPUs cost an hour at the end of a window; they are read when the first price is asked for."""

    def __init__(self, scope: Scope, prices: PriceLookup) -> None:
        """Read nothing yet."""
        self._scope, self._prices = scope, prices

    def usd_per_hour(self, engine: FleetEngine) -> Decimal | None:
        """All GPUs of an engine; None where one has no price, or none is known."""
        total = Decimal(0)
        for uuid in engine.gpu_uuids:
            identity = self._gpus.get(uuid)
            if identity is None:
                return None
            spec = resolve(identity.model, identity.memory_total_bytes)
            price = self._prices(
                identity, None if spec is None else spec.gpu_key, self._scope.window.to_ms - 1
            )
            if price is None:
                return None
            total += price.usd_per_gpu_hour
        return total or None

    @cached_property
    def _gpus(self) -> Mapping[str, GpuIdentity]:
        known = known_gpus(self._scope.session.connection())
        return {gpu.identity.gpu_uuid: gpu.identity for gpu in known}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An engine, its days added up (None: it has none), and what tells the price of its GPUs."""

    engine: FleetEngine
    sums: EngineSum | None
    rates: Rates

    @property
    def name(self) -> str:
        """As ``EngineRow.engine``."""
        return self.engine.identity.engine

    def rate(self) -> float | None:
        """Generated tokens per second of busy time."""
        return self._over("busy_generated_tokens", "busy_s")

    def joules(self) -> float | None:
        """Joules per generated token while busy."""
        return self._over("busy_energy_j", "busy_generated_tokens")

    def dollars(self) -> float | None:
        """Dollars per token while busy, in proportion."""
        rate, usd_per_hour = self.rate(), self.rates.usd_per_hour(self.engine)
        return float(usd_per_hour) / rate if rate and usd_per_hour is not None else None

    def total(self, name: str) -> float | None:
        """A figure of its days."""
        found: float | None = None if self.sums is None else getattr(self.sums, name)
        return found

    def _over(self, part: str, whole: str) -> float | None:
        above, below = self.total(part), self.total(whole)
        return above / below if above is not None and below else None


def _total(name: str) -> Callable[[Candidate], Any]:
    return lambda one: one.total(name)


COLUMNS: Final = {
    "engine": Column("Engine", lambda one: (one.engine.identity.model or "", one.name), down=False),
    "rate": Column("Tokens/s", Candidate.rate),
    "dollars": Column("$ / 1M tokens", Candidate.dollars),
    "joules": Column("J / token", Candidate.joules),
    "tokens": Column("Tokens made", _total("generated_tokens")),
    "preempted": Column("Preempted", _total("preemption_count")),
}
FILTERED: Final = ("serves", "kind", "host", "owner")


def candidates(scope: Scope, prices: PriceLookup, known: Sequence[FleetEngine]) -> list[Candidate]:
    """Engines with data in the window."""
    window = scope.window
    sums = engine_sums(scope.session, window)
    rates = Rates(scope, prices)
    return [
        Candidate(engine, sums.get(engine.identity.engine), rates)
        for engine in known
        if engine.first_seen_ms is not None
        and engine.last_seen_ms is not None
        and engine.first_seen_ms < window.to_ms
        and engine.last_seen_ms > window.from_ms
    ]


def choices_of(scope: Scope, found: Sequence[Candidate]) -> dict[str, list[str]]:
    """What there is to choose from, by filter."""
    told = [one.engine.identity for one in found]
    teams = {owner.team for owner in ledger_sums.owners(scope.session).values()}
    return {
        "serves": sorted({one.model for one in told if one.model}),
        "kind": sorted({one.kind for one in told}),
        "host": sorted({one.host for one in told if one.host}),
        "owner": sorted(teams),
    }


def fitting(scope: Scope, address: Address, found: Sequence[Candidate]) -> list[Candidate]:
    """Those that the address asks for; of an owner: engines on GPUs of which the owner paid for time."""
    model, kind, host, owner = (address.every(name) for name in FILTERED)
    paid: set[str | None] = set()
    if owner:
        paid = {
            key[0]
            for key in report(scope, Question((By.GPU,), ("allocated_ms",), filters=Filters(owner=owner)))
        }
    return [
        one
        for one in found
        if (not model or one.engine.identity.model in model)
        and (not kind or one.engine.identity.kind in kind)
        and (not host or one.engine.identity.host in host)
        and (not owner or not paid.isdisjoint(one.engine.gpu_uuids))
    ]
