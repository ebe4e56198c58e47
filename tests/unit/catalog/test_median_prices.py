"""The median on-demand price of a model: one vote a provider, dated, honest about what it stands on."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from statistics import median

import pytest

from catalog import gpu_prices
from catalog.gpu_prices import (
    COLUMNS,
    CatalogPrice,
    MedianPrice,
    age_days,
    is_stale_at,
    median_on_demand,
    prices,
)
from catalog.loader import read_rows
from core.clock import to_ms
from core.errors import CatalogueError

GOOD = {
    "provider": "p",
    "instance_type": "i",
    "gpu_model": "H100",
    "form_factor": "SXM5",
    "gpu_memory_gb": "80",
    "gpu_count": "8",
    "region": "r",
    "on_demand_usd_per_hour": "16",
    "on_demand_usd_per_gpu_hour": "2",
    "as_of_date": "2026-09",
    "source": "s",
    "confidence": "high",
}


def _read(folder: Path, *changes: dict[str, str]) -> tuple[CatalogPrice, ...]:
    lines = [",".join(COLUMNS)]
    lines += [",".join({**GOOD, **change}.get(column, "") for column in COLUMNS) for change in changes]
    path = folder / "gpu_prices.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_rows(path, COLUMNS, gpu_prices._parse)


def _median(monkeypatch: pytest.MonkeyPatch, rows: tuple[CatalogPrice, ...]) -> MedianPrice | None:
    monkeypatch.setattr(gpu_prices, "prices", lambda: rows)
    return median_on_demand.__wrapped__("H100-SXM5-80GB")


def test_a_list_price_is_divided_by_the_gpus_of_the_instance(tmp_path: Path) -> None:
    (row,) = _read(tmp_path, {"spot_usd_per_hour": "8"})
    assert row.on_demand_usd_per_gpu_hour == 2
    assert row.spot_usd_per_gpu_hour == 1
    assert row.reserved_1y_usd_per_gpu_hour is None
    assert row.gpu_key == "H100-SXM5-80GB"


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("on_demand_usd_per_gpu_hour", "3"),
        ("on_demand_usd_per_gpu_hour", ""),
        ("gpu_count", "0"),
        ("as_of_date", "soon"),
        ("confidence", "certain"),
        ("on_demand_usd_per_hour", "-16"),
    ],
)
def test_a_bad_price_row_is_refused_by_line_and_column(tmp_path: Path, column: str, text: str) -> None:
    with pytest.raises(CatalogueError, match=f"gpu_prices.csv line 3, column {column}"):
        _read(tmp_path, {}, {column: text})


def test_a_provider_with_many_shapes_has_one_vote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [
        {"provider": "big", "on_demand_usd_per_hour": "80", "on_demand_usd_per_gpu_hour": "10"}
        for _ in range(9)
    ]
    few = [
        {"provider": "a"},
        {"provider": "b", "on_demand_usd_per_hour": "24", "on_demand_usd_per_gpu_hour": "3"},
    ]
    result = _median(monkeypatch, _read(tmp_path, *many, *few))
    assert result is not None
    assert (result.usd_per_gpu_hour, result.low, result.high) == (3, 2, 10)
    assert (result.row_count, result.provider_count) == (11, 3)


def test_rows_that_are_no_on_demand_price_have_no_vote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = _read(
        tmp_path,
        {},
        {"provider": "b", "not_comparable": "cheapest offer", "as_of_date": "2026-11"},
        {"provider": "c", "on_demand_usd_per_hour": "", "on_demand_usd_per_gpu_hour": ""},
        {"provider": "d", "form_factor": ""},
    )
    result = _median(monkeypatch, rows)
    assert result is not None
    assert (result.provider_count, result.as_of) == (1, "2026-09")
    assert result.basis == "catalogue: median on-demand of H100-SXM5-80GB, 1 provider, 2026-09"


def test_the_unit_of_release_is_the_commonest_and_on_a_tie_the_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {"gpu_count": "1", "on_demand_usd_per_hour": "2"}
    tie = _median(monkeypatch, _read(tmp_path, {}, one))
    most = _median(monkeypatch, _read(tmp_path, {}, one, one))
    assert tie is not None
    assert most is not None
    assert (tie.gpus_per_unit, most.gpus_per_unit) == (8, 1)


def test_a_model_without_rows_has_no_price() -> None:
    assert median_on_demand("GB10") is None
    assert median_on_demand("no such card") is None
    assert median_on_demand(None) is None


def test_the_64_gb_h100_is_priced_as_the_80_gb_one_and_says_so() -> None:
    small, full = median_on_demand("H100-SXM5-64GB"), median_on_demand("H100-SXM5-80GB")
    assert small is not None
    assert full is not None
    assert small.usd_per_gpu_hour == full.usd_per_gpu_hour
    assert small.market_key == "H100-SXM5-80GB"
    assert "of H100-SXM5-80GB (H100-SXM5-64GB has no market of its own)" in small.basis
    assert "market of its own" not in full.basis


def test_the_shipped_h100_median_is_the_median_of_its_providers_medians() -> None:
    by_provider: dict[str, list[Decimal]] = {}
    for row in prices():
        price = row.on_demand_usd_per_gpu_hour
        if row.gpu_key == "H100-SXM5-80GB" and price is not None and not row.not_comparable:
            by_provider.setdefault(row.provider, []).append(price)
    result = median_on_demand("H100-SXM5-80GB")
    assert result is not None
    assert result.provider_count == len(by_provider) >= 10
    assert result.usd_per_gpu_hour == median(median(own) for own in by_provider.values())
    assert Decimal(3) < result.usd_per_gpu_hour < Decimal(4)


def test_a_price_is_stale_after_90_days() -> None:
    price = median_on_demand("H100-SXM5-80GB")
    assert price is not None
    assert price.as_of == "2026-11-09"
    first_stale_ms = to_ms(datetime(2027, 2, 8, tzinfo=UTC))
    assert age_days(price.as_of, date(2027, 2, 8)) == 91
    assert not is_stale_at(price, first_stale_ms - 1)
    assert is_stale_at(price, first_stale_ms)


def test_a_year_counts_from_its_first_day_so_that_no_price_looks_fresher_than_it_is() -> None:
    assert age_days("2026", date(2026, 11, 9)) == 312
    assert age_days("2026-11", date(2026, 11, 9)) == 8
