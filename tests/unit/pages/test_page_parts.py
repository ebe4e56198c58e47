"""Page logic without a page: series, evidence in words, grouping, the sentence, the week."""

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

import advisor
from api.overview_parts import build_days, day_activities, days_title, headline, share_words, tiles
from api.pages.fact_names import FACT_NAMES
from api.pages.facts import facts_of, split, text_of
from api.pages.overview import page_of
from api.pages.recommendations import VIEWS
from api.rec_row import Sum, row_of, rows_of, sums
from api.report import compared, report_window, subject
from core.activity import Activity
from core.evidence import Window
from core.finding import Action, Effort, Range, Saving, Stake, Status, Subject
from core.units import DAY_MS, HOUR_MS
from ledger.calendar import Calendar
from tests.contract import page_fixtures as good


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("kv_used_p95_ratio", 0.09, ("KV cache used, p95", "9 %")),
        ("itl_s_now", 0.0153, ("ITL now", "15.3 ms")),
        ("usd_per_million_tokens_now", 1.414, ("USD per million tokens now", "$1.41 / 1M tokens")),
        ("usd_per_hour_until_ended", 2.81, ("cost until it ends", "$2.81/h")),
        ("off_h_week", 58, ("off hours", "58 of 168 h")),
        ("temperature_max_c", 83.0, ("highest temperature", "83 °C")),
        ("highest_usd_per_kwh", 0.1534, ("highest", "$0.153/kWh")),
        ("own_usd_per_gpu_h", 1.904, ("an hour of use, owned", "$1.90/h")),
        ("job_gpus", 8, ("job GPUs", "8")),
        ("power_w", 412.0, ("power", "412 W")),
        ("idle_h", 1.5, ("idle", "1.5 h")),
        ("batch_limit", 256, ("batch limit", "256")),
        ("step_basis", "fit", ("step basis", "fit")),
        ("reachable", None, ("reachable", "–")),
        ("fits", True, ("fits", "yes")),
    ],
)
def test_evidence_reads_in_words_with_its_unit(name: str, value: object, said: tuple[str, str]) -> None:
    assert (split(name)[0], text_of(name, value).replace("\xa0", " ")) == said


def test_every_name_of_a_fact_is_one_that_a_rule_tells() -> None:
    rules = "".join(path.read_text() for path in Path(advisor.__path__[0]).rglob("*.py"))
    told = rules + "".join(
        f'"{name}_{part}"' for name in as_facts_names(rules) for part in ("p10", "p50", "p90")
    )
    assert [name for name in FACT_NAMES if f'"{name}"' not in told] == []


def as_facts_names(text: str) -> list[str]:
    """Names of ranges, each told as three facts."""
    return re.findall(r'as_facts\("(\w+)"', text)


def test_the_window_of_evidence_becomes_one_fact() -> None:
    facts = {fact.name: fact.text for fact in facts_of(good.finding().evidence)}
    assert facts["window"] == "21 Oct – 19 Nov 2025"
    assert "window from" not in facts


def test_a_saving_without_a_claim_says_why() -> None:
    nothing = good.finding(saving=Saving(), no_figure="needs engine metrics")
    assert sums(nothing) == [Sum("Saving not claimed", "no figure", "needs engine metrics")]
    two = Saving(cash_usd_month=Range(1, 2, 3), capacity_gpu_h_month=Range(10, 20, 30))
    notes = [one.note.split(" ")[0] for one in sums(good.finding(saving=two))]
    assert notes == ["cash", "capacity"], "two ledgers, never one sum"


def test_what_is_at_stake_is_a_cost_a_day_and_never_called_a_saving() -> None:
    stuck = good.finding(saving=Saving(), no_figure="It is ended once.", at_stake=Stake(8, 20.0))
    assert [(one.name, one.figure) for one in sums(stuck)] == [
        ("At stake", "$480 / day"),
        ("Saving not claimed", "no figure"),
    ]
    assert sums(replace(stuck, at_stake=Stake(8, None)))[0].figure == "192\u00a0GPU-h / day"
    assert "not a saving" in row_of("1", stuck).sum_note


def test_what_is_at_stake_on_neighbours_is_added_up() -> None:
    priced, unpriced = Stake(1, 2.5), Stake(1, None)
    recs = [
        good.recommendation(
            i, rule_id="stuck-job", subject=Subject("gpu", f"GPU-{i}"), gpu_uuids=(f"GPU-{i}",),
            saving=Saving(), at_stake=stake,
        )
        for i, stake in enumerate((priced, priced))
    ]  # fmt: skip
    assert rows_of(recs, {"GPU-0": "a", "GPU-1": "a"})[0].sum == "$120 / day"
    assert Stake.total([priced, unpriced]) == Stake(2, None), "a part without a price makes no sum"


def empty_gpu(i: int, host: str, usd: float = 700.0) -> tuple[object, str]:
    rec = good.recommendation(
        i,
        rule_id="empty-gpu",
        cause="empty",
        subject=Subject("gpu", f"GPU-{i}"),
        gpu_uuids=(f"GPU-{i}",),
        saving=Saving(cash_usd_month=Range(usd - 50, usd, usd + 50)),
    )
    return rec, host


def test_findings_that_say_the_same_of_neighbours_share_a_row() -> None:
    given = [empty_gpu(1, "a"), empty_gpu(2, "a", 800.0), empty_gpu(3, "b"), empty_gpu(4, "a")]
    rows = rows_of([rec for rec, _ in given], {f"GPU-{i + 1}": host for i, (_, host) in enumerate(given)})  # type: ignore[misc]
    assert [row.id for row in rows] == ["2", "3"], "best first, one row a host"
    assert [other.href.rsplit("/", 1)[1] for other in rows[0].alike] == ["2", "1", "4"]
    assert (rows[0].title, rows[0].sum) == ("Release 3 empty GPUs on a", "$2,200 / month")
    assert rows[1].alike == ()


def test_a_grade_lowered_for_little_data_does_not_claim_a_method() -> None:
    rec = good.recommendation(1)
    short = replace(rec.finding, confidence="Moderate. Graded down from A: 7 minutes of data.")
    assert row_of("1", short).grade_word == "little data yet"
    assert row_of("1", rec.finding).grade_word != "little data yet"


def test_a_group_ranks_by_what_it_saves_together() -> None:
    given = [empty_gpu(1, "a", 900.0), empty_gpu(2, "b", 500.0), empty_gpu(3, "b", 500.0)]
    hosts = {f"GPU-{i + 1}": host for i, (_, host) in enumerate(given)}
    (row,) = rows_of([rec for rec, _ in given], hosts, most=1)  # type: ignore[misc]
    assert row.sum == "$1,000 / month"


def test_findings_on_unknown_hosts_or_of_engines_stay_apart() -> None:
    recs = [empty_gpu(1, "a")[0], empty_gpu(2, "a")[0]]
    assert len(rows_of(recs, {})) == 2  # type: ignore[arg-type]
    assert len(rows_of([good.recommendation(1), good.recommendation(2)], {"GPU-0": "a"})) == 2


def test_different_statuses_are_never_joined() -> None:
    first, second = empty_gpu(1, "a")[0], empty_gpu(2, "a")[0]
    claimed = replace(second, status=Status.CLAIMED)  # type: ignore[type-var]
    rows = rows_of([first, claimed], {"GPU-1": "a", "GPU-2": "a"}, with_status=True)  # type: ignore[list-item]
    assert len(rows) == 2


def test_without_figures_what_can_be_done_at_once_comes_first() -> None:
    none = {"saving": Saving(), "no_figure": "thin data"}
    recs = [
        good.recommendation(1, actions=(Action("Think about it."),), **none),
        good.recommendation(2, effort=Effort.HIGH, **none),
        good.recommendation(3, **none),
    ]
    assert [row.id for row in rows_of(recs, {})] == ["3", "2", "1"]


def test_half_an_hour_of_data_is_told_as_half_an_hour() -> None:
    window = Window(good.WINDOW.to_ms - 1_800_000, good.WINDOW.to_ms)
    first, _ = headline(good.overview(window=window, now_ms=good.NOW_MS + 40 * DAY_MS))
    assert first.endswith("on GPUs in 30\xa0min on 19 Nov 2025.")


@pytest.mark.parametrize(
    ("zone", "month", "said"),
    [
        ("UTC", "2026-10", "in the 31 days to 31 Oct 2026."),
        ("America/New_York", "2026-10", "in the 31 days to 31 Oct 2026."),
        ("America/New_York", "2026-11", "in the 30 days to 30 Nov 2026."),  # an hour longer: summer time ends
        ("America/New_York", "2026-03", "in the 31 days to 31 Mar 2026."),  # an hour shorter
        ("Asia/Kolkata", "2026-10", "in the 31 days to 31 Oct 2026."),
        ("Pacific/Auckland", "2026-10", "in the 31 days to 31 Oct 2026."),
    ],
)
def test_a_period_is_told_by_the_days_of_its_zone(zone: str, month: str, said: str) -> None:
    span = Calendar(zone).month(month)
    window = Window(span.from_ms, span.to_ms)
    first, _ = headline(good.overview(window=window, days_zone=zone, now_ms=span.to_ms + 40 * DAY_MS))
    assert first.replace("\xa0", " ").endswith(said)


def test_an_evening_is_told_by_the_day_it_was_there() -> None:
    evening = Calendar("America/New_York").day("2026-10-05").to_ms
    window = Window(evening - 3 * HOUR_MS, evening)
    view = good.overview(window=window, days_zone="America/New_York", now_ms=evening + 2 * DAY_MS)
    assert headline(view)[0].replace("\xa0", " ").endswith("in 3 h on 5 Oct 2026.")


def test_the_headline_is_a_sentence_with_both_sums() -> None:
    first, second = headline(good.overview())
    assert first == "You spent $84,310 on GPUs in the last 30\xa0days."
    assert second == "$31,870 of it bought hours in which nothing ran."


def test_old_data_name_their_last_day() -> None:
    first, _ = headline(good.overview(now_ms=good.NOW_MS + 40 * DAY_MS))
    assert first.endswith("to 19 Nov 2025.")


def test_unpriced_hours_are_told_in_hours_not_in_dollars() -> None:
    first, second = headline(good.overview(money=good.empty_overview().money))
    assert "GPU-h" in first
    assert "$" not in first + second


def test_tiles_keep_the_kinds_of_saving_apart() -> None:
    names = [tile.name for tile in tiles(good.overview())]
    assert names == [
        "Spend",
        "Idle",
        "Could save, cash",
        "Could free",
        "Could save, energy",
        "Saved and verified",
    ]
    unknown = {tile.name: tile.figure for tile in tiles(good.empty_overview())}
    assert set(unknown.values()) == {"–"}


def test_what_is_verified_leads_to_a_list_that_there_is() -> None:
    (href,) = [tile.href for tile in tiles(good.overview()) if tile.name == "Saved and verified"]
    path, _, view = href.partition("?view=")
    assert path == "/recommendations"
    assert Status.VERIFIED in VIEWS[view][1]


def test_a_share_is_said_as_people_say_it() -> None:
    assert share_words(1 / 3) == "A third"
    assert share_words(0.5) == "Half"
    assert share_words(0.38) == "38\xa0%"


def test_a_fleet_that_works_is_told_so() -> None:
    money = replace(good.overview().money, idle_usd=Decimal(0), unseen_usd=Decimal(0))
    assert days_title(good.overview(money=money)) == "Nearly every dollar bought work"
    assert headline(good.overview(money=money))[1] == "None of it bought hours in which nothing ran."


def test_what_was_not_seen_is_not_told_as_work() -> None:
    money = replace(good.overview().money, idle_usd=Decimal(0))
    view = good.overview(money=money)
    assert days_title(view) == "Hardly a dollar is known to be idle"
    assert headline(view)[1] == "None of it is known to have bought hours in which nothing ran."
    spend = tiles(good.overview())[0]
    assert spend.note.endswith("$3,048 of it not seen")


def test_a_gap_is_hatched_in_the_chart_of_days_once() -> None:
    chart, in_hours = build_days(good.overview())
    assert not in_hours
    (bar,) = re.findall(r"<title>2 Nov: ([^<]*)</title>", chart)
    assert bar == "unknown $2,700"
    hours, _ = build_days(good.overview(money=good.empty_overview().money))
    assert re.findall(r"<title>2 Nov: ([^<]*)</title>", hours) == ["unknown 675\xa0GPU-h"]
    assert Activity.UNKNOWN in day_activities(good.overview())
    row = page_of(good.overview(), good.frame()).day_rows[12]
    assert (row.spend_usd, row.unseen_usd) == (Decimal(2700), Decimal(2700))
    assert sum(usd for usd in row.by_activity if usd is not None) == Decimal(2700)


def test_the_week_is_seven_full_days_before_the_newest_one() -> None:
    window, note = report_window(Window(good.WINDOW.from_ms, good.WINDOW.to_ms + 5 * HOUR_MS))
    assert window == Window(good.WINDOW.to_ms - 7 * DAY_MS, good.WINDOW.to_ms)
    assert note == ""


def test_fewer_days_are_said_to_be_fewer() -> None:
    window, note = report_window(Window(good.WINDOW.to_ms - 3 * DAY_MS, good.WINDOW.to_ms + HOUR_MS))
    assert window.to_ms - window.from_ms == 3 * DAY_MS
    assert "3.0 days" in note


def test_half_an_hour_is_reported_as_half_an_hour() -> None:
    data = Window(good.WINDOW.to_ms + HOUR_MS, good.WINDOW.to_ms + HOUR_MS + 1_800_000)
    window, note = report_window(data)
    assert window == data
    assert "30\xa0min" in note


def test_the_subject_has_the_number_and_says_when_it_is_simulated() -> None:
    assert subject(good.overview()).startswith("gpuwise: $84,310 spent, $31,870 of it idle, ")
    assert subject(good.overview(simulated=True)).startswith("[simulated] ")
    assert "no samples" in subject(good.empty_overview())
    day = Window(good.WINDOW.to_ms - DAY_MS, good.WINDOW.to_ms)
    assert subject(good.overview(window=day)).endswith(", 19 Nov")


def test_a_week_is_only_compared_with_a_full_one() -> None:
    assert "+4.1\xa0% on the 7 days before ($81,000)" in compared(good.overview())
    assert compared(good.overview(previous=None)) == ""
