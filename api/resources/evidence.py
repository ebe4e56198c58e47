"""Evidence of a scope: the store's hours with the site's prices and settings."""

from collections.abc import Collection

from api.resources.places import site
from api.resources.pricing import PriceLookup, price_lookup
from api.resources.scope import Scope
from core.evidence import Evidence
from store.queries.evidence import FleetReader, evidence


def read_evidence(
    scope: Scope,
    prices: PriceLookup | None = None,
    gpu_uuids: Collection[str] | None = None,
    engine_names: Collection[str] | None = None,
) -> Evidence:
    """What the rules may see of the scope's window; ``gpu_uuids`` and ``engine_names`` leave out all others."""
    return evidence(
        scope.session,
        window=scope.window,
        now_ms=scope.now_ms,
        site=site(scope.session, scope.settings, scope.window.to_ms - 1),
        price_of=prices or price_lookup(scope.session, scope.settings),
        gpu_uuids=gpu_uuids,
        engine_names=engine_names,
    )


def fleet_reader(scope: Scope) -> FleetReader:
    """What reads the same chunk by chunk, so that memory does not grow with the fleet."""
    return FleetReader(
        scope.session,
        window=scope.window,
        now_ms=scope.now_ms,
        site=site(scope.session, scope.settings, scope.window.to_ms - 1),
        price_of=price_lookup(scope.session, scope.settings),
    )
