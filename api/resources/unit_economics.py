"""What a token, and a useful GPU-hour, costs: by engine, model or owner (cost-model 4).

At *measured use* everything counts that the GPUs cost in the hours an engine was seen, idle time and gaps too. *While
busy* only the time with requests running counts: what the same tokens would cost on GPUs that never wait.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final

from api.resources.by import By
from api.resources.columns import about
from api.resources.engine_accounts import Account, accounts
from api.resources.report import UNOWNED, Question, report
from api.resources.report_parts import MONEY, USAGE
from api.resources.report_sum import LineSum
from api.resources.scope import Scope
from core.evidence import EngineEvidence
from core.money import from_micro
from core.units import HOUR_MS, J_PER_KWH
from ledger.unit_economics import per_million, usd_per_useful_gpu_h

SPLIT: Final = "least squares over busy hours: steps, generated tokens, computed prompt tokens"
MJ_PER_KWH: Final = 1000 * J_PER_KWH
UG_PER_G: Final = 1_000_000
_MEASURED: Final = "At measured use, dollars per million"
_BUSY: Final = "While busy, dollars per million"
_SPLIT: Final = "null also without split_method"


class UnitBy(StrEnum):
    """What ``unit-economics?by=`` takes; ``model`` is what engines serve, ``owner`` the team."""

    ENGINE = "engine"
    MODEL = "model"
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class UnitRow:
    """Unit costs of one engine, of all that serve one model, or of one owner."""

    key: Annotated[str | None, about("Engine, model or team; null: unowned, or no model is told.")]
    label: Annotated[str, about("The group for people.")]
    engine_count: Annotated[int, about("Engines in it.")]
    busy_ratio: Annotated[float | None, about("Share of the engines' seen time with requests running.")]
    allocated_gpu_h: Annotated[float | None, about("GPU-hours held; null: shared, and not told apart.")]
    idle_gpu_h: Annotated[float | None, about("Of them held without work (parked).")]
    cost_usd: Annotated[
        Decimal | None, about("GPU price, and energy where it is billed apart; null: a part has no price.")
    ]
    usd_per_useful_gpu_h: Annotated[
        Decimal | None, about("cost_usd over allocated less idle GPU-hours: what an hour of work costs.")
    ]
    energy_kwh: Annotated[float | None, about("At the GPUs.")]
    site_energy_kwh: Annotated[float | None, about("Energy × (1 + host share) × PUE.")]
    carbon_g: Annotated[float | None, about("Of site energy, gCO2e, location-based.")]
    engine_cost_usd: Annotated[
        Decimal | None, about("Part of cost_usd for the engines' GPUs: what tokens share.")
    ]
    tokens_output: Annotated[float | None, about("Tokens generated.")]
    tokens_input: Annotated[float | None, about("Prompt tokens, those from a prefix cache included.")]
    usd_per_1m_tokens: Annotated[Decimal | None, about(f"{_MEASURED} tokens in and out (blended).")]
    usd_per_1m_output_tokens: Annotated[
        Decimal | None, about(f"{_MEASURED} generated tokens, without prefill's part; {_SPLIT}.")
    ]
    usd_per_1m_input_tokens: Annotated[
        Decimal | None, about(f"{_MEASURED} prompt tokens, prefill's part alone; {_SPLIT}.")
    ]
    usd_per_1m_output_tokens_all_in: Annotated[
        Decimal | None, about(f"{_MEASURED} generated tokens, which carry the whole cost.")
    ]
    usd_per_1m_tokens_busy: Annotated[Decimal | None, about(f"{_BUSY} tokens in and out.")]
    usd_per_1m_output_tokens_busy: Annotated[
        Decimal | None, about(f"{_BUSY} generated tokens, without prefill's part; {_SPLIT}.")
    ]
    usd_per_1m_input_tokens_busy: Annotated[
        Decimal | None, about(f"{_BUSY} prompt tokens, prefill's part alone; {_SPLIT}.")
    ]
    usd_per_1m_output_tokens_all_in_busy: Annotated[
        Decimal | None, about(f"{_BUSY} generated tokens, which carry the whole cost.")
    ]
    j_per_token: Annotated[float | None, about("At measured use, joules at the GPUs per token in and out.")]
    j_per_output_token: Annotated[
        float | None,
        about("At measured use, without prefill's part, fitted on energy as time is; null: not told."),
    ]
    j_per_input_token: Annotated[
        float | None, about("At measured use, prefill's part alone; null: not told.")
    ]
    j_per_output_token_all_in: Annotated[
        float | None, about("At measured use, per generated token, which carries all energy.")
    ]
    j_per_token_busy: Annotated[float | None, about("While busy, joules per token in and out.")]
    split_method: Annotated[
        str | None, about("How prefill is told from decode; null: it is not, see split_why.")
    ]
    split_why: Annotated[str | None, about("Why not.")]
    data_quality: Annotated[tuple[str, ...], about("What limits these figures, in short sentences.")]


def rows(scope: Scope, by: UnitBy, engines: Collection[str] | None = None) -> list[UnitRow]:
    """Every group, by name; what cannot be said comes last. ``engines``: of these, and those on their GPUs, only."""
    found = accounts(scope, engines=engines)
    if by is UnitBy.OWNER:
        return _by_owner(scope, found)
    name: Callable[[EngineEvidence], str | None] = (
        (lambda engine: engine.identity.engine)
        if by is UnitBy.ENGINE
        else (lambda engine: engine.identity.model)
    )
    sums: dict[str | None, Account] = {}
    labels: dict[str | None, str] = {}
    for engine, account in found.values():
        key = name(engine)
        model = engine.identity.model
        labels[key] = (
            (model or "model unknown") if by is UnitBy.MODEL else f"{model or engine.identity.kind} on {key}"
        )
        _add(sums, key, account)
    return [_of_engines(key, labels[key], sums[key]) for key in _order(sums)]


def _by_owner(scope: Scope, found: Mapping[str, tuple[EngineEvidence, Account]]) -> list[UnitRow]:
    """All that an owner pays for; tokens of the engines whose GPUs only that owner held."""
    totals = report(scope, Question((By.OWNER,), tuple(dict.fromkeys([*MONEY, *USAGE])), money=True))
    engines: dict[str | None, Account] = {}
    for _, account in found.values():
        teams = {None if owner is None else owner.team for owner in account.owners}
        _add(engines, teams.pop() if len(teams) == 1 else None, account)
    lines = {key[0]: total for key, total in totals.items()}
    keys = dict.fromkeys([*lines, *engines])
    return [
        _of_owner(key, lines.get(key, LineSum()), engines.get(key, Account(cost_in=None)))
        for key in _order(keys)
    ]


def _add(sums: dict[str | None, Account], key: str | None, account: Account) -> None:
    if key in sums:
        sums[key].merge(account)
    else:
        sums[key] = account


def _order(keys: Mapping[str | None, object]) -> list[str | None]:
    return sorted(keys, key=lambda key: (key is None, key or ""))


def _of_engines(key: str | None, label: str, of: Account) -> UnitRow:
    cost = _cost(of)
    allocated_h, idle_h = of.allocated_ms / HOUR_MS, of.idle_ms / HOUR_MS
    return UnitRow(
        key=key,
        label=label,
        allocated_gpu_h=allocated_h if of.is_split else None,
        idle_gpu_h=idle_h if of.is_split else None,
        cost_usd=cost,
        usd_per_useful_gpu_h=usd_per_useful_gpu_h(cost, allocated_h, idle_h),
        energy_kwh=_over(of.energy_mj, MJ_PER_KWH),
        site_energy_kwh=_over(of.site_energy_mj, MJ_PER_KWH),
        carbon_g=_over(of.carbon_ug, UG_PER_G),
        **_tokens(of),
    )


def _of_owner(key: str | None, total: LineSum, of: Account) -> UnitRow:
    cost = total.spend_usd if total.priced_ms >= total.whole("covered_ms") else None
    allocated_h, idle_h = total.hours("allocated_ms"), total.hours("parked_ms")
    return UnitRow(
        key=key,
        label=UNOWNED if key is None else key,
        allocated_gpu_h=allocated_h,
        idle_gpu_h=idle_h,
        cost_usd=cost,
        usd_per_useful_gpu_h=usd_per_useful_gpu_h(cost, allocated_h, idle_h),
        energy_kwh=_over(total.amounts.get("energy_mj"), MJ_PER_KWH),
        site_energy_kwh=total.site_kwh,
        carbon_g=total.carbon_g,
        **_tokens(of),
    )


def _tokens(of: Account) -> dict[str, Any]:
    """Everything about tokens; the same whoever's they are."""
    out, both = of.told_out, of.told_both
    cost, busy = _money(of, both.cost), _money(of, both.busy_cost)
    cost_in, busy_in = _money(of, of.cost_in), _money(of, of.busy_cost_in)
    joules_in = None if of.energy_in_mj is None else of.energy_in_mj / 1000
    is_split = bool(of.engines) and of.cost_in is not None
    return {
        "engine_count": of.engines,
        "busy_ratio": _over(of.busy_s, of.covered_s),
        "engine_cost_usd": _cost(of),
        "tokens_output": of.tokens_out,
        "tokens_input": of.tokens_in,
        "usd_per_1m_tokens": per_million(cost, both.tokens_out + both.tokens_in),
        "usd_per_1m_output_tokens": per_million(_less(cost, cost_in), both.tokens_out),
        "usd_per_1m_input_tokens": per_million(cost_in, both.tokens_in),
        "usd_per_1m_output_tokens_all_in": per_million(_money(of, out.cost), out.tokens_out),
        "usd_per_1m_tokens_busy": per_million(busy, both.tokens_out + both.tokens_in),
        "usd_per_1m_output_tokens_busy": per_million(_less(busy, busy_in), both.tokens_out),
        "usd_per_1m_input_tokens_busy": per_million(busy_in, both.tokens_in),
        "usd_per_1m_output_tokens_all_in_busy": per_million(_money(of, out.busy_cost), out.tokens_out),
        "j_per_token": _over(both.energy_mj / 1000, both.energy_out + both.energy_in),
        "j_per_output_token": None
        if joules_in is None
        else _over(both.energy_mj / 1000 - joules_in, both.energy_out),
        "j_per_input_token": _over(joules_in, both.energy_in),
        "j_per_output_token_all_in": _over(out.energy_mj / 1000, out.energy_out),
        "j_per_token_busy": _over(both.busy_j or None, both.busy_out + both.busy_in),
        "split_method": SPLIT if is_split else None,
        "split_why": None if is_split or not of.engines else of.why,
        "data_quality": tuple(of.said),
    }


def _cost(of: Account) -> Decimal | None:
    return _money(of, of.cost)


def _money(of: Account, micro: float | None) -> Decimal | None:
    """Micro-dollars of an account; None where a part of it has no price or cannot be told apart."""
    if micro is None or not (of.engines and of.is_priced and of.is_split):
        return None
    return from_micro(round(micro))


def _less(whole: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if whole is None or part is None else whole - part


def _over(amount: float | None, of: float) -> float | None:
    return None if amount is None or of <= 0 else amount / of
