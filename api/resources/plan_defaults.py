"""What the calculators' forms are filled with: measured here, in force here or set here, and where each figure is from.

Reading thirteen weeks of a thousand GPUs takes a tenth of a second, and a form asks again with every letter typed: what was
read is kept for a minute. A purchase is not decided by the last minute's samples.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from typing import Any, Final, TypeVar

from api.resources.plan_inputs import inputs_for
from api.resources.plan_measured import (
    BY_USE,
    RENTED,
    Group,
    Wanted,
    demand,
    groups,
    paid_now,
    plan_scope,
    power,
    site_for,
)
from api.resources.plan_mix import Question, promises_now
from api.resources.plan_rent_or_buy import with_use
from api.resources.scope import Scope
from catalog import gpu_specs
from core.evidence import Window
from core.units import MINUTE_MS
from ledger.demand import Demand
from ledger.rent_or_buy_inputs import RentOrBuyInputs

KEPT_MS: Final = MINUTE_MS
MOST_KEPT: Final = 64
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Here:
    """What is known of one GPU model before anything is given.

    Attributes:
        scope: over the plan's own window. group: the GPUs; without any where none of the model is here.
        others: every model that is here with its number of GPUs, the costliest first.
        inputs: measured, in force, or set. measured: GPUs wanted at once.
        held_ratio, active_ratio: use in both meanings of wanted.
        promises: prices of promises in force, by input; read where only what ends with the use is a rent.
    """

    scope: Scope
    group: Group
    others: tuple[tuple[str, int], ...]
    inputs: RentOrBuyInputs
    measured: Demand
    wanted: Wanted
    held_ratio: float | None
    active_ratio: float | None
    promises: dict[str, Any]

    @property
    def window(self) -> Window:
        """What was measured over."""
        return self.scope.window

    @property
    def gpus(self) -> int:
        """GPUs measured."""
        return len(self.group.gpus)


def here(
    scope: Scope,
    *,
    gpu_model: str = "",
    since: str = "",
    wanted: Wanted = Wanted.ALLOCATED,
    gpu_count: int | None = None,
    assume_measured: bool = False,
    by_use: bool = False,
) -> Here:
    """What the form of one GPU model starts from.

    Args:
        scope: of the page; its window is not used. gpu_model: key; empty: the model that costs most here.
        since: as over REST; empty: 13 weeks. gpu_count: of the machine; draw is measured for as many.
        by_use: only prices that end with the use are a rent.

    Raises:
        UsageError: a time that cannot be read.
    """
    over = plan_scope(scope.session, scope.settings, scope.now_ms, since or None)
    at = (scope.settings.database_url, since)
    found = _by_cost(over, _kept((*at, "groups"), scope.now_ms, lambda: groups(over)))
    chosen = next((group for group in found if group.name == gpu_model), None)
    if chosen is None and found and not gpu_model:
        chosen = found[0]
    group = chosen or Group(gpu_model, gpu_model if _is_known(gpu_model) else None, (), ())
    measured = {one: demand([group], over.window, one) for one in Wanted}

    site = site_for(over, [group])
    count = gpu_count or site.own_gpu_count
    drawn = _kept(
        (*at, group.name, wanted, count), scope.now_ms, lambda: power(over, [group], wanted, site, count)
    )
    billings = BY_USE if by_use else RENTED
    inputs = inputs_for(over, [group], {"gpu_count": gpu_count}, wanted, billings, drawn=drawn)
    question = Question(over, group, inputs, measured[wanted], wanted, assume_measured)
    return Here(
        scope=over,
        group=group,
        others=tuple((one.name, len(one.gpus)) for one in found),
        inputs=with_use(over, [group], inputs, measured[wanted], wanted, assume_measured=assume_measured),
        measured=measured[wanted],
        wanted=wanted,
        held_ratio=measured[Wanted.ALLOCATED].use_ratio,
        active_ratio=measured[Wanted.ACTIVE].use_ratio,
        promises=promises_now(question) if by_use else {},
    )


def _by_cost(scope: Scope, found: list[Group]) -> list[Group]:
    """The costliest first; those without a price last."""

    def rank(one: Group) -> tuple[Decimal, int, str]:
        return -(paid_now(scope, one) or Decimal(0)) * len(one.gpus), -len(one.gpus), one.name

    return sorted(found, key=rank) if len(found) > 1 else found


def _is_known(gpu_model: str) -> bool:
    return any(spec.gpu_key == gpu_model for spec in gpu_specs.specs())


_LATELY: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
_LOCK: Final = Lock()


def _kept(key: Hashable, now_ms: int, make: Callable[[], T]) -> T:
    """What was made under this key within the last minute, else made now."""
    with _LOCK:
        found = _LATELY.get(key)
    if found is not None and 0 <= now_ms - found[0] < KEPT_MS:
        return found[1]  # type: ignore[no-any-return]  # the key says what it is
    made = make()
    with _LOCK:
        _LATELY[key] = (now_ms, made)
        _LATELY.move_to_end(key)
        while len(_LATELY) > MOST_KEPT:
            _LATELY.popitem(last=False)
    return made


def forget() -> None:
    """Drop what was kept, for who changed the data and looks at once."""
    with _LOCK:
        _LATELY.clear()
