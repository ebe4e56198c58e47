"""By which method a GPU is shared out among those who held it together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_samples import H0, SPAN, bare_sample, gpu_sample, workload

from core.activity import Activity
from core.hours import UsageHour
from core.readings import GpuIdentity
from core.samples import GpuSample
from core.sharing import SHARED_BY, ShareMethod
from store.fold_hours import fold_gpu_hour
from store.fold_usage import fold_usage_hour
from store.mig_slices import SliceOfCard, slices_of_cards
from store.usage_shares import Holder, SliceHolders

Holders = dict[int, list[Holder]]


def holder(key: str, memory: float | None = None, busy: float | None = None) -> Holder:
    return Holder(workload(key), memory, busy_ratio=busy)


def split(
    present: list[Holder],
    method: ShareMethod,
    slices: list[tuple[float, list[Holder]]] | None = None,
    sample: GpuSample | None = None,
) -> dict[str | None, tuple[float, float, str]]:
    """Allocated and active seconds and the method by workload, over one sample of ten seconds."""
    rows = fold_usage_hour(
        "GPU-a",
        H0,
        [sample or gpu_sample(0)],
        {H0: present} if present else {},
        method=method,
        slices=[SliceHolders(share, {H0: inside} if inside else {}) for share, inside in slices or []],
    )
    return {
        None if row.workload is None else row.workload.key: (row.allocated_s, row.active_s, row.share_method)
        for row in rows
    }


A, B, C = holder("a", 3e9, 0.2), holder("b", 1e9, 0.6), holder("c", None, None)


@pytest.mark.parametrize(
    ("method", "of_a", "named"),
    [
        (ShareMethod.MEMORY_TIME, 7.5, "memory_time"),
        (ShareMethod.SM_TIME, 2.5, "sm_time"),
        (ShareMethod.EVEN, 5.0, "even"),
        (ShareMethod.MIG_SLICE, 7.5, "memory_time"),
    ],
)
def test_each_method_shares_by_its_own_figure(method: ShareMethod, of_a: float, named: str) -> None:
    assert split([A, B], method) == {"a": (of_a, of_a, named), "b": (10 - of_a, 10 - of_a, named)}


@pytest.mark.parametrize("method", [ShareMethod.MEMORY_TIME, ShareMethod.SM_TIME])
def test_where_a_figure_is_missing_it_is_even_and_says_so(method: ShareMethod) -> None:
    assert split([A, C], method) == {"a": (5.0, 5.0, "even"), "c": (5.0, 5.0, "even")}
    nothing = [holder("a", 0.0, 0.0), holder("b", 0.0, 0.0)]
    assert split(nothing, method) == {"a": (5.0, 5.0, "even"), "b": (5.0, 5.0, "even")}


@pytest.mark.parametrize("method", SHARED_BY)
def test_who_is_alone_has_the_whole(method: ShareMethod) -> None:
    assert split([C], method) == {"c": (10.0, 10.0, "whole")}


def test_a_card_in_slices_is_shared_by_their_compute_and_unused_ones_are_idle() -> None:
    cut = [(3 / 7, [A]), (2 / 7, [B]), (1 / 7, []), (1 / 7, [])]
    assert split([A, B], ShareMethod.MIG_SLICE, cut) == {
        "a": (4.286, 4.286, "mig_slice"),
        "b": (2.857, 2.857, "mig_slice"),
        None: (2.857, 0.0, "mig_slice"),
    }


def test_who_shares_a_slice_has_it_by_memory_else_evenly() -> None:
    assert split([A, B], ShareMethod.MIG_SLICE, [(0.5, [A, B])]) == {
        "a": (3.75, 3.75, "mig_slice"),
        "b": (1.25, 1.25, "mig_slice"),
        None: (5.0, 0.0, "mig_slice"),
    }
    assert split([A, C], ShareMethod.MIG_SLICE, [(0.5, [A, C])])["a"] == (2.5, 2.5, "mig_slice")


def test_slices_tell_where_the_card_lists_nobody() -> None:
    assert split([], ShareMethod.MIG_SLICE, [(0.5, [A]), (0.5, [])]) == {
        "a": (5.0, 5.0, "mig_slice"),
        None: (5.0, 0.0, "mig_slice"),
    }
    assert split([], ShareMethod.MIG_SLICE, [(0.5, [])]) == {None: (10.0, 10.0, "whole")}


@pytest.mark.parametrize("cut", [[(0.5, [A])], [(0.5, []), (0.5, [])], [(0.8, [A]), (0.8, [B])]])
def test_a_card_is_shared_by_memory_where_slices_do_not_explain_it(cut: list[tuple[float, Any]]) -> None:
    assert split([A, B], ShareMethod.MIG_SLICE, cut)["a"] == (7.5, 7.5, "memory_time")


def test_memory_of_the_card_is_nobodys_where_nobody_is_known() -> None:
    sample = gpu_sample(0, memory_used_bytes=4e9)
    (row,) = fold_usage_hour(
        "GPU-a", H0, [sample], {}, method=ShareMethod.MIG_SLICE, slices=[SliceHolders(0.5, {})]
    )
    assert row.memory_byte_s is None


@st.composite
def hours(draw: st.DrawFn) -> tuple[list[GpuSample], Holders, list[SliceHolders]]:
    samples: list[GpuSample] = []
    by_card: Holders = {}
    cut = draw(st.lists(st.sampled_from([1 / 7, 2 / 7, 3 / 7]), max_size=4))
    by_slice: list[Holders] = [{} for _ in cut]
    figures = st.none() | st.floats(0, 1e12, allow_nan=False)
    for slot in range(draw(st.integers(1, 8))):
        values = draw(st.dictionaries(st.just("energy_j"), st.floats(0, 1e5), max_size=1))
        activity = draw(st.sampled_from(Activity))
        sample = bare_sample(slot, activity, covered_ms=draw(st.integers(0, SPAN)), **values)
        samples.append(sample)
        keys = draw(st.lists(st.sampled_from("abcde"), unique=True, max_size=5))
        present = [holder(key, draw(figures), draw(figures)) for key in keys]
        by_card[sample.ts_ms] = present
        for one in present:
            if cut and draw(st.booleans()):
                by_slice[draw(st.integers(0, len(cut) - 1))].setdefault(sample.ts_ms, []).append(one)
    return samples, by_card, [SliceHolders(s, of) for s, of in zip(cut, by_slice, strict=True)]


@given(hours(), st.sampled_from(SHARED_BY))
def test_the_rows_of_an_hour_sum_to_it_by_every_method(
    case: tuple[list[GpuSample], Holders, list[SliceHolders]], method: ShareMethod
) -> None:
    samples, holders, slices = case
    hour = fold_gpu_hour("GPU-a", H0, samples)
    assert hour is not None
    if method is not ShareMethod.MIG_SLICE:
        slices = []
    rows = fold_usage_hour("GPU-a", H0, samples, holders, method=method, slices=slices)
    assert sum(_ms(row.allocated_s) for row in rows) == _ms(hour.covered_s)
    assert sum(row.energy_j or 0.0 for row in rows) == pytest.approx(hour.energy_j or 0.0, abs=1e-6)
    active = sum(_ms(row.active_s) for row in rows)
    unused = any(row.workload is None and row.share_method == ShareMethod.MIG_SLICE for row in rows)
    assert active <= _ms(hour.active_s) if unused else active == _ms(hour.active_s)
    assert _methods(rows) <= {ShareMethod.WHOLE, ShareMethod.EVEN, ShareMethod.MEMORY_TIME, method}
    if not slices:
        assert ShareMethod.MIG_SLICE not in _methods(rows)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _methods(rows: list[UsageHour]) -> set[str]:
    return {row.share_method for row in rows}


A100 = "NVIDIA A100-SXM4-80GB"
CARD = GpuIdentity("GPU-1", "h1", 0, A100, 80 << 30)


@pytest.mark.parametrize(
    ("model", "share"),
    [
        (f"{A100} MIG 1g.10gb", 1 / 7),
        (f"{A100} MIG 3g.40gb", 3 / 7),
        (f"{A100} MIG 1c.3g.40gb", 1 / 7),
        (f"{A100} MIG 7g.80gb", 1.0),
        (f"{A100} MIG 1g.10gb+me", 1 / 7),
    ],
)
def test_a_slice_has_the_share_its_profile_names(model: str, share: float) -> None:
    part = GpuIdentity("MIG-1", "h1", 0, model, 10 << 30)
    assert slices_of_cards([CARD, part]) == {"MIG-1": SliceOfCard("GPU-1", share)}


def test_a_slice_of_dcgm_names_its_card() -> None:
    part = GpuIdentity("MIG-GPU-1/3/0", "other name", None, f"{A100} MIG 2g.20gb")
    assert slices_of_cards([CARD, part]) == {"MIG-GPU-1/3/0": SliceOfCard("GPU-1", 2 / 7)}


@pytest.mark.parametrize(
    "part",
    [
        GpuIdentity("MIG-1", "h2", 0, f"{A100} MIG 1g.10gb"),
        GpuIdentity("MIG-1", "h1", 1, f"{A100} MIG 1g.10gb"),
        GpuIdentity("MIG-1", "h1", 0, A100),
        GpuIdentity("MIG-1", "h1", 0, None),
        GpuIdentity("MIG-1", "h1", 0, f"{A100} MIG 8g.80gb"),
    ],
)
def test_a_slice_of_no_known_card_or_profile_is_left_out(part: GpuIdentity) -> None:
    assert slices_of_cards([CARD, part]) == {}


def test_a_card_that_nobody_looked_up_has_no_slices() -> None:
    card = GpuIdentity("GPU-1", "h1", 0, "Card Of Nobody", 80 << 30)
    assert slices_of_cards([card, GpuIdentity("MIG-1", "h1", 0, "Card Of Nobody MIG 1g.10gb")]) == {}
