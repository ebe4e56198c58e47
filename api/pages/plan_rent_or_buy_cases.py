"""What turns the answer of rent or buy: each assumption moved alone, and all of them against and for owning. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts_bars import swing_bar
from api.pages.plan_rent_or_buy_form import BY_NAME
from api.pages.plan_rent_or_buy_words import months, rate
from ledger.rent_or_buy import RENT_FACTORS
from ledger.rent_or_buy_swings import Case, Swing

CASES: Final = {
    "against owning": f"rent {formats.percent(RENT_FACTORS[0] - 1)}, shorter life, slow days",
    "as assumed": "what the form says",
    "for owning": f"rent +{formats.percent(RENT_FACTORS[-1] - 1)}, longer life, busy days",
}


@dataclass(frozen=True, slots=True)
class SwingLine:
    """One assumption moved alone, for people."""

    name: str
    tried: str
    saves: str
    turns: bool
    bar: Markup


@dataclass(frozen=True, slots=True)
class CaseLine:
    """One case, for people."""

    name: str
    note: str
    use: str
    rent: str
    life: str
    own: str
    breakeven: str
    payback: str
    saves: str


def swing_title(moved: Sequence[Swing]) -> str:
    """Which assumption matters most, and which turn the answer."""
    if not moved:
        return ""
    turning = [one.name for one in moved if one.turns]
    most = _named(moved[0].name)
    if not turning:
        return f"{most} matters most; no assumption alone turns the answer"
    if turning == [moved[0].name]:
        return f"{most} matters most, and alone turns the answer"
    return f"{most} matters most; {len(turning)} assumption{'s' if len(turning) != 1 else ''} alone turn{'' if len(turning) != 1 else 's'} the answer"


def _named(name: str) -> str:
    return (
        "Use" if name == "utilisation" else BY_NAME[name].label if name in BY_NAME else name.replace("_", " ")
    )


def swing_lines(moved: Sequence[Swing]) -> tuple[SwingLine, ...]:
    """Assumptions with their bars, all on one scale."""
    figures = [value for one in moved for value in (one.saves_at_low, one.saves_at_high)]
    ends = (min(*figures, 0.0), max(*figures, 0.0)) if figures else (0.0, 0.0)
    found = []
    for one in moved:
        at = tuple(_signed(value) for value in (one.saves_at_low, one.saves_at_high))
        name = _named(one.name)
        found.append(
            SwingLine(
                name=name,
                tried=f"{_as_said(one.name, one.low)} to {_as_said(one.name, one.high)}",
                saves=f"{at[0]} to {at[1]}",
                turns=one.turns,
                bar=swing_bar(
                    one.saves_at_low,
                    one.saves_at_high,
                    None,
                    ends,
                    f"{name}: owning saves {at[0]} to {at[1]} a year",
                ),
            )
        )
    return tuple(found)


def _as_said(name: str, value: float) -> str:
    if name == "utilisation" or name.endswith("_ratio"):
        return formats.percent(value)
    if "usd" in name:
        return f"${formats.short(value)}"
    return f"{formats.short(value)}{' years' if name == 'life_years' else ''}"


def _signed(value: float) -> str:
    return f"{'−' if round(value) < 0 else ''}${formats.figure(abs(value))}"


def case_line(one: Case) -> CaseLine:
    """A case in words."""
    found = one.result
    breakeven = found.breakeven_utilisation
    return CaseLine(
        name=one.name,
        note=CASES[one.name],
        use=formats.percent(one.inputs.utilisation),
        rent=rate(one.inputs.rent_per_gpu_hour),
        life=f"{formats.short(one.inputs.life_years)} years",
        own=rate(found.own_usd_per_gpu_h),
        breakeven="at no use" if breakeven is None or breakeven > 1 else formats.percent(breakeven),
        payback="never" if found.payback_months is None else months(found.payback_months),
        saves=_signed(one.saves_usd_per_year) if one.saves_usd_per_year is not None else formats.UNKNOWN,
    )
