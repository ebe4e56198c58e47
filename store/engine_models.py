"""An engine that serves another model than before: a note on its GPUs, so that nobody compares the two (advisor-rules 7.4)."""

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.llm_models import normalised, precision_hint
from core.readings import EngineIdentity


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What is to be noted at the engine's next sample: of which GPUs (keys), of which kind, in which words."""

    gpu_ids: Sequence[int]
    kind: str
    message: str


def kind_of(before: str | None, now: str | None) -> str | None:
    """``model`` for another one, ``precision`` for the same in another form; None: no change is known.

    The same model under another name is none: two sources may spell it their own way.
    """
    if not before or not now or before == now:
        return None
    if normalised(before) != normalised(now):
        return "model"
    return None if precision_hint(before) == precision_hint(now) else "precision"


def exchanged(identity: EngineIdentity, before: str | None, gpu_ids: Sequence[int]) -> Exchanged | None:
    """The note for an engine whose stored model was ``before``; None when there is nothing to say."""
    kind = kind_of(before, identity.model)
    if kind is None:
        return None
    return Exchanged(gpu_ids, kind, f"Engine {identity.engine} serves {identity.model} instead of {before}.")
