"""Which engines a GPU carries, for every rule that asks."""

from collections.abc import Mapping, Sequence

from advisor.memo import OncePerEvidence
from core.evidence import EngineEvidence, Evidence


def _engines(evidence: Evidence) -> Mapping[str, Sequence[EngineEvidence]]:
    """Every engine by each of its GPUs."""
    found: dict[str, list[EngineEvidence]] = {}
    for engine in evidence.engines:
        for uuid in engine.gpu_uuids:
            found.setdefault(uuid, []).append(engine)
    return found


engines_on = OncePerEvidence(_engines)
