"""The settings of the rules as a page, from a fixture: everything named, hostile words inert, what was typed kept."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from api.pages import settings_rules as page
from api.pages.forms import FormState
from api.pages.settings_rules import EXCLUSION, THRESHOLD, Read, RulesPage, page_of
from api.resources.exclusion_cover import Coverage, CoveredRecommendation
from api.resources.exclusions import ExclusionView, State
from api.resources.thresholds import ThresholdView
from api.templating import render
from core.clock import from_ms
from core.rule_settings import Origin
from tests.contract import page_fixtures as good
from tests.contract.test_pages_render import Document

NOW = from_ms(good.NOW_MS)
HOSTILE = good.HOSTILE


def exclusion(**changes: object) -> ExclusionView:
    """A host until the end of the third day."""
    base = ExclusionView(
        id=7,
        rule_id=None,
        part="host node-07",
        selectors={"host": "node-07"},
        since=NOW - timedelta(days=1),
        until=datetime(2025, 11, 23, tzinfo=UTC),
        reason="hot spare until Saturday",
        state=State.IN_FORCE,
        origin=Origin.DATABASE,
        who="Ada",
        set_at=NOW - timedelta(days=1),
        ended_at=None,
        ended_by=None,
        refused=None,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def threshold(**changes: object) -> ThresholdView:
    """One of the fleet at its default."""
    base = ThresholdView(
        rule_id="small-batch",
        rule_title="Fill the batch",
        name="min_small_ratio",
        part="the fleet",
        selectors={},
        value=0.2,
        default=0.2,
        allowed="a number > 0, ≤ 1",
        meaning="Share of busy time with a small batch (R07).",
        origin=Origin.DEFAULT,
        id=None,
        note=None,
        who=None,
        set_at=None,
        refused=None,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


SET = threshold(
    value=0.4,
    origin=Origin.DATABASE,
    id=3,
    note="trial",
    who="Ada",
    set_at=NOW,
    part="host dev-*",
    selectors={"host": "dev-*"},
)
COVERS = Coverage(8, 32, 1, ["GPU-a"], 2, [CoveredRecommendation(5, "empty-gpu", HOSTILE, "x")])


def of(**changes: object) -> RulesPage:
    read = Read([exclusion()], [threshold(), SET], [("node-07", "host"), (HOSTILE, "owner")])
    return page_of(good.frame("settings"), read, **changes)  # type: ignore[arg-type]


def html(made: RulesPage) -> str:
    return render("pages/settings_rules.html", made)


def section(text: str, id_: str) -> str:
    """One section of the page, as its reader has it."""
    return unescape(text[text.index(f'id="{id_}"') :].split("</section>", maxsplit=1)[0])


FILLED = FormState(
    EXCLUSION,
    {"kind0": "owner", "pattern0": HOSTILE, "reason": HOSTILE, "until": "2025-12-01", "rule_id": "off-hours"},
)
PAGES = {
    "plain": of(),
    "empty": page_of(good.frame("settings"), Read([], [threshold()])),
    "asked for a rule": of(rule_id="small-batch"),
    "looked": of(form=FILLED, covers=COVERS),
    "refused": of(rule_id="small-batch", form=replace(FILLED, errors={"until": "until is past"})),
    "refused threshold": of(
        form=FormState(THRESHOLD, {"rule_id": "small-batch", "value": "7"}, {"value": "min_small_ratio is 7"})
    ),
    "hostile": page_of(
        good.frame("settings"),
        Read(
            [exclusion(part=HOSTILE, reason=HOSTILE * 900, who=HOSTILE, rule_id=HOSTILE, refused=HOSTILE)],
            [
                replace(
                    SET,
                    part=HOSTILE,
                    note=HOSTILE,
                    who=HOSTILE,
                    name=HOSTILE,
                    rule_id=HOSTILE,
                    refused=HOSTILE,
                )
            ],
            [(HOSTILE, "host")],
        ),
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_it_carries_nothing_inline_and_no_words_of_a_strangers_own(name: str) -> None:
    text = html(PAGES[name])
    assert Document(text).inline == []
    assert "alert(1)</script>" not in text
    assert "\u202e" not in re.sub(r'value="[^"]*"', "", text), "a mark that turns text stands in fields alone"


@pytest.mark.parametrize("name", PAGES)
def test_ids_are_one_of_a_kind_and_headings_skip_no_level(name: str) -> None:
    document = Document(html(PAGES[name]))
    assert len(document.ids) == len(set(document.ids))
    assert document.headings[0] == "h1"
    assert document.headings.count("h1") == 1
    assert document.skips == []


@pytest.mark.parametrize("name", PAGES)
def test_every_field_has_a_label_and_every_header_a_scope(name: str) -> None:
    document = Document(html(PAGES[name]))
    assert (document.unlabelled, document.unscoped) == ([], 0)


def test_the_headline_says_what_is_in_force() -> None:
    assert PAGES["plain"].headline == "1 exclusion in force; 1 threshold is set"
    assert PAGES["empty"].headline == "Nothing is left alone; every threshold is at its default"
    later = exclusion(state=State.TO_COME, since=NOW + timedelta(days=3))
    made = page_of(good.frame("settings"), Read([exclusion(), exclusion(), later], [SET, SET]))
    assert made.headline == "2 exclusions in force, 1 to come; 2 thresholds are set"


def test_an_exclusion_says_its_last_day_what_is_left_and_who_gave_it() -> None:
    live = section(html(PAGES["plain"]), "exclusions")
    for words in (
        "host node-07",
        "every rule",
        "2025-11-22",
        "days left",
        "hot spare until Saturday",
        "Ada",
        "19 Nov 2025",
    ):
        assert words in live
    assert 'action="/settings/rules/exclusions/7/end"' in live


def test_what_stands_in_the_file_cannot_be_ended_here() -> None:
    made = page_of(
        good.frame("settings"), Read([exclusion(id=None, origin=Origin.FILE, who=None, set_at=None)], [])
    )
    live = section(html(made), "exclusions")
    assert "in the file" in live
    assert "<form" not in live


def test_what_is_over_is_folded_away_with_how_it_ended() -> None:
    ended = exclusion(state=State.ENDED, ended_at=NOW, ended_by="Grace")
    made = page_of(good.frame("settings"), Read([ended, exclusion(until=NOW, state=State.OVER)], []))
    assert (made.live, [line.left for line in made.past]) == ((), ["over", "ended 20 Nov 2025 by Grace"])
    assert "2 that are over" in section(html(made), "exclusions")


def test_what_is_to_come_says_when_it_begins() -> None:
    later = exclusion(state=State.TO_COME, since=NOW + timedelta(days=3))
    assert page_of(good.frame("settings"), Read([later], [])).live[0].left == "begins in 3\u00a0days"


def test_thresholds_that_are_set_stand_by_the_part_they_hold_for() -> None:
    made = page_of(
        good.frame("settings"), Read([], [SET, replace(SET, part="the fleet", selectors={}), threshold()])
    )
    assert [(part.name, len(part.lines)) for part in made.parts] == [("the fleet", 1), ("host dev-*", 1)]
    text = section(html(made), "set")
    assert text.index("For <bdi>the fleet") < text.index("For <bdi>host dev-*")
    assert "trial" in text


def test_a_rule_that_is_asked_for_is_open_with_its_form() -> None:
    text = html(PAGES["asked for a rule"])
    assert 'id="rule-small-batch" open' in text
    assert text.count('action="/settings/rules/thresholds#') == 1
    assert "a number > 0, ≤ 1" in section(text, "rules")
    assert 'action="/settings/rules/thresholds#' not in html(PAGES["plain"])


def test_what_was_typed_stays_with_what_was_wrong_beside_it() -> None:
    text = html(PAGES["refused"])
    form = section(text, "leave-alone")
    assert 'value="2025-12-01"' in form
    assert 'aria-describedby="exclusion-until-wrong"' in form
    assert 'id="exclusion-until-wrong" role="alert">until is past' in form
    assert '<option value="owner" selected>' in form
    assert '<option value="off-hours" selected>' in form


def test_a_refused_threshold_comes_back_with_its_rule_open() -> None:
    text = html(PAGES["refused threshold"])
    assert 'id="rule-small-batch" open' in text
    assert 'name="value" value="7"' in text
    assert 'id="threshold-value-wrong" role="alert">min_small_ratio is 7' in unescape(text)
    assert 'value="7"' not in section(text, "leave-alone")


def test_a_refusal_of_no_field_stands_with_the_form() -> None:
    text = html(of(form=FormState(EXCLUSION, {}, {"": "something is off"})))
    assert '<p class="error" role="alert">something is off' in text


def test_a_look_says_what_it_would_cover_and_that_nothing_is_kept() -> None:
    form = section(html(PAGES["looked"]), "leave-alone")
    assert "It would cover 8 of 32 GPUs and 1 engine; 2 open recommendations would be set aside." in form
    assert "Nothing is kept yet." in form
    none = of(form=FILLED, covers=Coverage(0, 32, 0, [], 0, []))
    assert "It would cover no GPU that is known." in section(html(none), "leave-alone")


@pytest.mark.parametrize(
    ("error", "fields", "where"),
    [
        ("until is '2024-01-01', which is past: give a day", {}, "until"),
        ("since is '2026', which is not before until", {}, "since"),
        ("reason is missing: say why", {}, "reason"),
        ("exclusion names no part of the fleet: give one", {}, "pattern0"),
        ("exclusion: label is 'x': use NAME=VALUE", {"kind0": "label"}, "pattern0"),
        ("thresholds: label is 'x': use NAME=VALUE", {"kind0": "host", "kind1": "label"}, "pattern1"),
        ("host is 'y': string too long", {"kind0": "host"}, "pattern0"),
        ("setting rules.small-batch.min_gain is 0.5: give a number", {}, "value"),
        ("pattern1 names a second host: both must hold", {}, "pattern1"),
        ("rule_id is 'x', and there is no such rule", {}, ""),
    ],
)
def test_a_refusal_finds_its_field(error: str, fields: dict[str, str], where: str) -> None:
    assert page.field_of(error, fields) == where


def test_sources_that_are_no_web_page_are_no_links() -> None:
    text = html(of(rule_id="rent-or-buy"))
    assert "<code>core/breakeven.py</code>" in text
    assert all(href.startswith(("https://", "/", "#", "?")) for href in re.findall(r'href="([^"]*)"', text))
