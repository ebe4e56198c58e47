"""Where money meets the store: the price of a GPU at a time."""

from collections import Counter
from typing import Final

from sqlalchemy.orm import Session

from catalog.gpu_specs import GpuSpec, resolve
from core.readings import GpuIdentity
from core.settings import Settings
from core.user_price import Scope
from ledger.exchange import Exchange
from ledger.price_lookup import PriceLookup
from ledger.prices import PricedGpu
from store.known import known_gpus
from store.queries import exchange_rates as rate_queries
from store.queries import prices as price_queries
from store.queries.fleet import cards_by_host
from store.queries.host_facts import host_facts

__all__ = ["PriceLookup", "gpus_by_scope", "price_lookup", "spec_of"]

BY_FACTS: Final = frozenset({Scope.LABEL, Scope.INSTANCE_TYPE, Scope.CLUSTER})
"""Scopes for which it must be known what the user says about hosts."""


def price_lookup(session: Session, settings: Settings) -> PriceLookup:  # noqa: ARG001 - settings.billing is read by the advisor; the seam is kept for price sources
    """A lookup over prices, exchange rates and host facts as they are now."""
    rows = price_queries.listing(session)
    by_host = any(row.gpus_per_unit is None for row in rows)
    return PriceLookup(
        rows=rows,
        exchange=Exchange(rate_queries.listing(session)),
        host_gpu_counts=cards_by_host(session) if by_host else {},
        facts=host_facts(session) if any(row.scope_kind in BY_FACTS for row in rows) else {},
    )


def gpus_by_scope(session: Session) -> Counter[tuple[Scope, str]]:
    """How many GPUs a price of each key (``UserPrice.key``) is for, of those known now; MIG slices do not count."""
    facts = host_facts(session)
    found: Counter[tuple[Scope, str]] = Counter()
    for known in known_gpus(session.connection()):
        gpu = known.identity
        if gpu.is_slice:
            continue
        spec = spec_of(gpu)
        of = PricedGpu(
            gpu.gpu_uuid,
            gpu.host,
            gpu.model,
            None if spec is None else spec.gpu_key,
            None if gpu.host is None else facts.get(gpu.host),
        )
        found.update({key for rank in of.ranks() for key in rank})
    return found


def spec_of(identity: GpuIdentity) -> GpuSpec | None:
    """The catalogue's row for a GPU, or None when its name resolves to none."""
    return resolve(identity.model, identity.memory_total_bytes)
