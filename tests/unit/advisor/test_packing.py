"""Packing keeps its promises on any fleet, and MIG slices hold what they are given."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.estimators.mig_slices import Demand, slice_for, slices_for
from advisor.estimators.packing import Caps, Plan, Tenant, correlation, pack
from catalog import gpu_specs, mig_profiles
from core.units import GIB

FLAT = (0.1,) * 168
DAY = tuple(0.6 if 8 <= hour % 24 < 18 else 0.05 for hour in range(168))
NIGHT = tuple(0.05 if 8 <= hour % 24 < 18 else 0.6 for hour in range(168))


def tenant(card: str, gib: float = 20, week: tuple[float, ...] = FLAT, **more: object) -> Tenant:
    fields: dict[str, object] = {"host": "node-1", "kind": "H100", "apart": None, **more}
    return Tenant(card, card_bytes=80 * GIB, memory_bytes=gib * GIB, week=week, **fields)  # type: ignore[arg-type]


def packed(*tenants: Tenant, caps: Caps | None = None) -> Plan:
    plan = pack(tenants, caps)
    assert plan is not None
    return plan


def test_three_small_tenants_share_one_card_and_free_two() -> None:
    plan = packed(tenant("a"), tenant("b"), tenant("c"))
    assert plan.freed == {"b": "a", "c": "a"}
    assert [each.card for each in plan.shared[0].tenants] == ["a", "b", "c"]


def test_nothing_to_pack_is_none() -> None:
    assert pack([]) is None
    assert pack([tenant("a")]) is None
    assert pack([tenant("a", 50), tenant("b", 50)]) is None


def test_memory_stays_below_85_percent() -> None:
    assert pack([tenant("a", 34), tenant("b", 34)]) is None  # 68 of 80 is 0.85: not below
    assert packed(tenant("a", 34), tenant("b", 33.9)).freed == {"b": "a"}


def test_peaks_that_come_together_stay_apart_and_others_share() -> None:
    assert pack([tenant("a", week=DAY), tenant("b", week=DAY)]) is None
    assert packed(tenant("a", week=DAY), tenant("b", week=NIGHT)).freed == {"b": "a"}


def test_cards_of_another_model_are_no_place_to_go() -> None:
    assert pack([tenant("a"), tenant("b", kind="A100")]) is None


def test_replicas_of_one_model_share_neither_card_nor_host() -> None:
    assert pack([tenant("a", apart="m"), tenant("b", apart="m")]) is None
    there = tenant("c", 10, host="node-2", apart="m")
    assert pack([tenant("a", 40, apart="m"), there]) is None
    plan = packed(tenant("a", 40, apart="m"), tenant("x", 30, host="node-2", apart="n"), there)
    assert plan.freed == {"c": "x"}, "on its own host, where the other replica is not"


def test_its_own_host_comes_first() -> None:
    far, near = tenant("far", 40, host="node-2"), tenant("near", 30)
    assert packed(far, near, tenant("small", 10), caps=Caps(memory_ratio=0.7)).freed["small"] == "near"


def test_bad_weeks_and_doubles_are_refused() -> None:
    with pytest.raises(ValueError, match="168"):
        pack([tenant("a", week=(0.1,)), tenant("b")])
    with pytest.raises(ValueError, match="two tenants"):
        pack([tenant("a"), tenant("a")])


def test_correlation_is_that_of_the_week() -> None:
    assert correlation(DAY, DAY) == pytest.approx(1.0)
    assert correlation(DAY, NIGHT) < -0.9
    assert correlation(DAY, FLAT) == 1.0


weeks = st.one_of(st.floats(0, 0.6).map(lambda level: (level,) * 168), st.sampled_from([FLAT, DAY, NIGHT]))
tenants = st.lists(
    st.tuples(
        st.floats(1, 79),
        weeks,
        st.sampled_from(["node-1", "node-2", "node-3"]),
        st.sampled_from([None, "m", "n"]),
    ),
    max_size=25,
).map(
    lambda rows: [
        tenant(f"card-{at:02d}", gib, week, host=host, apart=apart)
        for at, (gib, week, host, apart) in enumerate(rows)
    ]
)


@settings(max_examples=150, deadline=None)
@given(tenants)
def test_no_plan_breaks_a_promise(all_tenants: list[Tenant]) -> None:
    plan = pack(all_tenants)
    if plan is None:
        return
    home = {each.card: each for each in all_tenants}
    placed = [each.card for stay in plan.shared for each in stay.tenants]
    assert len(placed) == len(set(placed))
    assert set(plan.freed) == {card for stay in plan.shared for card in (t.card for t in stay.tenants[1:])}
    assert not set(plan.freed) & set(plan.freed.values()), "a freed card is nobody's new home"
    for stay in plan.shared:
        assert sum(each.memory_bytes for each in stay.tenants) < 0.85 * 80 * GIB
        assert (
            max(sum(hour) for hour in zip(*(each.week for each in stay.tenants), strict=True)) <= 0.7 + 1e-9
        )
        ties = [each.apart for each in stay.tenants if each.apart is not None]
        assert len(ties) == len(set(ties))
        for moved in stay.tenants[1:]:
            if moved.apart is None or moved.host == stay.tenants[0].host:
                continue
            now = [
                each
                for each in all_tenants
                if each.apart == moved.apart
                and home[plan.freed.get(each.card, each.card)].host == stay.tenants[0].host
            ]
            assert now == [moved]


@settings(max_examples=60, deadline=None)
@given(tenants)
def test_stricter_caps_free_no_card_that_breaks_looser_ones(all_tenants: list[Tenant]) -> None:
    strict = pack(all_tenants, Caps(memory_ratio=0.7, activity_ratio=0.5))
    for stay in () if strict is None else strict.shared:
        assert stay.memory_bytes < 0.7 * 80 * GIB
        assert max(stay.week) <= 0.5 + 1e-9


@pytest.mark.parametrize("row", mig_profiles.profiles(), ids=lambda row: f"{row.gpu_key}-{row.profile}")
def test_profiles_belong_to_cards_that_can_be_split_and_fit_them(row: mig_profiles.MigProfile) -> None:
    spec, card = gpu_specs.by_key(row.gpu_key), mig_profiles.of_card(row.gpu_key)
    assert spec is not None
    assert card is not None
    assert spec.mig_max_instances == card.compute_slices
    assert row.profile.startswith(f"{row.compute_slices}g.")
    assert row.max_instances * row.compute_slices <= card.compute_slices
    assert row.max_instances * row.memory_slices <= card.memory_slices
    assert row.usable_bytes <= spec.memory_bytes


def test_the_slices_of_a_real_h100_fit_their_profiles() -> None:
    """3g.40gb, 2g.20gb and two 1g.10gb on one card show 40,448, 20,096 and 9,984 MiB (a public nvidia-smi capture)."""
    card = mig_profiles.of_card("H100-SXM5-80GB")
    assert card is not None
    shown = {"3g.40gb": 40_448, "2g.20gb": 20_096, "1g.10gb": 9_984}
    for profile in card.profiles:
        if profile.profile in shown:
            assert profile.usable_bytes <= shown[profile.profile] * (1 << 20)
    asked = [Demand(34 * GIB, 0.4), Demand(15 * GIB, 0.28), Demand(8 * GIB, 0.1), Demand(8 * GIB, 0.14)]
    chosen = slices_for(card, asked)
    assert chosen is not None
    assert [each.profile for each in chosen] == ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]


def test_what_does_not_fit_a_slice_or_together_is_none() -> None:
    card = mig_profiles.of_card("H100-SXM5-80GB")
    assert card is not None
    assert slice_for(card, Demand(60 * GIB, 0.1)) is None
    assert slice_for(card, Demand(1 * GIB, 0.9)) is None
    assert slices_for(card, [Demand(35 * GIB, 0.1)] * 3) is None
    assert slices_for(card, []) is None


def test_cards_without_profiles_have_none() -> None:
    assert mig_profiles.of_card("L40S") is None
    assert mig_profiles.of_card(None) is None
