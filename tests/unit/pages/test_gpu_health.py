"""A card's state and events in words: what is wrong comes first, unknown stays unknown."""

import pytest

from api.pages.gpu_health import OLD_MS, alarms, event_lines, health_block
from api.words import EVENT, Mark
from core.readings import GpuHealth
from core.samples import GpuEvent

NOW = 1_791_158_400_000


def said(**facts: float | str) -> list[tuple[Mark, str]]:
    return [(one.mark, one.text) for one in health_block(GpuHealth("GPU-a", NOW, facts), NOW).said]


def lines(**facts: float | str) -> dict[str, tuple[str, str]]:
    block = health_block(GpuHealth("GPU-a", NOW, facts), NOW)
    return {line.name: (line.value, line.note) for line in block.lines}


def test_a_card_of_which_nobody_told_says_nothing() -> None:
    block = health_block(None, NOW)
    assert (block.asked_ms, block.said, block.lines) == (None, (), ())


def test_a_card_without_complaint_is_said_to_be_well() -> None:
    assert said(recovery_action="none", ecc_uncorrected_count=0.0, row_remap_pending=0.0) == [
        (Mark.GOOD, "Nothing wrong was reported.")
    ]


def test_an_old_state_is_said_to_be_old() -> None:
    health = GpuHealth("GPU-a", NOW, {})
    assert health_block(health, NOW + OLD_MS).said[0].mark is Mark.GOOD
    assert "how it was then" in health_block(health, NOW + OLD_MS + 1).said[0].text


@pytest.mark.parametrize(
    ("facts", "mark", "part"),
    [
        ({"recovery_action": "reset"}, Mark.BAD, "asks to reset the GPU"),
        ({"recovery_action": "code_9"}, Mark.BAD, "code_9"),
        ({"row_remap_failed": 1.0}, Mark.BAD, "have the card replaced"),
        ({"row_remap_pending": 1.0}, Mark.WARN, "waits to be remapped"),
        ({"retired_pages_pending": 1.0}, Mark.WARN, "waits to be retired"),
        ({"ecc_uncorrected_count": 1.0}, Mark.WARN, "1 uncorrected ECC error since"),
        ({"ecc_uncorrected_count": 2.0}, Mark.WARN, "2 uncorrected ECC errors since"),
        ({"pcie_link_width": 8.0, "pcie_link_max_width": 16.0}, Mark.WARN, "twice as long"),
        ({"pcie_link_width": 4.0, "pcie_link_max_width": 16.0}, Mark.WARN, "4 times as long"),
        ({"ecc_mode": "disabled"}, Mark.NOTE, "ECC is off"),
    ],
)
def test_each_complaint_has_its_sentence(facts: dict[str, float | str], mark: Mark, part: str) -> None:
    ((found, text),) = said(**facts)
    assert found is mark
    assert part in text


def test_the_worst_comes_first() -> None:
    marks = [
        mark
        for mark, _ in said(
            ecc_mode="disabled", ecc_uncorrected_count=1.0, row_remap_failed=1.0, recovery_action="reboot"
        )
    ]
    assert marks == [Mark.BAD, Mark.BAD, Mark.WARN, Mark.NOTE]


def test_what_a_card_does_not_tell_has_no_line() -> None:
    assert lines() == {}
    assert lines(ecc_corrected_count=0.0) == {
        "ECC errors": ("0 corrected, – uncorrected", "since the driver was loaded")
    }


def test_a_resting_link_is_no_complaint() -> None:
    facts = {
        "pcie_link_generation": 1.0,
        "pcie_link_max_generation": 5.0,
        "pcie_link_width": 16.0,
        "pcie_link_max_width": 16.0,
    }
    assert said(**facts)[0][0] is Mark.GOOD
    assert lines(**facts)["PCIe link"][1] == "an idle card rests at a lower generation"


def test_the_limit_in_force_is_told_with_what_can_be_set() -> None:
    known = {"power_limit_default_w": 700.0, "power_limit_min_w": 200.0, "power_limit_max_w": 700.0}
    assert lines(power_limit_w=550.0, **known)["Power limit"] == (
        "550\xa0W",
        "700\xa0W by default, 200 to 700\xa0W can be set",
    )
    assert lines(**known)["Power limit"][0] == "–", "a default is not the limit in force"


def event(at: int, kind: str, message: str = "It happened.", code: int | None = None) -> GpuEvent:
    return GpuEvent("GPU-a", NOW + at, kind, message, code)


def test_events_come_newest_first_and_repeats_are_one_line() -> None:
    found = event_lines([event(1, "xid", code=79), event(2, "xid", code=79), event(3, "found")])
    assert [(line.word.name, line.count, line.first_ms - NOW, line.ts_ms - NOW) for line in found] == [
        ("back", 1, 3, 3),
        ("driver error (XID)", 2, 1, 2),
    ]


def test_an_xid_of_an_application_is_less_than_one_of_the_card() -> None:
    card, application = event_lines([event(2, "xid", "a", 79), event(1, "xid", "b", 31)])
    assert (card.mark, application.mark) == (Mark.BAD, Mark.NOTE)


def test_every_documented_kind_has_a_word_and_others_their_own() -> None:
    documented = (GpuEvent.__doc__ or "").partition("kind:")[2].partition("message:")[0]
    kinds = set(documented.split("``")[1::2])
    assert len(kinds) > 10
    assert kinds <= set(EVENT)
    (line,) = event_lines([event(1, "new_kind")])
    assert (line.mark, line.word.name) == (Mark.NOTE, "new kind")


def test_only_what_asks_for_hands_is_an_alarm() -> None:
    well = health_block(None, NOW)
    sick = health_block(GpuHealth("GPU-a", NOW, {"row_remap_failed": 1.0, "row_remap_pending": 1.0}), NOW)
    assert [one.text for one in alarms(sick, [event(1, "xid")])] == [sick.said[0].text]
    stuck = [event(1, "found"), event(3, "stuck", "It hangs."), event(2, "lost")]
    assert [one.text for one in alarms(well, stuck)] == ["It hangs."]
    assert alarms(well, [*stuck, event(4, "found")]) == ()
