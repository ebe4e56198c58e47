"""R33: refuses without prices by the hour; with them, what the jobs seen would have saved at other hours."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import SITE, evidence, found, gpu, gpu_hour, refused, use

from advisor.engine import advise
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence, Site
from core.finding import Grade

RULE = "shiftable-job"
DAYS = 14
NIGHT = tuple(0.10 if hour < 6 else 0.30 for hour in range(24))
HOURLY = replace(SITE, pays_for_power=True, pue=1.0, hourly_usd_per_kwh=NIGHT)


def evenings(
    start: int = 20, hours: int = 2, kind: str = "slurm_job", uuid: str = "GPU-a", **more: Any
) -> GpuEvidence:
    """A job of two hours every evening, 420 W above idle; empty else."""
    busy = {day * 24 + start + i for day in range(DAYS) for i in range(hours)}
    jobs = tuple(
        use(kind, f"{day}", name=f"job {day}", from_h=day * 24 + start, to_h=day * 24 + start + hours, **more)
        for day in range(DAYS)
    )
    card = gpu(
        [gpu_hour(i, Activity.BUSY if i in busy else Activity.EMPTY) for i in range(DAYS * 24)], uuid=uuid
    )
    return replace(card, uses=jobs)


def at(card: GpuEvidence, site: Site = HOURLY) -> Evidence:
    return evidence([card], site=site)


def test_evening_jobs_started_at_midnight_save_to_the_cent() -> None:
    (finding,) = found(advise(at(evenings())), RULE)
    cash = finding.saving.cash_usd_month
    assert cash is not None
    kwh = DAYS * 2 * 0.42
    assert cash.p50 == pytest.approx(kwh * 0.20 * 730 / (DAYS * 24))
    assert round(cash.p50, 2) == 5.11
    assert finding.saving.energy_kwh_month is None
    assert finding.saving.capacity_gpu_h_month is None
    assert finding.grade is Grade.C
    assert finding.evidence["start_hour_utc"] == 0
    assert finding.evidence["jobs"] == DAYS
    assert finding.evidence["moved_kwh"] == pytest.approx(kwh)
    assert any("sbatch --begin" in (action.command or "") for action in finding.actions)


def test_a_job_on_many_gpus_is_one_job() -> None:
    cards = [evenings(uuid=f"GPU-{i}") for i in range(4)]
    (finding,) = found(advise(evidence(cards, site=HOURLY)), RULE)
    assert finding.evidence["jobs"] == DAYS
    assert finding.evidence["moved_kwh"] == pytest.approx(DAYS * 2 * 0.42 * 4)
    assert len(finding.gpu_uuids) == 4


def test_no_prices_by_the_hour_are_refused_by_name() -> None:
    flat = replace(HOURLY, hourly_usd_per_kwh=None)
    (refusal,) = refused(advise(at(evenings(), flat)), RULE)
    assert refusal.missing == ("hourly_usd_per_kwh",)
    assert "no carbon by the hour" in refusal.why
    (nothing,) = refused(advise(at(evenings(), replace(flat, tariff_usd_per_kwh=None))), RULE)
    assert nothing.missing == ("tariff_usd_per_kwh", "hourly_usd_per_kwh")


def test_power_inside_the_price_is_refused() -> None:
    (refusal,) = refused(advise(at(evenings(), replace(HOURLY, pays_for_power=False))), RULE)
    assert refusal.missing == ("pays_for_power",)


def test_what_may_serve_somebody_is_not_deferrable() -> None:
    for kind in ("pod", "container", "process", "systemd_unit"):
        advice = advise(at(evenings(kind=kind)))
        assert not found(advice, RULE)
        assert refused(advice, RULE)[0].missing == ("batch jobs",)


def test_shared_gpus_and_jobs_of_a_day_are_left_out() -> None:
    for card in (evenings(shared=True), evenings(start=0, hours=24)):
        assert refused(advise(at(card)), RULE)[0].missing == ("batch jobs",)


def test_unknown_energy_or_idle_power_is_refused() -> None:
    card = evenings()
    blind = replace(card, hours=tuple(replace(hour, energy_j=None) for hour in card.hours))
    for unread in (blind, replace(card, bare_idle_w=None)):
        assert refused(advise(at(unread)), RULE)[0].missing == ("energy_j", "bare_idle_w")


def test_jobs_at_cheap_hours_already_or_at_flat_prices_save_nothing() -> None:
    flat = replace(HOURLY, hourly_usd_per_kwh=(0.2,) * 24)
    for evidence_ in (at(evenings(start=1)), at(evenings(), flat)):
        advice = advise(evidence_)
        assert not found(advice, RULE)
        assert refused(advice, RULE)[0].missing == ("a cheaper hour with room",)


def test_cheap_hours_without_room_save_nothing() -> None:
    card = evenings()
    full = tuple(gpu_hour(i) if i % 24 < 6 else hour for i, hour in enumerate(card.hours))
    advice = advise(at(replace(card, hours=full)))
    assert not found(advice, RULE)
    assert "no room" in refused(advice, RULE)[0].why


def test_a_few_jobs_or_gaps_are_refused() -> None:
    card = evenings()
    assert refused(advise(at(replace(card, uses=card.uses[:3]))), RULE)[0].missing == ("batch jobs",)
    holed = replace(card, hours=tuple(hour for i, hour in enumerate(card.hours) if i % 24 > 12))
    torn = replace(card, hours=tuple(hour for i, hour in enumerate(card.hours) if i % 24 != 21))
    assert refused(advise(at(torn)), RULE)[0].missing == ("energy_j", "bare_idle_w")
    assert refused(advise(at(holed)), RULE)[0].missing == ("samples",)


def test_a_site_has_a_price_for_each_of_24_hours_or_none() -> None:
    with pytest.raises(ValueError, match="23 prices"):
        replace(HOURLY, hourly_usd_per_kwh=NIGHT[:23])


def test_a_range_that_runs_down_to_a_short_wait_that_saves_nothing_is_no_claim() -> None:
    (finding,) = found(advise(at(evenings(start=9))), RULE)
    assert finding.saving.cash_usd_month is None
    assert "No cash figure, because it may save nothing: $0.00 to $" in (finding.no_figure or "")
