"""What owner rules claim of the GPU-hours there are: by owner, and what one more rule would change before it is kept."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Final

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.owners import RuleView, stored, view
from api.resources.ownership import owner_book
from api.resources.pricing import price_lookup, spec_of
from api.resources.report import UNOWNED
from api.resources.scope import Scope
from api.words import workload_kind
from core.evidence import Window
from core.ownership import Owner, OwnerRule
from core.readings import WorkloadKey
from core.units import HOUR_MS
from ledger.owners import OwnerBook
from ledger.share import rounded
from store.known import known_gpus
from store.queries import fleet, hour_sums
from store.queries.hour_sums import Stretches

HOUR_S: Final = HOUR_MS / 1000
OWN_TIME: Final = "held by nobody known"
"""A GPU's own time: idle, gaps, and held by something unseen."""


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """An owner and what it has of the window; the last row, without a team, is what nobody owns."""

    team: Annotated[str | None, about("Who pays; null: nobody, the time that no rule claims.")]
    project: Annotated[str | None, about("Of the team; null: not told.")]
    cost_centre: Annotated[str | None, about("That is charged; null: not told.")]
    label: Annotated[str, about("Team and project, for people.")]
    rule_count: Annotated[int, about("Rules that name it, ended ones too.")]
    gpu_h: Annotated[
        float, about("GPU-hours of the window that its rules claim, idle time and gaps included.")
    ]
    workload_gpu_h: Annotated[float, about("Of them held by known workloads.")]


@dataclass(frozen=True, slots=True)
class Claim:
    """GPU time that the rule fits."""

    workload: Annotated[str, about("Name of the workload; or the GPU's own time.")]
    kind: Annotated[str | None, about("Its kind; null: the GPU's own time.")]
    user: Annotated[str | None, about("Its user, where known.")]
    host: Annotated[str | None, about("The GPU's host.")]
    gpu_h: Annotated[float, about("GPU-hours of the window.")]
    rule_id: Annotated[int | None, about("The other rule concerned; null: unowned.")]
    owner: Annotated[str, about("Of that rule.")]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a rule would claim. ``claimed`` sums to ``claimed_gpu_h``, ``kept_by_others`` to the rest of what it fits."""

    rule: Annotated[RuleView, about("The rule, at its place.")]
    window: Annotated[Window, about("Whole hours the figures are of.")]
    total_gpu_h: Annotated[float, about("All GPU-hours of the window.")]
    claimed_gpu_h: Annotated[float, about("What it would have.")]
    claimed_usd: Annotated[
        Decimal | None,
        about(
            "What that costs at the prices in force at the window's end, energy paid apart left out; null: a GPU of it has no price."
        ),
    ]
    claimed: Annotated[
        tuple[Claim, ...], about("By workload, with the rule it is taken from; largest first.")
    ]
    kept_by_others: Annotated[tuple[Claim, ...], about("What it fits too, but an earlier rule has.")]
    unowned_before_gpu_h: Annotated[float, about("What nobody owns without it.")]
    unowned_after_gpu_h: Annotated[float, about("What nobody owns with it.")]


@dataclass(frozen=True, slots=True)
class _Part:
    """GPU time with one holder between two borders; workload None: the GPU's own."""

    workload: WorkloadKey | None
    gpu_uuid: str
    host: str | None
    at_ms: int
    gpu_h: float


@dataclass(slots=True)
class _Sums:
    """GPU-hours by what they are told apart by."""

    by_key: dict[tuple[WorkloadKey | None, str | None, int], float] = field(default_factory=dict)
    by_gpu: dict[str, float] = field(default_factory=dict)

    def add(self, part: _Part, other: OwnerRule | None) -> None:
        key = (part.workload, part.host, 0 if other is None else other.id)
        self.by_key[key] = self.by_key.get(key, 0.0) + part.gpu_h
        self.by_gpu[part.gpu_uuid] = self.by_gpu.get(part.gpu_uuid, 0.0) + part.gpu_h

    @property
    def gpu_h(self) -> float:
        return sum(self.by_key.values())

    def claims(self, name_of: Callable[[int], str]) -> tuple[Claim, ...]:
        ranked = sorted(self.by_key.items(), key=lambda item: (-item[1], str(item[0])))
        return tuple(
            Claim(
                workload=OWN_TIME if workload is None else workload.name,
                kind=None if workload is None else workload_kind(workload),
                user=None if workload is None else workload.user,
                host=host,
                gpu_h=gpu_h,
                rule_id=rule_id or None,
                owner=name_of(rule_id) if rule_id else UNOWNED,
            )
            for (workload, host, rule_id), gpu_h in ranked
        )


def rows(scope: Scope) -> list[OwnerRow]:
    """Every owner that a rule names, by name, then what nobody owns."""
    book = owner_book(scope.session)
    all_h: dict[Owner | None, float] = {rule.owner: 0.0 for rule in book.rules} | {None: 0.0}
    held_h = dict(all_h)
    for part in _parts(scope, book.borders):
        rule = book.first(part.workload, part.host, part.at_ms)
        owner = None if rule is None else rule.owner
        all_h[owner] += part.gpu_h
        if part.workload is not None:
            held_h[owner] += part.gpu_h
    return [
        OwnerRow(
            team=None if owner is None else owner.team,
            project=None if owner is None else owner.project or None,
            cost_centre=None if owner is None else owner.cost_centre or None,
            label=UNOWNED if owner is None else owner.name,
            rule_count=sum(rule.owner == owner for rule in book.rules),
            gpu_h=all_h[owner],
            workload_gpu_h=held_h[owner],
        )
        for owner in sorted(all_h, key=lambda one: (one is None, one or Owner("")))
    ]


def dry_run(scope: Scope, rule: OwnerRule, position: int | None = None) -> DryRun:
    """What a rule would claim at its place (None: last) among the others; nothing is kept.

    A stored rule (``id``) is compared with its absence.
    """
    before = owner_book(scope.session)
    others = [one for one in before.rules if one.id != rule.id]
    place = len(others) if position is None else max(0, min(position - 1, len(others)))
    without = OwnerBook(tuple(others), before.facts)
    with_it = OwnerBook((*others[:place], rule, *others[place:]), before.facts)
    claimed, kept_by_others = _Sums(), _Sums()
    total_h = before_h = 0.0
    for part in _parts(scope, with_it.borders):
        total_h += part.gpu_h
        old = without.first(part.workload, part.host, part.at_ms)
        before_h += part.gpu_h if old is None else 0.0
        new = with_it.first(part.workload, part.host, part.at_ms)
        if new is rule:
            claimed.add(part, old)
        elif rule in with_it.fitting(part.workload, part.host, part.at_ms):
            kept_by_others.add(part, new)
    names = {one.id: one.owner.name for one in others}
    taken_h = sum(gpu_h for (_, _, rule_id), gpu_h in claimed.by_key.items() if not rule_id)
    return DryRun(
        rule=view(rule, place + 1, scope.now_ms),
        window=scope.window,
        total_gpu_h=total_h,
        claimed_gpu_h=claimed.gpu_h,
        claimed_usd=_usd(scope, claimed.by_gpu),
        claimed=claimed.claims(names.__getitem__),
        kept_by_others=kept_by_others.claims(names.__getitem__),
        unowned_before_gpu_h=before_h,
        unowned_after_gpu_h=before_h - taken_h,
    )


def dry_run_of_stored(scope: Scope, rule_id: int) -> DryRun:
    """What a stored rule claims now.

    Raises:
        NotFoundError: there is none of that key.
    """
    rule, rules = stored(scope.session, rule_id)
    return dry_run(scope, rule, rules.index(rule) + 1)


def _usd(scope: Scope, gpu_h: Mapping[str, float]) -> Decimal | None:
    """What GPU-hours of these GPUs cost at the prices of the window's end; None: one of them has none."""
    prices = price_lookup(scope.session, scope.settings)
    total = Decimal(0)
    for known in known_gpus(scope.session.connection()):
        identity = known.identity
        hours = gpu_h.get(identity.gpu_uuid)
        if not hours:
            continue
        spec = spec_of(identity)
        price = prices(identity, None if spec is None else spec.gpu_key, scope.window.to_ms - 1)
        if price is None:
            return None
        total += price.usd_per_gpu_hour * Decimal(str(hours))
    return rounded(total)


def _parts(scope: Scope, borders: tuple[int, ...]) -> Iterator[_Part]:
    """The GPU time of the window: of each GPU between two borders its workloads, and what they leave of its known time."""
    cuts = sorted({border + -border % HOUR_MS for border in borders})
    stretches = Stretches(None, tuple(cuts))
    known = _known(scope.session, scope.window)
    left_s: dict[tuple[str, int], float] = {}
    for uuid, (_, span) in known.items():
        for piece in stretches.split(span):
            left_s[uuid, stretches.start_of(piece.from_ms)] = (piece.to_ms - piece.from_ms) / 1000
    for usage in hour_sums.workload_sums(scope.session, scope.window, stretches):
        if usage.gpu_uuid not in known:
            continue
        host, _ = known[usage.gpu_uuid]
        key = (usage.gpu_uuid, usage.from_ms)
        left_s[key] = left_s.get(key, 0.0) - usage.allocated_s
        yield _Part(usage.workload, usage.gpu_uuid, host, usage.from_ms, usage.allocated_s / HOUR_S)
    for (uuid, at_ms), seconds in left_s.items():
        if seconds > 0:
            yield _Part(None, uuid, known[uuid][0], at_ms, seconds / HOUR_S)


def _known(session: Session, window: Window) -> dict[str, tuple[str | None, Window]]:
    """Host and known time of every GPU in the window; of a MIG slice its card is there."""
    found: dict[str, tuple[str | None, Window]] = {}
    for gpu in fleet.gpus(session):
        if gpu.identity.is_slice or gpu.first_seen_ms is None or gpu.last_seen_ms is None:
            continue
        from_ms, to_ms = max(gpu.first_seen_ms, window.from_ms), min(gpu.last_seen_ms, window.to_ms)
        if from_ms < to_ms:
            found[gpu.identity.gpu_uuid] = (gpu.identity.host, Window(from_ms, to_ms))
    return found
