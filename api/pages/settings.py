"""Settings: what is set and what is missing, one line for each page of settings, and what gpuwise.toml says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api import formats
from api.pages import (
    settings_owners,
    settings_prices,
    settings_recipients,
    settings_rules,
    settings_tariffs,
    settings_tokens,
)
from api.pages.frame import Frame, build_frame
from api.pages.view import View, ViewDep
from api.resources import (
    effective_prices,
    exclusions,
    owners,
    recipients,
    settings_given,
    sites,
    thresholds,
)
from api.resources.effective_prices import EffectivePriceRow
from api.resources.exclusions import ExclusionView
from api.resources.ledger_anew import as_set
from api.resources.owners import RuleView
from api.resources.recipients import RecipientView
from api.resources.settings_given import Given
from api.resources.sites import TermsView
from api.resources.thresholds import ThresholdView
from api.templating import render
from core.rule_settings import Origin
from store.queries import tokens
from store.queries.tokens import TokenRecord

router = APIRouter(include_in_schema=False)
PAGE: Final = "/settings"


@dataclass(frozen=True, slots=True)
class Section:
    """One page of settings: how it stands, in a sentence; ``is_missing``: something is left to do there."""

    name: str
    href: str
    said: str
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """Everything the page prints."""

    frame: Frame
    headline: str
    sections: tuple[Section, ...]
    given: tuple[Given, ...]
    defaults: tuple[Given, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """What the page is made of."""

    prices: Sequence[EffectivePriceRow]
    terms: Sequence[TermsView]
    rules: Sequence[RuleView]
    recipients: Sequence[RecipientView]
    exclusions: Sequence[ExclusionView]
    thresholds: Sequence[ThresholdView]
    tokens: Sequence[TokenRecord]
    given: Sequence[Given]


def page_of(frame: Frame, read: Read) -> SettingsPage:
    """The page from what was read; pure."""
    return SettingsPage(
        frame=frame,
        headline=headline(read),
        sections=sections(read, frame.now_ms),
        given=tuple(one for one in read.given if one.is_set),
        defaults=tuple(one for one in read.given if not one.is_set),
    )


def headline(read: Read) -> str:
    """What is missing, in a sentence; nothing: that all is set."""
    missing = []
    count = effective_prices.counts(list(read.prices))
    of = f"{formats.figure(len(read.prices))} GPUs"
    if count["unpriced_count"]:
        missing.append(f"{formats.figure(count['unpriced_count'])} of {of} have no price")
    if count["stale_count"]:
        missing.append(f"{formats.figure(count['stale_count'])} of {of} go by an old list price")
    if all(row.usd_per_kwh is None for row in read.terms):
        missing.append("electricity has no price")
    if not any(rule.in_force for rule in read.rules):
        missing.append("no rule says whose GPU time is")
    if not any(row.paused_until is None for row in read.recipients):
        missing.append("nobody gets mail")
    if not missing:
        return "Prices, tariffs, owners and recipients are set"
    text = "; ".join(missing)
    return f"{text[:1].upper()}{text[1:]}"


def sections(read: Read, now_ms: int) -> tuple[Section, ...]:
    """A line for each page of settings."""
    count = effective_prices.counts(list(read.prices))
    live = [row for row in read.exclusions if row.state in exclusions.LIVE]
    changed = sum(row.origin is not Origin.DEFAULT for row in read.thresholds)
    mail = settings_recipients.Read(read.recipients, (), ())
    lines = [
        settings_tokens.TokenLine(row, settings_tokens.state_of(row, now_ms), row.valid_at(now_ms))
        for row in read.tokens
    ]
    found = (
        Section(
            "Prices",
            settings_prices.PAGE,
            settings_prices.headline(read.prices),
            bool(count["stale_count"] or count["unpriced_count"]),
        ),
        Section(
            "Tariffs and sites",
            settings_tariffs.PAGE,
            settings_tariffs.headline(read.terms),
            all(row.usd_per_kwh is None for row in read.terms),
        ),
        Section(
            "Owners and hosts",
            settings_owners.PAGE,
            settings_owners.rules_said(read.rules),
            not any(rule.in_force for rule in read.rules),
        ),
        Section(
            "Mail and alerts",
            settings_recipients.PAGE,
            settings_recipients.headline(mail),
            not any(row.paused_until is None for row in read.recipients),
        ),
        Section("Rules", settings_rules.PAGE, settings_rules.headline(live, changed)),
        Section("Budgets", "/budgets", "What each team, project or cluster may cost a month"),
        Section("Agents’ tokens", settings_tokens.PAGE, settings_tokens.headline(lines)),
    )
    return tuple(replace(one, said=one.said.replace(formats.NBSP, " ")) for one in found)


def build_settings(view: View) -> SettingsPage:
    """The page as it stands."""
    scope = view.scope
    session, settings, now = scope.session, scope.settings, scope.now_ms
    read = Read(
        prices=effective_prices.rows(session, settings, now),
        terms=sites.terms(session, settings, now),
        rules=owners.rows(session, now),
        recipients=recipients.rows(session, settings, now),
        exclusions=exclusions.rows(session, settings, now),
        thresholds=thresholds.rows(session, settings, now),
        tokens=tokens.listing(session),
        given=settings_given.rows(as_set(session, settings)),
    )
    return page_of(build_frame(view, active="settings", title="Settings", window_text=""), read)


@router.get(PAGE, response_class=HTMLResponse)
def settings_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render("pages/settings.html", build_settings(view))
