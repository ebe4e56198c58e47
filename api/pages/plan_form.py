"""The form of an owned machine, shared by rent-or-buy and the mix: its fields, where their values are from, its choices."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from api import formats
from api.pages.plan_fields import Default, Field, Filled, Kind, Spec, fill, link, with_errors
from api.pages.view import Address, View
from api.resources.plan_defaults import Here, here
from api.resources.plan_measured import Wanted
from catalog import gpu_specs
from core.errors import UsageError
from core.settings import Settings
from ledger.mix_answer import LEAST_WEEKS
from ledger.rent_or_buy_inputs import RentOrBuyInputs

TABS: Final = (
    ("/plan/rent-or-buy", "Rent or buy"),
    ("/plan/size", "Size a model"),
    ("/plan/mix", "How many to own"),
)
PERIODS: Final = (
    ("4w", "4 weeks"),
    ("8w", "8 weeks"),
    ("", "13 weeks"),
    ("26w", "26 weeks"),
    ("52w", "52 weeks"),
)
WANTED: Final = (
    (Wanted.ALLOCATED.value, "a workload holds it"),
    (Wanted.ACTIVE.value, "work runs on it"),
)
MACHINE: Final = (
    Spec("capex_usd", "Purchase of the machine", "$", Kind.MONEY, "with network, storage, installation"),
    Spec("gpu_count", "GPUs in it", "", Kind.WHOLE),
    Spec("life_years", "In use for", "years"),
    Spec("residual_ratio", "Resale value", "% of purchase", Kind.PERCENT),
    Spec("cost_of_capital_ratio", "Cost of capital", "% a year", Kind.PERCENT),
)
RUNNING: Final = (
    Spec("maintenance_ratio", "Maintenance", "% of purchase a year", Kind.PERCENT),
    Spec("staff_usd_per_year", "Staff", "$ a year", Kind.MONEY),
    Spec("licences_usd_per_year", "Licences", "$ a year", Kind.MONEY),
    Spec(
        "colo_usd_per_kw_month", "Colocation", "$ per kW and month", Kind.MONEY, "for space, without energy"
    ),
    Spec("tariff_usd_per_kwh", "Electricity", "$ per kWh", Kind.MONEY),
    Spec("pue", "PUE", "× of IT power", help="with cooling and losses"),
    Spec("idle_kw", "Draws while nobody wants it", "kW"),
    Spec("active_kw", "Draws while it is wanted", "kW"),
    Spec("availability_ratio", "Up", "% of the time", Kind.PERCENT, "the rest is rented"),
)
RENT: Final = Spec("rent_usd_per_gpu_hour", "Rent on demand", "$ per GPU-hour", Kind.MONEY)
SETTING: Final[Mapping[str, str]] = {
    "gpu_count": "own_gpu_count",
    "life_years": "own_life_years",
    "residual_ratio": "own_residual_ratio",
    "cost_of_capital_ratio": "own_cost_of_capital_ratio",
    "maintenance_ratio": "own_maintenance_ratio",
    "staff_usd_per_year": "own_staff_usd_per_year",
    "pue": "pue",
}
"""Inputs that a setting of gpuwise.toml fills."""
OF_SETTINGS: Final = {one.name: one.default for one in fields(Settings)}
OUTSIDE: Final = re.compile(r"^\w+ is [^:]+: give a value from ([\d.,e+]+) to ([\d.,e+]+)$")
CHOICES: Final = ("gpu_model", "wanted", "since", "assume_measured")


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that belong together; ``open``: shown at once, the others on demand."""

    title: str
    fields: tuple[Field, ...]
    open: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A list to choose from: values with their text, the one in force."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    chosen: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class PlanForm:
    """A calculator's form.

    Attributes:
        action: where it goes. choices: lists, above the fields. groups: fields in groups.
        assume: the box that takes short measurements for years; None: nobody needs it.
        link, full_link: the address that holds every field, of this site and to hand on. clear: the address that holds none.
    """

    action: str
    choices: tuple[Choice, ...]
    groups: tuple[Group, ...]
    assume: bool | None
    link: str
    full_link: str
    clear: str

    @property
    def oob(self) -> str:
        """Selectors of what stands outside the result and changes with it."""
        names = [f"#note-{one.spec.parameter}" for group in self.groups for one in group.fields]
        return ",".join(["#said", "#link", *names])


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page of an owned machine was asked: what is known, the inputs to reckon with, and its fields."""

    here: Here
    filled: Filled
    inputs: RentOrBuyInputs | None
    choices: tuple[Choice, ...]
    needs_assumption: bool
    assumes: bool


def ask(
    view: View, specs: Sequence[Spec], *, by_use: bool = False, more: Mapping[str, Default] | None = None
) -> Asked:
    """Read what is known and what the address gives.

    Args:
        specs: fields of the page. by_use: only prices that end with the use are a rent. more: defaults of the page's own.
    """
    address = view.address
    wanted = _wanted(address)
    assumes = address.get("assume_measured") == "1"
    known = here(
        view.scope,
        gpu_model=address.get("gpu_model"),
        since=address.get("since"),
        wanted=wanted,
        gpu_count=_count(address),
        assume_measured=assumes,
        by_use=by_use,
    )
    base = known.inputs
    filled = fill(
        address, specs, {**defaults(known), **(more or {})}, lambda name, value: _alone(base, name, value)
    )
    inputs = None
    if not filled.wrong:
        own = {name: value for name, value in filled.values.items() if hasattr(base, name)}
        blank = dict.fromkeys(
            spec.name for spec in specs if hasattr(base, spec.name) and spec.name not in own
        )
        try:
            inputs = _changed(base, {**blank, **own})
        except ValueError as problem:
            filled = with_errors(filled, {str(problem).split(" ", 1)[0]: _said(str(problem))})
    measured_weeks = known.measured.weeks
    return Asked(
        here=known,
        filled=filled,
        inputs=inputs,
        choices=_choices(known, address, wanted),
        needs_assumption=bool(known.measured.hours) and measured_weeks < LEAST_WEEKS,
        assumes=assumes,
    )


def form_of(asked: Asked, path: str, groups: Sequence[tuple[str, Sequence[Spec], bool]]) -> PlanForm:
    """The form, its fields in groups."""
    by_name = {one.spec.name: one for one in asked.filled.fields}
    chosen = [(one.name, one.chosen) for one in asked.choices]
    assume = [("assume_measured", "1")] if asked.assumes else []
    whole = link(path, chosen, assume, asked.filled.pairs())
    return PlanForm(
        action=path,
        choices=asked.choices,
        groups=tuple(
            Group(title, tuple(by_name[spec.name] for spec in specs), is_open)
            for title, specs, is_open in groups
        ),
        assume=asked.assumes if asked.needs_assumption or asked.assumes else None,
        link=whole,
        full_link=asked.here.scope.settings.base_url.rstrip("/") + whole,
        clear=link(path, [(name, value) for name, value in chosen if name == "gpu_model"]),
    )


def defaults(known: Here) -> dict[str, Default]:
    """Where each field of an owned machine starts from."""
    inputs, settings = known.inputs, known.scope.settings
    found = {
        "capex_usd": Default(inputs.purchase_usd, _capex_source(known, settings)),
        "licences_usd_per_year": Default(inputs.licences_usd_per_year, "none unless you say"),
        "colo_usd_per_kw_month": Default(inputs.colo_usd_per_kw_month, "none unless you say"),
        "availability_ratio": Default(inputs.availability_ratio, "default"),
        "tariff_usd_per_kwh": Default(
            inputs.tariff_usd_per_kwh,
            "your tariff now" if inputs.tariff_usd_per_kwh is not None else "no tariff known: give one",
        ),
        "rent_usd_per_gpu_hour": Default(
            inputs.rent_usd_per_gpu_hour, inputs.rent_basis or "no price known: give one"
        ),
        "utilisation": Default(inputs.utilisation, use_source(known)),
        "utilisation_p25": Default(inputs.utilisation_p25, "lower quartile of days"),
        "utilisation_p75": Default(inputs.utilisation_p75, "upper quartile of days"),
    }
    for name in ("reserve_usd_per_gpu_hour", "commit_usd_per_gpu_hour"):
        price = known.promises.get(name)
        source = "empty: not to be had" if price is None else "your price in force"
        found[name] = Default(None if price is None else float(price), source)
    for name, setting in SETTING.items():
        is_default = getattr(settings, setting) == OF_SETTINGS[setting] == getattr(inputs, name)
        source = "default" if is_default else f"setting {setting}"
        if name == "pue" and not is_default and inputs.pue != settings.pue:
            source = "of the site where they stand"
        found[name] = Default(getattr(inputs, name), source)
    said = dict(part.split(": ", 1) for part in inputs.power_basis.split("; ") if ": " in part)
    for name, key in (("idle_kw", "idle"), ("active_kw", "active")):
        found[name] = Default(getattr(inputs, name), said.get(key, "setting, not measured"))
    return found


def use_source(known: Here) -> str:
    """Where the use is from, or why there is none."""
    if known.held_ratio is None:
        return "nothing is measured: give a use"
    over = formats.days(known.window.from_ms, known.window.to_ms)
    on = f"measured on {known.gpus} GPU{'s' if known.gpus != 1 else ''}, {over}"
    if known.inputs.utilisation is None:
        share = known.held_ratio if known.wanted is Wanted.ALLOCATED else known.active_ratio
        return (
            f"{formats.percent(share)} {on}: {weeks_of(known.measured.weeks)} weeks, and {LEAST_WEEKS} are needed; "
            "give a use, or take it as it is"
        )
    return on


def weeks_of(weeks: float) -> str:
    """Weeks, rounded down: 3.97 are not yet the four that are needed."""
    return f"{int(weeks * 10) / 10:.1f}"


def _capex_source(known: Here, settings: Settings) -> str:
    if settings.own_capex_usd is not None:
        return "setting own_capex_usd"
    spec = next((one for one in gpu_specs.specs() if one.gpu_key == known.group.gpu_key), None)
    if spec is None or spec.purchase_usd_low is None or spec.purchase_usd_high is None:
        return "from your offer; there is no default"
    low, high = formats.money(spec.purchase_usd_low), formats.money(spec.purchase_usd_high)
    return f"from your offer; one {spec.gpu_key} was seen at {low} to {high}, the server comes on top"


def _wanted(address: Address) -> Wanted:
    try:
        return Wanted(address.get("wanted") or Wanted.ALLOCATED)
    except ValueError:
        raise UsageError(
            f"wanted is {address.get('wanted')[:40]!r}: use {' or '.join(one.value for one in Wanted)}"
        ) from None


def _count(address: Address) -> int | None:
    """GPUs of the machine where they can be read: the draw is measured for as many."""
    text = address.get("gpu_count").strip()
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text[:8]) <= 1_000_000 else None


def _alone(base: RentOrBuyInputs, name: str, value: float) -> str:
    """What is wrong with one input by itself."""
    if not hasattr(base, name):
        return "" if value >= 0 else "give 0 or more"
    free = {"active_kw": {"idle_kw": 0.0}, "idle_kw": {"active_kw": 1e6}}.get(name, {})
    try:
        _changed(base, {"utilisation_p25": None, "utilisation_p75": None, **free, name: value})
    except ValueError as problem:
        return _said(str(problem), percent=name.endswith("_ratio") or name.startswith("utilisation"))
    return ""


def _changed(base: RentOrBuyInputs, values: Mapping[str, Any]) -> RentOrBuyInputs:
    given = dict(values)
    if "rent_usd_per_gpu_hour" in given:
        given["rent_usd_per_hour"] = None
    return replace(base, **given)


def _said(problem: str, *, percent: bool = False) -> str:
    """What the inputs refuse, for who sees the field beside it."""
    outside = OUTSIDE.match(problem)
    if outside is None:
        return problem.replace("_", " ")
    low, high = (float(end.replace(",", "")) for end in outside.groups())
    if percent:
        return f"give {low * 100:g} to {high * 100:g} %"
    return f"give {formats.short(low)} to {formats.short(high)}"


def _choices(known: Here, address: Address, wanted: Wanted) -> tuple[Choice, ...]:
    here_now = [(name, f"{name}: {count} here") for name, count in known.others]
    others = [
        (spec.gpu_key, spec.gpu_key)
        for spec in gpu_specs.specs()
        if spec.gpu_key not in {name for name, _ in known.others}
    ]
    model = known.group.name
    options = [*here_now, *others]
    if model not in {value for value, _ in options}:
        options.insert(0, (model, model or "choose one"))
    note = "" if known.others else "no GPU was measured here"
    if known.others and not known.gpus:
        note = "none of them here: nothing is measured"
    return (
        Choice("gpu_model", "GPU model", tuple(options), model, note),
        Choice("wanted", "A GPU is wanted while", WANTED, wanted.value, _both(known)),
        Choice("since", "Measured over", _periods(address.get("since")), address.get("since")),
    )


def _both(known: Here) -> str:
    if known.held_ratio is None:
        return ""
    return (
        f"held {formats.percent(known.held_ratio)}, at work {formats.percent(known.active_ratio)} of the time"
    )


def _periods(asked: str) -> tuple[tuple[str, str], ...]:
    if asked in {value for value, _ in PERIODS}:
        return PERIODS
    return (*PERIODS, (asked, asked))
