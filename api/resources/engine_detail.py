"""One LLM engine: its figures, its law of the decode step with what it rests on, its hours, its GPUs, its money."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.fit_refusal import fit_refusal
from advisor.limits_book import limits_book
from advisor.rules.small_batch import RULE, SmallBatchLimits
from advisor.serving import Serving, profile_of
from api.resources import engines, unit_economics
from api.resources.engines import EngineRow
from api.resources.rule_settings import with_kept
from api.resources.scope import Scope
from api.resources.unit_economics import UnitBy, UnitRow
from core.evidence import GpuEvidence
from core.readings import EngineIdentity
from core.samples import GpuEvent
from store.queries import fleet
from store.queries.engine_hours import HourOutline, hour_outlines
from store.queries.events import gpu_events

CHANGES: Final = ("model", "precision")
"""Events of a GPU that say an engine on it was started in another way."""
MOST_MONEY_GPU_H: Final = 1_600.0
"""GPU-hours that are priced one by one while somebody waits: about a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Law:
    """The decode step t = a + b·B that rules use for an engine.

    Attributes:
        step: the law; None: not even a formula is honest. refusal: why it was not fitted on its own hours.
        limit: largest batch that its configuration admits. promise_s: time between tokens that was promised;
            None: nothing was, the rules use the knee. promise_batch: largest batch that keeps it.
    """

    step: DecodeStep | None
    refusal: str | None
    limit: float | None
    promise_s: float | None
    promise_batch: float | None

    @property
    def reachable_batch(self) -> float | None:
        """Batch that limit and promise admit; None: neither is known."""
        known = [batch for batch in (self.limit, self.promise_batch) if batch is not None]
        return min(known, default=None)


@dataclass(frozen=True, slots=True)
class EngineDetail:
    """An engine over a window. ``row`` None: it has no data in it. ``unit`` None: not asked, or too much to price at once."""

    identity: EngineIdentity
    row: EngineRow | None
    law: Law
    hours: tuple[HourOutline, ...]
    gpus: tuple[GpuEvidence, ...]
    changes: tuple[GpuEvent, ...]
    unit: UnitRow | None
    money_gpu_h: float
    missing: tuple[str, ...] = ()


def detail(scope: Scope, name: str, *, money: bool = False) -> EngineDetail | None:
    """The engine of that name; None: there never was one.

    Args:
        scope: window and session.
        name: as ``EngineRow.engine``.
        money: price its GPUs hour by hour however many there are.
    """
    engines_known = fleet.engines(scope.session)
    known = next((one for one in engines_known if one.identity.engine == name), None)
    if known is None:
        return None
    found = engines.with_servings(scope, {name}, known=engines_known)
    row, serving = found[0] if found else (None, None)
    gpu_h = scope.window.hours * len(known.gpu_uuids)
    unit = None
    if row is not None and known.gpu_uuids and (money or gpu_h <= MOST_MONEY_GPU_H):
        unit = next(
            (one for one in unit_economics.rows(scope, UnitBy.ENGINE, {name}) if one.key == name), None
        )
    return EngineDetail(
        identity=known.identity,
        row=row,
        law=law_of(scope, serving),
        hours=tuple(hour_outlines(scope.session, scope.window, name)),
        gpus=() if serving is None else serving.gpus,
        changes=tuple(_changes(scope, known.gpu_uuids)),
        unit=unit,
        money_gpu_h=gpu_h,
        missing=() if serving is None else serving.missing,
    )


def law_of(scope: Scope, serving: Serving | None) -> Law:
    """The law with its bounds."""
    if serving is None:
        return Law(None, "it has no hours in this period", None, None, None)
    kept = with_kept(scope.session, scope.settings, scope.now_ms)
    limits = limits_book(kept.rules).fleet.get(RULE.id, RULE.limits)
    promise_s = limits.itl_limit_s if isinstance(limits, SmallBatchLimits) else None
    step, batch = serving.model, None
    if promise_s is not None and step is not None and serving.step_s and serving.running:
        # The promise is about this engine, not about the model of it (as rule small-batch has it).
        measured = serving.step_s / step.step_s(serving.running)
        batch = step.largest_batch_within(promise_s / measured)
    fitted = step is not None and step.basis == "fit"
    return Law(
        step=step,
        refusal=None if fitted else fit_refusal(profile_of(serving.engine)),
        limit=serving.batch_ceiling,
        promise_s=promise_s,
        promise_batch=batch,
    )


def _changes(scope: Scope, gpu_uuids: Sequence[str]) -> list[GpuEvent]:
    return [
        event
        for uuid in gpu_uuids
        for event in gpu_events(scope.session, scope.window, uuid)
        if event.kind in CHANGES
    ]
