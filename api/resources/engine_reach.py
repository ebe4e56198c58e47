"""What every engine can reach, learned from its own hours: the roll-up tells by it what is effective where no counter does."""

from advisor.reach import reachable_tokens_per_s
from advisor.serving import servings
from api.resources.evidence import fleet_reader
from api.resources.scope import Scope
from store.queries.engine_reach import keep
from store.queries.evidence import fleet_chunks


def learn(scope: Scope) -> int:
    """Keep it for the engines of the scope's window, unknown where it cannot be told; how many are known."""
    reader = fleet_reader(scope)
    found: dict[str, float | None] = {}
    for chunk in fleet_chunks(scope.session):
        seen = reader.read(chunk) if chunk.engines else None
        if seen is not None:
            found |= {one.engine.identity.engine: reachable_tokens_per_s(one) for one in servings(seen)}
    keep(scope.session, found)
    return sum(rate is not None for rate in found.values())
