"""Pages of engines, workloads, teams and users render from fixtures; what is unknown stays unknown, names stay inert."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from api.pages.engine import charts_of
from api.pages.frame import Frame
from api.resources.engine_detail import Law
from api.resources.who_used import Level
from core.readings import WorkloadKey
from tests.contract import page_fixtures as good
from tests.contract.pages import work_fixtures as work
from tests.contract.test_pages_render import Document, engine_row

HOSTILE_WORK = WorkloadKey("process", good.HOSTILE, good.HOSTILE * 300, user=good.HOSTILE, host=good.HOSTILE)
PAGES: dict[str, Callable[[Frame], str]] = {
    "engines": lambda f: work.engines_html(f, engine_row(), engine_row(engine="b", model=None)),
    "engines, none": work.engines_html,
    "engines, none fits": lambda f: work.engines_html(f, seen=3),
    "engine": work.engine_html,
    "engine, no law": lambda f: work.engine_html(
        f, work.detail(law=Law(None, "it ran at 1 batch size only (8): a line needs 3", None, None, None))
    ),
    "engine, no data": lambda f: work.engine_html(f, work.detail(row=None, hours=())),
    "workloads": lambda f: work.workloads_html(f, work.who(work.group("ann\nprocess\ntrain.py"))),
    "workloads, users": lambda f: work.workloads_html(
        f, work.who(work.group("ann"), work.group("")), Level.USER
    ),
    "workloads, hostile": lambda f: work.workloads_html(
        f, work.who(work.group("process/x", HOSTILE_WORK, good.HOSTILE)), Level.RUN
    ),
    "workloads, none": lambda f: work.workloads_html(f, work.who()),
    "owners": lambda f: work.owners_html(
        f, work.who(work.group("research"), nobody=work.group(None, None, None))
    ),
    "owners, none": lambda f: work.owners_html(f, work.who()),
    "owner": lambda f: work.owner_html(f, good.HOSTILE, work.day()),
    "owner, nothing": work.owner_html,
    "user": lambda f: work.user_html(f, good.HOSTILE, work.day()),
    "user, nothing": work.user_html,
    "workload": work.workload_html,
    "workload, hostile": lambda f: work.workload_html(f, HOSTILE_WORK),
    "workload, nothing": lambda f: work.workload_html(f, held=False),
}


@pytest.fixture(params=PAGES)
def html(request: pytest.FixtureRequest) -> str:
    return PAGES[request.param](good.frame("workloads"))


def test_a_page_is_well_formed_and_carries_nothing_inline(html: str) -> None:
    document = Document(html)
    assert document.inline == []
    assert document.unnamed == []
    assert document.headings.count("h1") == 1
    assert len(document.ids) == len(set(document.ids))


def test_no_heading_level_is_skipped(html: str) -> None:
    levels = [int(name[1]) for name in Document(html).headings]
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_names_are_inert(html: str) -> None:
    assert "<script>alert" not in html
    # What a form sends back is the text as it is; what is read is not.
    assert "\u202e" not in re.sub(r' value="[^"]*"', "", html)


def test_unknown_money_prints_a_dash_and_no_zero() -> None:
    unpriced = work.group(
        "ann\nprocess\ntrain.py", cost_usd=None, idle_cost_usd=None, energy_mj=None, carbon_ug=None
    )
    unpriced = replace_rate(unpriced)
    html = work.workloads_html(good.frame("workloads"), work.who(unpriced))
    row = html[html.index('<th scope="row">') :].split("</tr>")[0]
    assert "$" not in row
    assert row.count(">–<") == 4


def replace_rate(group: work.Group) -> work.Group:
    """The same group without a price."""
    group.total.amounts.pop("cost_usd", None)
    return group


def test_effective_hours_that_nothing_tells_are_no_zero() -> None:
    untold = work.group("ann\nprocess\ntrain.py", effective_ms=0, effective_unknown_ms=8 * work.HOUR)
    html = work.workloads_html(good.frame("workloads"), work.who(untold))
    row = html[html.index('<th scope="row">') :].split("</tr>")[0]
    assert 'data-label="Effective">–<' in row
    assert "8 active that nothing can judge" in row
    assert "url(#hatch)" in row


def test_what_nobody_owns_is_a_row_that_leads_to_the_rules() -> None:
    html = PAGES["owners"](good.frame("workloads"))
    assert '<a href="/settings/owners"><bdi>unowned</bdi></a>' in html


def test_the_curve_says_its_conclusion_and_draws_limit_promise_and_half_rate() -> None:
    html = PAGES["engine"](good.frame("engines"))
    assert "59 would make half" not in html
    assert "50 would make half" in html
    for mark in ("half rate 50", "limit 256 →", "promise 50\xa0ms: 120 →"):
        assert mark in html, mark
    assert html.count('class="dot"') >= 6
    assert 'class="law beyond"' in html


def test_a_queue_that_no_hour_tells_is_not_called_empty() -> None:
    def title(waiting: float | None) -> str:
        chart = next(charts_of([replace(hour, waiting=waiting) for hour in work.hours()], good.WINDOW))
        assert chart is not None
        return chart.title

    assert title(None) == "Requests at once; how many waited is not told"
    assert title(0.0) == "Hardly a request waited"


def test_without_an_honest_law_there_is_no_line_and_a_reason() -> None:
    html = PAGES["engine, no law"](good.frame("engines"))
    assert 'class="law' not in html
    assert "it ran at 1 batch size only (8)" in html


def test_a_workload_shows_usage_times_price_and_how_gpus_were_shared() -> None:
    html = PAGES["workload"](good.frame("workloads"))
    assert "your price of 2025-09-01" in html
    assert "$2.00/h" in html
    assert "by memory × time" in html
    assert "not held, or no samples for 2\xa0h" in html


def test_an_empty_list_says_what_to_do_next() -> None:
    frame = good.frame(newest_ms=None, coverage_ratio=None)
    for name in ("engines, none", "workloads, none", "owners, none"):
        assert "gpuwise import" in PAGES[name](frame), name
