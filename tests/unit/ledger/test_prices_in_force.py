"""Which price is in force: the user's most specific row, else the catalogue's, else none."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.gpu_prices import stale_from_ms
from core.evidence import Price
from core.ownership import HostFacts
from core.readings import GpuIdentity
from core.user_price import ExchangeRate, Scope, UserPrice
from ledger.exchange import Exchange
from ledger.price_lookup import PriceLookup
from ledger.prices import PriceBook, PricedGpu, Unpriced, catalogue_price

DAY_MS = 86_400_000
SEPTEMBER_MS = 1_788_220_800_000  # 2026-09-01T00:00:00Z
H100 = "NVIDIA H100 80GB HBM3"
ROW = UserPrice(
    id=1,
    scope_kind="all",
    scope_value="",
    amount_per_gpu_hour=Decimal("2.50"),
    billing="reserved",
    gpus_per_unit=8,
    valid_from_ms=SEPTEMBER_MS,
)
FACTS = HostFacts("node-1", "north", "p5.48xlarge", None, (("pool", "train"), ("team", "a")))
GPU = PricedGpu("GPU-1", "node-1", H100, "H100-SXM5-80GB", FACTS)
VALUES = {
    Scope.GPU: "GPU-1",
    Scope.HOST: "node-1",
    Scope.LABEL: "pool=train",
    Scope.INSTANCE_TYPE: "P5.48XLARGE",
    Scope.CLUSTER: "north",
    Scope.MODEL: "nvidia h100 80gb hbm3",
    Scope.ALL: "",
}
"""What makes a row of each scope one for ``GPU``."""


def _answer(
    *rows: UserPrice,
    at_ms: int = SEPTEMBER_MS + DAY_MS,
    gpu: PricedGpu = GPU,
    rates: tuple[ExchangeRate, ...] = (),
) -> Price | Unpriced:
    return PriceBook(rows, Exchange(rates)).at(gpu, at_ms)


def _price(*rows: UserPrice, **how: object) -> Price:
    found = _answer(*rows, **how)  # type: ignore[arg-type]
    assert isinstance(found, Price)
    return found


def _scoped(scope: Scope, value: str, amount: str) -> UserPrice:
    return replace(ROW, scope_kind=scope.value, scope_value=value, amount_per_gpu_hour=Decimal(amount))


def test_a_users_price_says_whose_it_is_of_when_and_what_the_list_says() -> None:
    listed = catalogue_price("H100-SXM5-80GB", SEPTEMBER_MS)
    assert listed is not None
    assert _price(ROW) == Price(
        usd_per_gpu_hour=Decimal("2.50"),
        basis="your price of 2026-09-01",
        billing="reserved",
        gpus_per_unit=8,
        as_of="2026-09-01",
        from_user=True,
        price_id=1,
        list_usd_per_gpu_hour=listed.usd_per_gpu_hour,
    )


@given(st.permutations(list(Scope)), st.integers(1, len(Scope)))
def test_the_most_specific_row_wins_in_whatever_order_they_were_given(order: list[Scope], count: int) -> None:
    rows = [replace(_scoped(scope, VALUES[scope], "1"), id=at + 1) for at, scope in enumerate(order[:count])]
    best = min(order[:count], key=list(Scope).index)
    assert _price(*rows).price_id == order.index(best) + 1


def test_a_price_names_what_it_is_for() -> None:
    assert _price(_scoped(Scope.HOST, "node-1", "4")).basis == "your price for node-1 of 2026-09-01"


def test_a_model_may_be_named_by_our_key() -> None:
    assert _price(_scoped(Scope.MODEL, "h100-sxm5-80gb", "3")).from_user


@pytest.mark.parametrize("scope", [scope for scope in Scope if scope is not Scope.ALL])
def test_rows_for_others_do_not_apply(scope: Scope) -> None:
    other = _scoped(scope, "pool=serve" if scope is Scope.LABEL else "another", "9")
    assert not _price(other).from_user


def test_of_two_labels_the_later_in_force_wins() -> None:
    pool = _scoped(Scope.LABEL, "pool=train", "1")
    team = replace(_scoped(Scope.LABEL, "team=a", "2"), id=2, valid_from_ms=SEPTEMBER_MS + 1)
    assert _price(pool, team).price_id == _price(team, pool).price_id == 2


def test_a_row_is_in_force_from_its_start_to_before_its_end() -> None:
    row = replace(ROW, valid_to_ms=SEPTEMBER_MS + DAY_MS)
    for at_ms, from_user in (
        (SEPTEMBER_MS - 1, False),
        (SEPTEMBER_MS, True),
        (SEPTEMBER_MS + DAY_MS - 1, True),
        (SEPTEMBER_MS + DAY_MS, False),
    ):
        assert _price(row, at_ms=at_ms).from_user is from_user


def test_of_equal_rows_the_later_in_force_wins_then_the_later_entered() -> None:
    older = replace(ROW, id=9, valid_from_ms=SEPTEMBER_MS - DAY_MS)
    newer, corrected = replace(ROW, id=2), replace(ROW, id=3)
    assert (_price(newer, older).price_id, _price(corrected, newer).price_id) == (2, 3)


@pytest.mark.parametrize(("on_host", "unit"), [(4, 4), (1, 1), (None, 8)])
def test_a_row_that_names_no_unit_is_released_with_the_host(on_host: int | None, unit: int) -> None:
    gpu = replace(GPU, host_gpu_count=on_host)
    assert _price(replace(ROW, gpus_per_unit=None), gpu=gpu).gpus_per_unit == unit


def test_a_price_of_nothing_is_a_price() -> None:
    assert _price(replace(ROW, amount_per_gpu_hour=Decimal(0), billing="owned")).usd_per_gpu_hour == 0


def test_without_a_row_the_catalogue_answers_with_its_basis() -> None:
    price = _price()
    assert price == catalogue_price("H100-SXM5-80GB", SEPTEMBER_MS)
    assert price.basis.startswith("catalogue: median on-demand of H100-SXM5-80GB, ")
    assert (price.billing, price.from_user, price.price_id) == ("on_demand", False, None)
    assert price.list_usd_per_gpu_hour == price.usd_per_gpu_hour


def test_the_catalogues_basis_warns_of_hours_that_are_over_90_days_after_it() -> None:
    aged_ms = stale_from_ms("H100-SXM5-80GB")
    assert aged_ms is not None
    before, after = _price(at_ms=aged_ms - 1), _price(at_ms=aged_ms)
    assert "90 days" not in before.basis
    assert after.basis == f"{before.basis}, over 90 days old by then: give your own price"
    assert "90 days" not in _price(ROW, at_ms=aged_ms).basis


def test_a_card_that_nobody_knows_has_no_price_and_says_why() -> None:
    assert _answer(gpu=PricedGpu("GPU-1", model="Card X")) == Unpriced(
        "Card X is in no price list of ours: give your own price"
    )
    assert _answer(gpu=PricedGpu("GPU-1", gpu_key="GB10")) == Unpriced(
        "the catalogue lists no price of GB10: give your own price"
    )


EUR = replace(ROW, currency="EUR", amount_per_gpu_hour=Decimal("2.10"))
RATES = (
    ExchangeRate(1, "EUR", SEPTEMBER_MS, Decimal("1.08")),
    ExchangeRate(2, "EUR", SEPTEMBER_MS + 2 * DAY_MS, Decimal("1.1000001")),
)


def test_another_currency_is_worth_what_its_rate_then_says() -> None:
    first = _price(EUR, at_ms=SEPTEMBER_MS + 2 * DAY_MS - 1, rates=RATES)
    second = _price(EUR, at_ms=SEPTEMBER_MS + 2 * DAY_MS, rates=RATES)
    assert (first.usd_per_gpu_hour, second.usd_per_gpu_hour) == (Decimal("2.268"), Decimal("2.31"))
    assert first.basis == "your price of 2026-09-01, 2.1 EUR at 1.08 USD of 2026-09-01"


def test_without_a_rate_there_is_no_price_though_the_catalogue_has_one() -> None:
    early = replace(EUR, valid_from_ms=0)
    assert _answer(early, at_ms=SEPTEMBER_MS - 1, rates=RATES) == Unpriced(
        "price 1 (all) is in EUR, no exchange rate of EUR before 2026-09-01: add an earlier one"
    )
    assert isinstance(_answer(EUR), Unpriced)


MOMENTS = st.integers(0, 40).map(lambda day: SEPTEMBER_MS + day * DAY_MS // 2)


@st.composite
def _rows(draw: st.DrawFn) -> list[UserPrice]:
    rows = []
    for at in range(draw(st.integers(0, 6))):
        scope = draw(st.sampled_from(list(Scope)))
        mine = draw(st.booleans()) or scope is Scope.ALL
        start = draw(MOMENTS)
        row = UserPrice(
            id=at + 1,
            scope_kind=scope.value,
            scope_value=VALUES[scope] if mine else "other=one",
            amount_per_gpu_hour=Decimal(draw(st.integers(0, 9))),
            billing="on_demand",
            gpus_per_unit=1,
            valid_from_ms=start,
            valid_to_ms=draw(
                st.none() | st.integers(1, 20).map(lambda days, start=start: start + days * DAY_MS)
            ),
            currency=draw(st.sampled_from(["USD", "EUR"])),
        )
        rows.append(row)
    return rows


@given(
    _rows(), st.lists(st.integers(0, 200).map(lambda hours: SEPTEMBER_MS + hours * 13_000_000), min_size=2)
)
def test_the_price_never_changes_between_borders(rows: list[UserPrice], moments: list[int]) -> None:
    lookup = PriceLookup(rows, Exchange(RATES), facts={"node-1": FACTS})
    book = PriceBook(rows, Exchange(RATES))
    identity = GpuIdentity("GPU-1", "node-1", 0, H100)
    for start in moments:
        edges = [SEPTEMBER_MS - DAY_MS, *(edge for edge in lookup.borders if edge <= start)]
        same = lookup.answer(identity, "H100-SXM5-80GB", max(edges))
        assert lookup.answer(identity, "H100-SXM5-80GB", start) == same
        assert book.at(GPU, start) == same


def test_a_lookup_gives_slices_no_price_and_cards_of_one_kind_the_same_object() -> None:
    lookup = PriceLookup([replace(ROW, gpus_per_unit=None)], host_gpu_counts={"h1": 2, "h2": 2})
    first, second = (
        lookup(GpuIdentity(uuid, host, 0, H100), "H100-SXM5-80GB", SEPTEMBER_MS)
        for uuid, host in (("GPU-1", "h1"), ("GPU-2", "h2"))
    )
    assert first is second
    assert first is not None
    assert first.gpus_per_unit == 2
    assert lookup(GpuIdentity("MIG-1", "h1", 0, H100), "H100-SXM5-80GB", SEPTEMBER_MS) is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scope_kind": "rack"}, "use one of gpu_uuid, host, label"),
        ({"scope_kind": "host"}, "name what it is for"),
        ({"scope_value": "node-1"}, "name what it is for"),
        ({"scope_kind": "label", "scope_value": "pool"}, "give key=value"),
        ({"billing": "free"}, "use one of on_demand"),
        ({"amount_per_gpu_hour": Decimal(-1)}, "give 0 or more"),
        ({"amount_per_gpu_hour": Decimal("NaN")}, "give 0 or more"),
        ({"amount_per_gpu_hour": Decimal("Infinity")}, "give 0 or more"),
        ({"amount_per_gpu_hour": Decimal("0.0000001")}, "give 6 decimals at most"),
        ({"gpus_per_unit": 0}, "give 1 or more"),
        ({"valid_to_ms": SEPTEMBER_MS}, "ends before it starts"),
        ({"upfront": Decimal(1)}, "name the commitment"),
        ({"commitment": "c", "billing": "spot"}, "use reserved or committed"),
        ({"commitment": "c", "upfront": Decimal(1)}, "give committed_gpus and valid_to"),
        ({"commitment": "c", "committed_gpus": 0}, "give 1 or more"),
        ({"inputs": {"capex": 1.0}}, "only owned and spot"),
    ],
)
def test_a_row_that_cannot_be_applied_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(ROW, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"currency": "USD"}, "a dollar is a dollar"),
        ({"from_ms": 1}, "give a day"),
        ({"usd_per_unit": Decimal(0)}, "above 0"),
        ({"usd_per_unit": Decimal("NaN")}, "above 0"),
        ({"usd_per_unit": Decimal("1e-13")}, "12 decimals at most"),
    ],
)
def test_a_rate_that_cannot_be_applied_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(RATES[0], **change)  # type: ignore[arg-type]
