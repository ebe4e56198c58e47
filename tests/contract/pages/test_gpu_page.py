"""The pages of one GPU render from a fixture: charts of what was measured, a sentence for what was not."""

from dataclasses import replace
from decimal import Decimal

from api.pages import gpu_charts, gpu_hours, gpu_samples
from api.pages.gpu_memory import Layers
from api.templating import render
from core.activity import Activity
from core.evidence import Price
from tests.contract import gpu_fixtures as made
from tests.contract import page_fixtures as good

POWER_ONLY = {"power_w": 100.0}


def html(**changes: object) -> str:
    return render("pages/gpu.html", made.page(good.frame("fleet"), **changes))  # type: ignore[arg-type]


def test_every_measured_thing_has_a_chart() -> None:
    page = html()
    for name in ("power", "use", "memory", "clocks", "temperature", "links"):
        assert f'data-chart="{name}"' in page
    assert "Clocks were held back 100\xa0% of the time by the power limit" in page
    assert "memory ran at 2,619\xa0MHz all the time" in page
    assert "dcgm-exporter" not in page


def test_what_was_never_measured_has_no_chart_and_missing_counters_are_named() -> None:
    points = made.series(Activity.UNKNOWN, **POWER_ONLY)
    drawing = gpu_charts.draw(points, good.gpu().identity, None, Layers(()))
    page = html(points=points, drawing=drawing, steps=gpu_charts.steps_table(points))
    for name in ("clocks", "temperature", "links"):
        assert f'data-chart="{name}"' not in page
    assert "dcgm-exporter" in page
    assert "Use was not measured" in page
    assert "Memory was not measured" in page


def test_names_that_want_to_be_code_are_text() -> None:
    page = html()
    assert "<script>alert" not in page
    assert "\u202e" not in page.replace(good.HOSTILE, "")
    assert "alert(1)" in page
    assert "14 more" not in page
    assert "2 more" in page


def test_a_price_says_since_when_and_whose() -> None:
    price = Price(Decimal("2.99"), "your price of 2025-10-01", "reserved", 1, "2025-10-01", from_user=True)
    page = html(money=made.money(price=price, cost_usd=Decimal("71.76"), rate_usd=Decimal("2.50")))
    assert "$71.76 for 24\xa0h of clock time" in page
    assert "2025-10-01" in page
    assert "your own price" in page
    assert "Rate of the period" in page
    assert "no price fits" in html()


def test_the_page_says_what_to_listen_to_and_works_without() -> None:
    page = html()
    assert 'data-live-from="/live/gpus/GPU-0"' in page
    assert 'data-live-field="power"' in page
    assert '<a href="/gpus/GPU-0?since=1h">reload</a>' in page
    assert 'data-go="earlier"' in page


def test_a_period_without_samples_says_so() -> None:
    empty = replace(made.series(), points=())
    page = html(points=empty, activities=())
    assert "No samples in this period." in page
    assert "data-chart" not in page


def test_an_hour_without_samples_is_blank_and_not_zero() -> None:
    line = gpu_hours.HourLine(
        good.WINDOW.from_ms,
        "/gpus/GPU-0/samples?hour=x",
        None,
        "no samples",
        made.page(good.frame()).drawing.band,
        None,
        None,
        None,
        None,
        None,
    )
    page = render(
        "pages/gpu_hours.html",
        gpu_hours.HoursPage(
            frame=good.frame("fleet"),
            name=good.HOSTILE,
            gpu_href="/gpus/GPU-0",
            day="2025-11-19",
            zone="UTC",
            before_href="/a",
            after_href=None,
            csv_href="/b",
            lines=(line,),
            covered_s=0.0,
            active_s=0.0,
            idle_s=0.0,
            energy_kwh=None,
            cost_usd=None,
            idle_usd=None,
            basis="",
        ),
    )
    row = page[page.index("<tbody>") : page.index("</tbody>")]
    assert "no samples on 2025-11-19" in page
    assert "<script>alert" not in page
    assert row.count("–</td>") == 10
    assert "$0" not in row


def test_samples_have_a_column_for_each_reading_and_a_dash_where_one_lacks() -> None:
    heads, lines = gpu_samples.lines_of(
        [
            good.sample(0, Activity.BUSY, power_w=410.4, temperature_c=64.0, event_reasons_flags=float(0x24)),
            good.sample(1, Activity.UNKNOWN, power_w=100.0),
        ]
    )
    assert [head.name for head in heads] == ["power", "temperature", "event reasons"]
    assert lines[0].cells == ("410\xa0W", "64\xa0°C", "the power limit, heat (by the driver)")
    assert lines[1].cells == ("100\xa0W", "–", "–")


def test_the_samples_of_an_hour_render() -> None:
    found = [good.sample(i, Activity.PARKED, power_w=100.0) for i in range(3)]
    heads, lines = gpu_samples.lines_of(found)
    page = render(
        "pages/gpu_samples.html",
        gpu_samples.SamplesPage(
            frame=good.frame("fleet"),
            headline=gpu_samples.headline("GPU 0", found, made.HOUR.from_ms),
            name="GPU 0",
            hour_ms=made.HOUR.from_ms,
            gpu_href="/gpus/GPU-0",
            day_href="/gpus/GPU-0/hours?day=2025-11-19",
            before_href="/a",
            after_href="/b",
            csv_href="/c",
            heads=heads,
            lines=lines,
            total=240,
            first=1,
            pages=((1, "/a", True), (2, "/b", False)),
            raw_days=14,
        ),
    )
    assert "All 3 samples were parked: GPU 0, 19 Nov 2025 23:00–00:00 UTC" in page
    assert 'datetime="2025-11-19T23:00:10.000Z"' in page
    assert "Samples 1 to 3 of 240." in page
