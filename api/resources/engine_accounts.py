"""What each LLM engine's GPUs cost and draw in the hours it was seen, beside the tokens that it made there.

An engine alone on a GPU in an hour has the GPU's whole hour: idle time and gaps too, because it is kept for it. Where
several were seen on a GPU, an engine has its own lines of the ledger, if one workload is known to be it: that which held
the same GPUs, when no other workload and no other engine did. Else nothing tells whose money it is.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

from api.resources.evidence import read_evidence
from api.resources.ledger_hours import PricedLine, priced_lines
from api.resources.pricing import PriceLookup, price_lookup
from api.resources.scope import Scope
from core.evidence import EngineEvidence
from core.hours import EngineHour
from core.ownership import Owner
from core.readings import SLICE_PREFIX, WorkloadKey
from core.sharing import ShareMethod
from core.units import HOUR_MS
from ledger.line import PARKED
from ledger.unit_economics import PrefillShare, WorkHour, prefill_share
from store.known import known_gpus
from store.queries import fleet
from store.queries.fleet import FleetEngine

Spot = tuple[str, int]
"""A GPU and the start of an hour."""
SHARED: Final = "it shares a GPU with other engines, and no workload is known to be it: no money, no energy"
OWN_LINES: Final = (
    "it shares a GPU with other engines: it has its own lines there, without the GPU's idle time"
)
ON_A_SLICE: Final = "it runs on a MIG slice, which has no lines of its own"
NO_GPU: Final = "its GPUs are not known"
TOLD_IN_PART: Final = (
    "it did not tell its tokens in every hour: figures per token are of the hours in which it did"
)


@dataclass(slots=True)
class Told:
    """Hours that told their tokens: what they cost and drew, with those tokens. Money in micro-dollars.

    Attributes:
        hours: how many. cost: price and billed energy. busy_cost: of it for the time with requests running.
        tokens_out, tokens_in: generated, and of prompts.
        energy_mj: of the hours with known energy. energy_out, energy_in: their tokens.
        busy_j: of the hours with known energy while busy. busy_out, busy_in: their tokens.
    """

    hours: int = 0
    cost: int = 0
    busy_cost: float = 0.0
    tokens_out: float = 0.0
    tokens_in: float = 0.0
    energy_mj: int = 0
    energy_out: float = 0.0
    energy_in: float = 0.0
    busy_j: float = 0.0
    busy_out: float = 0.0
    busy_in: float = 0.0

    def count(self, hour: EngineHour, parts: Sequence["_Hour"], busy_cost: float) -> None:
        """Count an hour of an engine with its parts of its GPUs' hours."""
        tokens_out, tokens_in = hour.generated_tokens or 0.0, hour.prompt_tokens or 0.0
        self.hours += 1
        self.cost += sum(one.cost for one in parts)
        self.busy_cost += busy_cost
        self.tokens_out += tokens_out
        self.tokens_in += tokens_in
        energies = [one.energy_mj for one in parts if one.energy_mj is not None]
        if parts and len(energies) == len(parts):
            self.energy_mj += sum(energies)
            self.energy_out += tokens_out
            self.energy_in += tokens_in
        if hour.busy_energy_j is not None and hour.busy_generated_tokens is not None:
            self.busy_j += hour.busy_energy_j
            self.busy_out += hour.busy_generated_tokens
            self.busy_in += tokens_in

    def merge(self, other: "Told") -> None:
        """Count another engine's hours."""
        for one in fields(Told):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass(slots=True)
class Account:
    """Lines and tokens of one engine, or of several added up. Money in micro-dollars.

    Attributes:
        engines: how many. known_ms … idle_ms: GPU time in hours it was seen; of it held, and held without work.
        cost: price and billed energy.
        is_priced: all of its time has a price. is_split: whose lines they are is known.
        energy_mj, site_energy_mj, carbon_ug: of hours with known energy.
        told_out, told_both: hours that told generated tokens; of them those that told prompt tokens too.
        tokens_out, tokens_in: generated, and of prompts; None: not published.
        busy_s, covered_s: seconds with requests running; seconds seen.
        said: what a reader must know. owners: of its held time. bases: of its prices.
        cost_in, busy_cost_in, energy_in_mj: parts of ``told_both`` that prefill takes; None: cannot be told, ``why`` says.
    """

    engines: int = 0
    known_ms: int = 0
    allocated_ms: int = 0
    idle_ms: int = 0
    cost: int = 0
    is_priced: bool = True
    is_split: bool = True
    energy_mj: int | None = None
    site_energy_mj: int | None = None
    carbon_ug: int | None = None
    told_out: Told = field(default_factory=Told)
    told_both: Told = field(default_factory=Told)
    tokens_out: float | None = None
    tokens_in: float | None = None
    busy_s: float = 0.0
    covered_s: float = 0.0
    cost_in: float | None = 0.0
    busy_cost_in: float | None = 0.0
    energy_in_mj: float | None = 0.0
    why: str | None = None
    said: dict[str, None] = field(default_factory=dict)
    owners: set[Owner | None] = field(default_factory=set)
    bases: dict[str, None] = field(default_factory=dict)

    def merge(self, other: "Account") -> None:
        """Count another account; what one of them cannot tell, both together cannot."""
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _KNOWN:
            setattr(self, name, _plus(getattr(self, name), getattr(other, name)))
        for name in _BOTH:
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, None if mine is None or theirs is None else mine + theirs)
        self.told_out.merge(other.told_out)
        self.told_both.merge(other.told_both)
        self.is_priced &= other.is_priced
        self.is_split &= other.is_split
        self.why = self.why or other.why
        self.said |= other.said
        self.owners |= other.owners
        self.bases |= other.bases


_ADDED: Final = ("engines", "known_ms", "allocated_ms", "idle_ms", "cost", "busy_s", "covered_s")
_KNOWN: Final = ("energy_mj", "site_energy_mj", "carbon_ug", "tokens_out", "tokens_in")
_BOTH: Final = ("cost_in", "busy_cost_in", "energy_in_mj")


def _plus(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other


@dataclass(slots=True)
class _Hour:
    """An engine's part of one GPU's hour."""

    known_ms: int = 0
    cost: int = 0
    energy_mj: int | None = None


def accounts(
    scope: Scope, prices: PriceLookup | None = None, engines: Collection[str] | None = None
) -> dict[str, tuple[EngineEvidence, Account]]:
    """Every engine with data in the window, by name; ``engines``: of these, and those on their GPUs, only."""
    known = fleet.engines(scope.session)
    names = None if engines is None else around(engines, known)
    held = {uuid for one in known if names is None or one.identity.engine in names for uuid in one.gpu_uuids}
    evidence = read_evidence(scope, prices or price_lookup(scope.session, scope.settings), held, names)
    return accounts_of(scope, evidence.engines)


def around(engines: Collection[str], known: Sequence[FleetEngine]) -> frozenset[str]:
    """Names of some engines, and of those that share a GPU with one of them."""
    held = {uuid for one in known if one.identity.engine in engines for uuid in one.gpu_uuids}
    return frozenset(
        one.identity.engine
        for one in known
        if one.identity.engine in engines or not held.isdisjoint(one.gpu_uuids)
    )


def accounts_of(scope: Scope, engines: Sequence[EngineEvidence]) -> dict[str, tuple[EngineEvidence, Account]]:
    """The same of engines that were read already."""
    seen = [engine for engine in engines if engine.covered_s > 0]
    at: dict[Spot, list[str]] = defaultdict(list)
    for engine in seen:
        for uuid in engine.gpu_uuids:
            for hour_ms in engine.seen_hours:
                at[uuid, hour_ms].append(engine.identity.engine)
    found = {engine.identity.engine: (engine, Account(engines=1)) for engine in seen}
    hours: dict[str, dict[Spot, _Hour]] = {name: {} for name in found}
    gpu_ms: dict[Spot, int] = defaultdict(int)
    shared: dict[Spot, list[PricedLine]] = defaultdict(list)
    holders = _Holders()
    for line in _lines(scope, at):
        spot = line.gpu.identity.gpu_uuid, line.hour_ms
        gpu_ms[spot] += line.line.known_ms
        there = at.get(spot, ())
        if there:
            holders.add(line)
        if len(there) == 1:
            _count(found[there[0]][1], hours[there[0]].setdefault(spot, _Hour()), line)
        elif there:
            shared[spot].append(line)
    workloads = holders.of(seen)
    for spot, lines in shared.items():
        for name in at[spot]:
            _count_own(
                found[name][1],
                hours[name],
                spot,
                [one for one in lines if one.workload == workloads.get(name)],
            )
    for name, (engine, account) in found.items():
        _tell(engine, account)
        _settle(engine, account, hours[name], gpu_ms)
    return found


def _lines(scope: Scope, at: Mapping[Spot, Sequence[str]]) -> Iterator[PricedLine]:
    """Lines of every GPU that has an engine."""
    uuids = {uuid for uuid, _ in at}
    ids = {gpu.id for gpu in known_gpus(scope.session.connection()) if gpu.identity.gpu_uuid in uuids}
    if not ids:
        return
    window = scope.window
    yield from priced_lines(scope, window.from_ms - window.from_ms % HOUR_MS, window.to_ms, gpu_ids=ids)


def _count(account: Account, hour: _Hour, priced: PricedLine) -> None:
    line = priced.line
    account.known_ms += line.known_ms
    account.allocated_ms += line.allocated_ms
    account.idle_ms += sum(ms for activity, ms, _ in line.spent if activity == PARKED)
    if line.kind == "workload":
        account.owners.add(priced.owner)
    hour.known_ms += line.known_ms
    if line.cost_usd is None:
        account.is_priced &= line.known_ms == 0
    else:
        paid = line.cost_usd + (line.billed_energy_usd or 0)
        if priced.price is not None:
            account.bases[priced.price.basis] = None
        account.cost += paid
        hour.cost += paid
    if line.energy_mj is not None:
        hour.energy_mj = (hour.energy_mj or 0) + line.energy_mj
        account.energy_mj = (account.energy_mj or 0) + line.energy_mj
    if line.site_energy_mj is not None:
        account.site_energy_mj = (account.site_energy_mj or 0) + line.site_energy_mj
    if line.carbon_ug is not None:
        account.carbon_ug = (account.carbon_ug or 0) + line.carbon_ug


def _count_own(account: Account, hours: dict[Spot, _Hour], spot: Spot, lines: Sequence[PricedLine]) -> None:
    """Lines of a GPU on which several engines were seen: of the workload that is this one."""
    if not lines or lines[0].workload is None:
        account.is_split = False
        return
    account.said[OWN_LINES] = None
    for line in lines:
        _count(account, hours.setdefault(spot, _Hour()), line)


@dataclass(slots=True)
class _Holders:
    """Workloads on the GPUs of engines, while engines were seen there."""

    gpus: dict[WorkloadKey, set[str]] = field(default_factory=dict)
    even: set[WorkloadKey] = field(default_factory=set)

    def add(self, line: PricedLine) -> None:
        """Note who held the GPU of a line."""
        if line.workload is not None:
            self.gpus.setdefault(line.workload, set()).add(line.gpu.identity.gpu_uuid)
            if line.line.share_method == ShareMethod.EVEN:
                self.even.add(line.workload)

    def of(self, engines: Sequence[EngineEvidence]) -> dict[str, WorkloadKey]:
        """The workload of each engine, where the GPUs that both held say so beyond doubt, and shares are measured."""
        by_gpus: dict[frozenset[str], list[WorkloadKey]] = defaultdict(list)
        for workload, uuids in self.gpus.items():
            by_gpus[frozenset(uuids)].append(workload)
        names: dict[frozenset[str], list[str]] = defaultdict(list)
        for engine in engines:
            names[frozenset(engine.gpu_uuids)].append(engine.identity.engine)
        return {
            of[0]: by_gpus[uuids][0]
            for uuids, of in names.items()
            if len(of) == 1 and len(by_gpus.get(uuids, ())) == 1 and by_gpus[uuids][0] not in self.even
        }


def _tell(engine: EngineEvidence, account: Account) -> None:
    """What a reader must know before trusting the account."""
    if not engine.gpu_uuids:
        account.is_split = False
        account.said[NO_GPU] = None
    elif any(uuid.startswith(SLICE_PREFIX) for uuid in engine.gpu_uuids):
        account.is_split = False
        account.said[ON_A_SLICE] = None
    elif not account.is_split:
        account.said[SHARED] = None


def _settle(
    engine: EngineEvidence, account: Account, hours: Mapping[Spot, _Hour], gpu_ms: Mapping[Spot, int]
) -> None:
    """Count tokens, with the money and energy of the hours that told them, and split prefill off."""
    account.tokens_out = engine.total("generated_tokens")
    account.tokens_in = engine.total("prompt_tokens")
    account.busy_s, account.covered_s = engine.busy_s, engine.covered_s
    for hour in engine.hours:
        of = [(spot, hours[spot]) for uuid in engine.gpu_uuids if (spot := (uuid, hour.hour_ms)) in hours]
        if hour.generated_tokens is None:
            continue
        parts = [one for _, one in of]
        busy_cost = sum(
            one.cost * min(1.0, hour.busy_s * 1000 / gpu_ms[spot]) for spot, one in of if gpu_ms[spot] > 0
        )
        account.told_out.count(hour, parts, busy_cost)
        if hour.prompt_tokens is not None:
            account.told_both.count(hour, parts, busy_cost)
    if 0 < account.told_out.hours < len(engine.seen_hours):
        account.said[TOLD_IN_PART] = None
    if not account.is_split:
        account.is_priced = False
        account.energy_mj = account.site_energy_mj = account.carbon_ug = None
        account.told_out, account.told_both = Told(), Told()
    if account.known_ms == 0:
        account.is_priced = False
    _split(engine, account)


def _split(engine: EngineEvidence, account: Account) -> None:
    time = prefill_share([one for hour in engine.hours if (one := _work(hour, hour.busy_s)) is not None])
    energy = prefill_share(
        [one for hour in engine.hours if (one := _work(hour, hour.busy_energy_j)) is not None]
    )
    if isinstance(time, PrefillShare):
        account.cost_in = account.told_both.cost * time.ratio
        account.busy_cost_in = account.told_both.busy_cost * time.ratio
    else:
        account.cost_in = account.busy_cost_in = None
        account.why = time
    account.energy_in_mj = (
        account.told_both.energy_mj * energy.ratio if isinstance(energy, PrefillShare) else None
    )


def _work(hour: EngineHour, amount: float | None) -> WorkHour | None:
    """What the law of prefill and decode is fitted on; None where the hour does not say."""
    if amount is None or hour.busy_generated_tokens is None or hour.prompt_tokens is None:
        return None
    steps = sum(point.generated_tokens / batch for batch, point in hour.profile.items() if batch > 0)
    computed = max(0.0, hour.prompt_tokens - (hour.cached_prompt_tokens or 0.0))
    return WorkHour(amount, steps, hour.busy_generated_tokens, computed)
