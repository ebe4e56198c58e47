"""Sentences of the weekly report: budgets, what is still open, what was done and proven, data quality. Pure."""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Final

from api import formats
from api.links import recommendation_path
from api.overview_parts import WORTH_SAYING, Tile
from api.report_model import BudgetLine, DoneLine
from api.resources.budgets import BudgetView
from api.resources.forecast import ForecastRow
from api.resources.overview_model import Overview
from api.resources.report_week import Week
from api.templating import inert
from core.finding import Range, Status, Totals
from core.ownership import Owner
from core.verification import Ledger, Verdict, Verification
from store.queries.recommendations import Recommendation
from store.queries.report_told import Told

NAME: Final = 40
TITLE: Final = 140
SENTENCE: Final = 320
COMMAND: Final = 240
"""Letters of a name, a title, a sentence and a command that a mail bears; a longer command is not cut, it is left out."""
GROWN: Final = 1.25
"""An action that was told comes back as news when its saving grew to so many times what was told."""
BUDGETS: Final = 4
DONE: Final = 5
STEPS: Final = {
    Status.VERIFIED: "Verified",
    Status.DONE: "Done",
    Status.REOPENED: "Came back",
    Status.CLAIMED: "Taken on",
    Status.SNOOZED: "Put off",
    Status.DISMISSED: "Dismissed",
}
"""In the order in which they are told."""


def clip(text: str, most: int) -> str:
    """Text from outside as one visible line of at most so many letters."""
    shown = formats.NBSP.join(inert(part) for part in text[: most + 1].split(formats.NBSP))
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"


def audience_name(audience: Owner | None) -> str:
    """For people."""
    return "the whole fleet" if audience is None else clip(audience.name, NAME)


def command_of(text: str | None) -> str | None:
    """A command that can be copied as it is printed; None where its letters would not come out as they are."""
    if text is None or len(text) > COMMAND or any(inert(line) != line for line in text.splitlines()):
        return None
    return text


def tiles(view: Overview) -> tuple[Tile, ...]:
    """Spend, idle, what could be saved in each kind, energy with carbon. Never a sum across kinds."""
    money, totals = view.money, view.totals
    waiting = "the rules have not run yet" if totals is None else "no claim the evidence would carry"
    cash = totals.cash_usd_month if totals else None
    free = totals.capacity_gpu_h_month if totals else None
    less = totals.energy_kwh_month if totals else None
    could = [
        Tile(
            "Could save, cash",
            formats.money(cash.p50) if cash else formats.UNKNOWN,
            f"a month, {formats.spread(cash, 'cash')}" if cash else waiting,
        ),
        Tile(
            "Could free",
            formats.gpu_hours(free.p50) if free else formats.UNKNOWN,
            f"a month, {formats.spread(free, 'capacity')}, capacity only" if free else waiting,
        ),
    ]
    if less:
        could.append(
            Tile("Could save, energy", formats.kwh(less.p50), f"a month, {formats.spread(less, 'energy')}")
        )
    idle = "no price known" if money.idle_usd is None else f"{formats.percent(money.idle_ratio)} of the spend"
    if money.idle_usd:
        idle += f": empty {formats.money(money.empty_usd)}, parked {formats.money(money.parked_usd)}"
    carbon = (
        "carbon unknown"
        if view.carbon_g is None
        else f"{formats.short(view.carbon_g / 1000)}{formats.NBSP}kg CO₂e with host and cooling"
    )
    return (
        Tile("Spend", formats.money(money.spend_usd), _spend_note(view)),
        Tile("Idle", formats.money(money.idle_usd), idle, idle=bool(money.idle_usd)),
        *could,
        Tile("Energy", formats.kwh(view.energy_kwh), f"at the GPUs; {carbon}"),
    )


def _spend_note(view: Overview) -> str:
    money = view.money
    if money.spend_usd is None:
        return "no price known"
    said = []
    if (money.unseen_ratio or 0.0) >= WORTH_SAYING:
        said.append(f"{formats.money(money.unseen_usd)} of it while no sample came")
    if money.energy_usd is not None:
        said.append(
            f"{formats.money(money.energy_usd)} of energy {'in it' if money.energy_in_spend else 'on top'}"
        )
    return "; ".join(said) or "GPU time at the prices below"


def budget_lines(week: Week) -> tuple[BudgetLine, ...]:
    """The budgets that matter most; without any what the month comes to."""
    order = {"over": 0, "at_risk": 1}
    found = sorted(
        week.budgets, key=lambda one: (one.scope_kind != "all", order.get(one.status or "", 2), one.name)
    )
    if found:
        return tuple(_budget_line(one) for one in found[:BUDGETS])
    row = week.outlook
    if row is None or row.spent_usd is None:
        return ()
    return (BudgetLine(f"{_month(row.month)}, no budget set", _spent(row)),)


def _budget_line(one: BudgetView) -> BudgetLine:
    amount = one.amount_usd
    states = {
        "over": "over budget",
        "at_risk": f"at risk: over it about {_day(one.breaks_on)}" if one.breaks_on else "at risk",
    }
    return BudgetLine(
        name=f"{clip(one.name, NAME)}, {_month(one.month)}",
        text=_spent(one, amount),
        state=states.get(one.status or "", ""),
        is_bad=one.status in states,
        spent_percent=_percent(one.spent_usd, amount),
        expected_percent=_percent(one.p50_usd, amount),
    )


def _spent(row: BudgetView | ForecastRow, amount: Decimal | None = None) -> str:
    of = "" if amount is None else f" of {formats.money(amount)}"
    text = f"{formats.money(row.spent_usd)}{of} spent"
    if row.is_over:
        return f"{text}; the month is over"
    if row.p10_usd is None or row.p90_usd is None or row.p50_usd is None:
        return f"{text}; no forecast" + (f": {row.why}" if row.why else "")
    return f"{text}; {formats.money_span(row.p10_usd, row.p90_usd)} expected at the end of the month"


def _percent(part: Decimal | None, whole: Decimal) -> int | None:
    return None if part is None or whole <= 0 else max(0, min(100, round(float(part / whole) * 100)))


def _month(key: str) -> str:
    return f"{date.fromisoformat(f'{key}-01'):%B}"


def _day(key: str) -> str:
    day = date.fromisoformat(key)
    return f"{day.day} {day:%b}"


def figure_of(item: Recommendation) -> Told:
    """A recommendation as it is told: its hardest ledger."""
    for ledger in Ledger:
        figure: Range | None = getattr(item.finding.saving, ledger.field)
        if figure is not None:
            return Told(item.finding.fingerprint, ledger, figure.p50)
    return Told(item.finding.fingerprint, None, None)


def has_grown(now: Told, then: Told) -> bool:
    """It is more than what was told by a quarter, or another kind of money."""
    if now.ledger is not then.ledger:
        return now.ledger is not None
    return now.figure is not None and now.figure >= (then.figure or 0.0) * GROWN > 0


def ledger_words(ledger: Ledger | None, figure: float | None) -> str:
    """A figure of a ledger a month."""
    match ledger:
        case Ledger.CASH:
            return f"{formats.money(figure)} a month"
        case Ledger.CAPACITY:
            return f"{formats.gpu_hours(figure)} a month"
        case Ledger.ENERGY:
            return f"{formats.kwh(figure)} a month"
    return "no figure"


def still_open(count: int, totals: Totals) -> str:
    """What was told in earlier reports and waits, in one sentence."""
    if not count:
        return ""
    figures = [
        ledger_words(ledger, figure.p50)
        for ledger in Ledger
        if (figure := getattr(totals, ledger.field)) is not None and figure.p50 > 0
    ]
    noun = "action" if count == 1 else "actions"
    worth = f", together {' and '.join(figures)}" if figures else ""
    return f"Still open: {count} {noun} that earlier reports told{worth}."


def done_lines(week: Week) -> tuple[DoneLine, ...]:
    """What was proven and decided, the last step of each recommendation, proofs first."""
    proven = {one.recommendation_id for one, _ in week.verified}
    lines = [
        (
            0,
            DoneLine(
                "Verified" if one.verification.verdict is Verdict.SAVED else "Compared",
                clip(item.finding.title, TITLE),
                recommendation_path(item.id),
                # The sentence is about GPUs as wholes: where others paid a part, it is not the reader's figure.
                "" if week.is_partly(item.id) else verified_words(one.verification),
            ),
        )
        for one, item in week.verified
    ]
    last = {step.recommendation_id: (step, item) for step, item in week.steps}
    order = list(STEPS)
    for id_, (step, item) in last.items():
        if id_ in proven or step.status not in STEPS:
            continue
        told = figure_of(item)
        lines.append(
            (
                1 + order.index(step.status),
                DoneLine(
                    STEPS[step.status],
                    clip(item.finding.title, TITLE),
                    recommendation_path(id_),
                    "" if told.ledger is None else f"claimed: {ledger_words(told.ledger, told.figure)}",
                ),
            )
        )
    return tuple(line for _, line in sorted(lines, key=lambda each: each[0]))


def verified_words(made: Verification) -> str:
    """Saved of predicted."""
    if made.verdict is Verdict.NOISE:
        return "no saving that could be told from noise"
    if made.saving is None or made.ledger is None:
        return ""
    if made.verdict is Verdict.NO_SAVING:
        return "no saving at equal load"
    saved = ledger_words(made.ledger, made.saving.p50)
    if made.predicted_p50 is None:
        return f"saves {saved}"
    predicted = ledger_words(made.ledger, made.predicted_p50).removesuffix(" a month")
    share = "" if made.realised_ratio is None else f" ({formats.percent(made.realised_ratio)})"
    return f"saves {saved} of {predicted} predicted{share}"


def quality(week: Week) -> str:
    """Data quality in one line: coverage, GPUs that are silent, time without a price."""
    view = week.view
    gpus = f"{view.gpu_count} GPU{'' if view.gpu_count == 1 else 's'}"
    hosts = f" on {view.host_count} host{'' if view.host_count == 1 else 's'}" if view.host_count else ""
    said = [f"{formats.percent(view.coverage_ratio)} of samples received from {gpus}{hosts}"]
    if week.silent:
        named = ", ".join(clip(name, NAME) for name in week.silent[:2])
        more = f" and {len(week.silent) - 2} more" if len(week.silent) > 2 else ""
        said.append(f"{len(week.silent)} silent now ({named}{more})")
    priced = view.money.priced_ratio
    if priced is not None and priced < 0.995:
        said.append(f"{formats.percent(1 - priced)} of GPU time without a price")
    return "; ".join(said)


def joined(notes: Iterable[str], most: int = 3) -> str:
    """Several notes of one kind, the first of them."""
    known = list(dict.fromkeys(note for note in notes if note))
    more = f"; and {len(known) - most} more" if len(known) > most else ""
    return "; ".join(clip(note, TITLE) for note in known[:most]) + more


def is_told(item: Recommendation, before: dict[str, Told]) -> bool:
    """An earlier report told it, and it did not grow since."""
    then = before.get(item.finding.fingerprint)
    return then is not None and not has_grown(figure_of(item), then)


def split(
    found: Sequence[Recommendation], before: dict[str, Told]
) -> tuple[list[Recommendation], list[Recommendation]]:
    """What is news, and what was told before."""
    news = [item for item in found if not is_told(item, before)]
    return news, [item for item in found if is_told(item, before)]
