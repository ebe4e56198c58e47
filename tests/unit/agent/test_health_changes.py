"""What becomes an event when the state of a card changes, and what does not."""

from agent import xids
from agent.health import changes

HEALTHY = {
    "ecc_uncorrected_count": 0.0,
    "row_remap_uncorrected_count": 0.0,
    "row_remap_pending": 0.0,
    "recovery_action": "none",
    "compute_mode": "default",
    "pcie_link_generation": 5.0,
    "pcie_link_width": 16.0,
}


def test_a_healthy_card_says_nothing_the_first_time_or_later() -> None:
    assert list(changes(None, HEALTHY)) == []
    assert list(changes(HEALTHY, HEALTHY)) == []


def test_the_link_of_an_idle_card_may_slow_down() -> None:
    assert list(changes(HEALTHY, HEALTHY | {"pcie_link_generation": 1.0})) == []


def test_errors_that_grow_are_told_with_their_count() -> None:
    (kind, message), *rest = changes(HEALTHY, HEALTHY | {"ecc_uncorrected_count": 3.0})
    assert (kind, rest) == ("ecc", [])
    assert "3" in message


def test_a_count_that_a_driver_reload_zeroed_is_no_news() -> None:
    assert list(changes(HEALTHY | {"ecc_uncorrected_count": 3.0}, HEALTHY)) == []


def test_what_is_wrong_at_the_first_look_is_told() -> None:
    wrong = HEALTHY | {
        "row_remap_pending": 1.0,
        "recovery_action": "reset",
        "row_remap_uncorrected_count": 2.0,
    }
    assert [kind for kind, _message in changes(None, wrong)] == ["row_remap", "row_remap", "recovery_action"]


def test_a_mode_that_changes_is_told_with_both_values() -> None:
    ((kind, message),) = changes(HEALTHY, HEALTHY | {"compute_mode": "exclusive_process"})
    assert kind == "mode"
    assert "default" in message
    assert "exclusive_process" in message


def test_what_is_not_known_is_no_change() -> None:
    assert list(changes(HEALTHY, {})) == []
    assert list(changes({}, HEALTHY)) == []


def test_an_xid_is_explained_and_its_usual_cause_named() -> None:
    assert xids.message(79) == "XID 79: GPU has fallen off the bus."
    assert "application" in xids.message(31)
    assert xids.message(777) == "XID 777."
    assert "without a number" in xids.message(999)
