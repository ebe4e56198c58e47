"""R26: faults of the card are told with what to do, never with money; faults of programs are not."""

from typing import Any

import pytest
from advice_builders import evidence, found, refused
from hardware_builders import END_MS, card, claims_nothing, no_saving_cases
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine import advise
from advisor.rules.unhealthy_gpu import RULE
from core.evidence import GpuEvidence
from core.samples import GpuEvent
from core.units import DAY_MS, HOUR_MS

ID = RULE.id
CLEAN: dict[str, Any] = {"row_remap_pending": 0.0, "row_remap_failed": 0.0, "recovery_action": "none"}


def xid(code: int, hours_ago: float = 5.0) -> GpuEvent:
    return GpuEvent("GPU-a", END_MS - round(hours_ago * HOUR_MS), "xid", f"XID {code}.", code)


def ill(*events: GpuEvent, health_ms: int | None = END_MS, **health: Any) -> GpuEvidence:
    return card(events=events, health=CLEAN | health, health_ms=health_ms)


def run(gpu: GpuEvidence):
    return advise(evidence([gpu]), rules=(RULE,))


@pytest.mark.parametrize(
    ("code", "cause", "command"),
    [
        (79, "reboot", None),
        (48, "drain", "--gpu-reset"),
        (64, "drain", "--gpu-reset"),
        (95, "drain", "--gpu-reset"),
        (74, "link", "nvlink -e"),
    ],
)
def test_an_xid_of_the_card_is_told_with_its_remedy(code: int, cause: str, command: str | None) -> None:
    (finding,) = found(run(ill(xid(code))), ID)
    assert finding.cause == cause
    assert finding.saving.is_empty
    assert "about health" in (finding.no_figure or "")
    assert f"XID {code}" in finding.because
    if command is None:
        assert any("Reboot" in action.text for action in finding.actions)
    else:
        assert any(command in (action.command or "") for action in finding.actions)


@pytest.mark.parametrize("code", [13, 31, 43, 45])
def test_an_xid_of_the_application_is_not(code: int) -> None:
    advice = run(ill(xid(code)))
    assert not found(advice, ID)
    assert not refused(advice, ID)


def test_the_worst_sign_leads_and_all_are_told() -> None:
    (finding,) = found(run(ill(xid(74), xid(79), row_remap_pending=1.0)), ID)
    assert finding.cause == "reboot"
    assert finding.evidence["sign_count"] == 3
    assert "waits for a reset" in finding.because


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("row_remap_failed", 1.0, "drain"),
        ("row_remap_pending", 1.0, "reset"),
        ("retired_pages_pending", 1.0, "reset"),
        ("recovery_action", "reboot", "reboot"),
        ("recovery_action", "drain_and_reset", "drain"),
        ("recovery_action", "code_9", "drain"),
    ],
)
def test_facts_of_health_fire(name: str, value: float | str, cause: str) -> None:
    (finding,) = found(run(ill(**{name: value})), ID)
    assert finding.cause == cause


def test_a_remapping_that_a_reset_has_finished_is_silent() -> None:
    assert found(run(ill(xid(63), row_remap_pending=1.0)), ID)
    assert not found(run(ill(xid(63))), ID)


def test_a_contained_error_stands_until_health_is_asked_again() -> None:
    (finding,) = found(run(ill(xid(94, hours_ago=1), health_ms=END_MS - 2 * HOUR_MS)), ID)
    assert finding.cause == "reset"


def test_an_old_xid_is_history() -> None:
    assert not found(run(ill(xid(79, hours_ago=24 * 8))), ID)


def test_a_clean_card_is_silent() -> None:
    advice = run(ill())
    assert not found(advice, ID)
    assert not refused(advice, ID)


def test_health_that_was_never_asked_is_refused() -> None:
    (refusal,) = refused(run(card()), ID)
    assert "never asked" in refusal.why


def test_old_health_is_refused_and_never_believed() -> None:
    advice = run(ill(health_ms=END_MS - 2 * DAY_MS, row_remap_pending=1.0))
    assert not found(advice, ID)
    (refusal,) = refused(advice, ID)
    assert refusal.missing == ("recent health",)


@given(st.lists(st.integers(1, 160), max_size=6))
def test_no_fault_ever_carries_money(codes: list[int]) -> None:
    assert claims_nothing(found(run(ill(*(xid(code) for code in codes))), ID))


@pytest.mark.parametrize("name", no_saving_cases())
def test_nothing_is_claimed_where_nothing_can_be_saved(name: str) -> None:
    advice = advise(no_saving_cases()[name], rules=(RULE,))
    assert claims_nothing(found(advice, ID))
    assert name != "MIG without utilization" or refused(advice, ID)
