"""Which price is in force: the user's most specific row, else the catalogue's, else none."""

from dataclasses import replace
from decimal import Decimal

import pytest

from core.evidence import Price
from ledger.prices import PriceRow, catalogue_price, price_at

DAY_MS = 86_400_000
SEPTEMBER_MS = 1_788_220_800_000  # 2026-09-01T00:00:00Z
ROW = PriceRow(
    id=1,
    scope_kind="all",
    scope_value="",
    usd_per_gpu_hour=Decimal("2.50"),
    billing="reserved",
    gpus_per_unit=8,
    valid_from_ms=SEPTEMBER_MS,
)


def _price(
    *rows: PriceRow, at_ms: int = SEPTEMBER_MS + DAY_MS, gpu_key: str | None = "H100-SXM5-80GB"
) -> Price | None:
    return price_at(
        rows,
        gpu_uuid="GPU-1",
        host="node-1",
        model="NVIDIA H100 80GB HBM3",
        gpu_key=gpu_key,
        at_ms=at_ms,
    )


def _scoped(kind: str, value: str, usd: str) -> PriceRow:
    return replace(ROW, scope_kind=kind, scope_value=value, usd_per_gpu_hour=Decimal(usd))


def test_a_users_price_says_whose_it_is_and_of_when() -> None:
    price = _price(ROW)
    assert price == Price(
        usd_per_gpu_hour=Decimal("2.50"),
        basis="your price of 2026-09-01",
        billing="reserved",
        gpus_per_unit=8,
        as_of="2026-09-01",
        from_user=True,
    )


def test_the_most_specific_row_wins() -> None:
    rows = [
        ROW,
        _scoped("model", "nvidia h100 80gb hbm3", "3"),
        _scoped("host", "node-1", "4"),
        _scoped("gpu_uuid", "GPU-1", "5"),
    ]
    for count, usd in ((1, "2.50"), (2, "3"), (3, "4"), (4, "5")):
        price = _price(*reversed(rows[:count]))
        assert price is not None
        assert price.usd_per_gpu_hour == Decimal(usd)
    named = _price(rows[2])
    assert named is not None
    assert named.basis == "your price for node-1 of 2026-09-01"


def test_a_model_may_be_named_by_our_key() -> None:
    price = _price(_scoped("model", "h100-sxm5-80gb", "3"))
    assert price is not None
    assert price.from_user


def test_rows_for_others_do_not_apply() -> None:
    rows = [_scoped("gpu_uuid", "GPU-2", "9"), _scoped("host", "node-2", "9"), _scoped("model", "L4", "9")]
    price = _price(*rows)
    assert price is not None
    assert not price.from_user


def test_a_row_is_in_force_from_its_start_to_before_its_end() -> None:
    row = replace(ROW, valid_to_ms=SEPTEMBER_MS + DAY_MS)
    for at_ms, from_user in (
        (SEPTEMBER_MS - 1, False),
        (SEPTEMBER_MS, True),
        (SEPTEMBER_MS + DAY_MS - 1, True),
        (SEPTEMBER_MS + DAY_MS, False),
    ):
        price = _price(row, at_ms=at_ms)
        assert price is not None
        assert price.from_user is from_user


def test_of_equal_rows_the_later_in_force_wins_then_the_later_entered() -> None:
    older = replace(ROW, id=9, usd_per_gpu_hour=Decimal(1), valid_from_ms=SEPTEMBER_MS - DAY_MS)
    newer = replace(ROW, id=2, usd_per_gpu_hour=Decimal(2))
    corrected = replace(ROW, id=3, usd_per_gpu_hour=Decimal(3))
    first, second = _price(newer, older), _price(corrected, newer)
    assert first is not None
    assert second is not None
    assert (first.usd_per_gpu_hour, second.usd_per_gpu_hour) == (2, 3)


@pytest.mark.parametrize(("on_host", "unit"), [(4, 4), (1, 1), (None, 8)])
def test_a_row_that_names_no_unit_is_released_with_the_host(on_host: int | None, unit: int) -> None:
    price = price_at(
        [replace(ROW, gpus_per_unit=None)],
        gpu_uuid="GPU-1",
        host="node-1",
        model=None,
        gpu_key=None,
        at_ms=SEPTEMBER_MS,
        host_gpu_count=on_host,
    )
    assert price is not None
    assert price.gpus_per_unit == unit


def test_a_price_of_nothing_is_a_price() -> None:
    price = _price(replace(ROW, usd_per_gpu_hour=Decimal(0), billing="owned"))
    assert price is not None
    assert price.usd_per_gpu_hour == 0


def test_without_a_row_the_catalogue_answers_with_its_basis() -> None:
    price = _price()
    assert price is not None
    assert price == catalogue_price("H100-SXM5-80GB")
    assert price.basis.startswith("catalogue: median on-demand of H100-SXM5-80GB, ")
    assert (price.billing, price.from_user) == ("on_demand", False)


def test_a_card_that_nobody_knows_has_no_price() -> None:
    assert _price(gpu_key=None) is None
    assert _price(gpu_key="GB10") is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scope_kind": "rack"}, "use one of gpu_uuid, host, model, all"),
        ({"scope_kind": "host"}, "name what it is for"),
        ({"scope_value": "node-1"}, "name what it is for"),
        ({"billing": "free"}, "use one of on_demand"),
        ({"usd_per_gpu_hour": Decimal(-1)}, "give 0 or more"),
        ({"usd_per_gpu_hour": Decimal("NaN")}, "give 0 or more"),
        ({"gpus_per_unit": 0}, "give 1 or more"),
        ({"valid_to_ms": SEPTEMBER_MS}, "ends before it starts"),
    ],
)
def test_a_row_that_cannot_be_applied_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(ROW, **change)
