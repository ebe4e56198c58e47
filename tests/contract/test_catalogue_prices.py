"""The price list as shipped: every row is for exactly one card, or says why it is for none."""

import pytest

from catalog.gpu_prices import median_on_demand, prices, votes
from catalog.gpu_specs import by_key
from catalog.loader import first_day
from catalog.price_keys import GPU_KEYS, MARKET_OF, UNMAPPED
from core.units import GIB

OFFERS = sorted({(row.gpu_model, row.form_factor, row.memory_gb) for row in prices()})


@pytest.mark.parametrize("offer", OFFERS, ids=str)
def test_an_offer_is_for_one_card_or_is_listed_with_the_reason(offer: tuple[str, str, float]) -> None:
    assert (offer in GPU_KEYS) != (offer in UNMAPPED)


def test_the_lists_name_no_offer_that_is_not_there() -> None:
    assert {*GPU_KEYS, *UNMAPPED} == set(OFFERS)
    assert all(len(reason) > 20 for reason in UNMAPPED.values())


@pytest.mark.parametrize("offer", sorted(GPU_KEYS), ids=str)
def test_an_offers_card_exists_and_has_its_memory_and_form(offer: tuple[str, str, float]) -> None:
    model, form, memory_gb = offer
    spec = by_key(GPU_KEYS[offer])
    assert spec is not None
    assert memory_gb * GIB == pytest.approx(spec.memory_bytes, rel=0.1)
    assert spec.gpu_key.startswith(model.replace(" Blackwell", "").replace(" ", "-"))
    if form.startswith("SXM") and spec.form_factor != "Superchip":
        assert spec.form_factor.startswith("SXM")
    if form in {"PCIe", "NVLink"}:
        assert spec.form_factor.startswith("PCIe")


def test_a_card_without_a_market_borrows_the_price_of_one_that_has_one() -> None:
    for own, market in MARKET_OF.items():
        assert not votes(own)
        assert by_key(own) is not None
        assert median_on_demand(market) is not None


def test_every_price_has_a_date_a_source_and_a_plausible_amount() -> None:
    for row in prices():
        assert first_day(row.as_of).year >= 2025
        assert row.source
        for usd in (
            row.on_demand_usd_per_gpu_hour,
            row.spot_usd_per_gpu_hour,
            row.reserved_1y_usd_per_gpu_hour,
            row.reserved_3y_usd_per_gpu_hour,
        ):
            assert usd is None or 0.03 < usd < 40


def test_the_cheapest_offers_of_a_marketplace_and_bare_gpus_have_no_vote() -> None:
    for row in prices():
        if "cheapest" in row.notes or "GPU component only" in row.notes:
            assert row.not_comparable
    assert sum(row.not_comparable is not None for row in prices()) == 16


def test_the_list_has_the_202_rows_it_was_made_with() -> None:
    assert len(prices()) == 202
