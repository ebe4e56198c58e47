"""The fleet's page rendered from values: what it says, how it is cut and sorted, and that names are only names."""

import re
from decimal import Decimal

import pytest

from api.pages import fleet
from api.pages.view import Address
from api.templating import render
from core.errors import UsageError
from tests.contract import page_fixtures as good
from tests.contract.pages import fleet_fixtures as some


def page(
    *query: tuple[str, str], rows: list[some.FleetGpu] | None = None, **frame: object
) -> fleet.FleetPage:
    return fleet.page_of(
        some.fleet() if rows is None else rows,
        good.frame("fleet", title="Fleet", **frame),
        address=Address("/fleet", query),
        window=good.WINDOW,
    )


def html(*query: tuple[str, str], rows: list[some.FleetGpu] | None = None, **frame: object) -> str:
    return render("pages/fleet.html", page(*query, rows=rows, **frame))


def shown(found: fleet.FleetPage) -> list[str]:
    return [line.row.now.gpu_uuid for group in found.groups for line in group.lines]


def test_the_headline_counts_work_idle_and_silent_gpus() -> None:
    assert page().headline == "20 of 32 GPUs work, 8 do nothing, 4 are silent"


def test_silent_gpus_are_marked_and_print_no_figures_of_now() -> None:
    row = html(("host", "gpu-node-08")).split('data-live-gpu="GPU-28"')[1].split("</tr>")[0]
    assert 'class="silent">silent' in row
    assert "3.0\xa0h ago" in row
    assert "data-live-field" not in row
    assert "93" not in row


def test_gpus_stand_under_their_hosts_unless_one_list_is_asked_for() -> None:
    by_host, flat = page(), page(("list", "none"))
    assert [group.host.host for group in by_host.groups if group.host] == [
        f"gpu-node-0{i}" for i in range(1, 9)
    ]
    assert len(flat.groups) == 1
    assert sorted(shown(flat)) == sorted(shown(by_host))


@pytest.mark.parametrize(
    ("query", "count"),
    [
        (("activity", "empty"), 4),
        (("activity", "silent"), 4),
        (("host", "gpu-node-03"), 4),
        (("owner", "research"), 24),
        (("owner", "unowned"), 8),
        (("label", "rack=a2"), 4),
        (("label", "cluster=hall-1"), 32),
        (("engine", "llama-70b"), 4),
        (("find", "NODE-03"), 4),
        (("find", "gpu-31"), 1),
        (("model", "another"), 0),
    ],
)
def test_a_fleet_is_cut_by_what_the_address_says(query: tuple[str, str], count: int) -> None:
    found = page(query)
    assert (found.shown, found.total) == (count, 32)
    assert len(shown(found)) == count
    assert len(found.filters.chips) == 1


def test_filters_hold_together_and_values_of_one_are_alternatives() -> None:
    assert page(("activity", "empty"), ("activity", "silent")).shown == 8
    assert page(("activity", "empty"), ("owner", "research")).shown == 0


def test_a_header_sorts_and_hosts_follow_their_first_gpu() -> None:
    rows = [some.gpu(0), some.gpu(1, now={"power_w": 900.0}), some.gpu(2, now={"power_w": None})]
    assert shown(page(("sort", "-power"), rows=rows)) == ["GPU-4", "GPU-0", "GPU-8"], "unknown comes last"
    assert shown(page(("sort", "power"), rows=rows)) == ["GPU-0", "GPU-4", "GPU-8"]
    assert 'aria-sort="descending"' in html(("sort", "-power"), rows=rows)


def test_counts_by_activity_respect_the_other_filters() -> None:
    names = [link.name for link in page(("owner", "unowned"), ("activity", "empty")).states]
    assert names == ["all 8", "empty 4", "silent 4"]


@pytest.mark.parametrize("query", [("activity", "asleep"), ("sort", "colour"), ("list", "tree")])
def test_what_the_page_does_not_know_is_refused(query: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match=query[1]):
        page(query)


def test_unknown_money_is_a_dash_and_not_nothing() -> None:
    row = some.gpu()
    row.total.cost_micro = row.total.idle_micro = None
    assert page(rows=[row]).tiles[-1].figure == "–"
    assert "no price known" in html(rows=[row])
    assert "$0" not in html(rows=[row])


def test_the_idle_money_of_a_host_is_that_of_its_gpus() -> None:
    group = page().groups[6]
    assert group.host is not None
    assert group.host.idle_usd == Decimal(4 * 24 * 90)


def test_links_keep_the_period() -> None:
    text = html(("since", "7d"))
    assert 'href="/gpus/GPU-0?since=7d"' in text
    assert 'href="/hosts/gpu-node-01?since=7d"' in text
    assert 'href="/api/v1/gpus?since=7d&amp;format=csv"' in text


def test_the_csv_is_of_the_gpus_that_are_shown() -> None:
    text = html(("host", "gpu-node-01"), ("host", "gpu-node-02"), ("activity", "busy"), ("find", "H100"))
    parts = "host=gpu-node-01&amp;host=gpu-node-02&amp;activity=busy&amp;find=H100&amp;format=csv"
    assert f'href="/api/v1/gpus?{parts}">these GPUs as CSV' in text
    assert ">every GPU as CSV" in html()


def test_names_are_only_names() -> None:
    hostile = good.HOSTILE
    rows = [
        some.gpu(now={"host": hostile, "model": hostile}),
        some.gpu(1, now={"host": "x" * 10_000, "model": hostile}),
    ]
    for query in ((), (("list", "none"),)):
        text = html(*query, rows=rows)
        assert "<script>alert" not in text
        assert "alert(1)" in text, "the name itself is shown"
        table = re.sub(r'href="[^"]*"', "", text[text.index("<table") : text.index("</table>")])
        assert "\u202e" not in table
        assert "x" * 500 not in table, "cut to what a table bears"


def test_a_strip_says_in_words_what_it_draws() -> None:
    text = html(("host", "gpu-node-05"))
    assert "<title>busy, nature unknown 8 h, unknown 10 h, no samples 6 h</title>" in text
    assert 'fill="url(#hatch)"' in text


def test_an_empty_fleet_says_what_to_do_next() -> None:
    text = html(rows=[], newest_ms=None, coverage_ratio=None)
    assert "gpuwise agent" in text
    assert "No GPU has been seen yet." in text


def test_a_filter_that_nothing_fits_offers_a_way_back() -> None:
    text = html(("find", "nothing like it"))
    assert "No GPU fits" in text
    assert 'href="/fleet"' in text


def test_a_page_that_is_not_live_does_not_listen() -> None:
    assert "live.js" in html()
    assert "live.js" not in html(newest_ms=good.NOW_MS - 10 * 3_600_000)
