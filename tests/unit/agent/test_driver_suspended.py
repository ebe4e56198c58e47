"""Sleeping cards are known without a driver call, by their place in PCI order."""

from pathlib import Path

import pytest

from agent.driver.suspended import Suspended


def card(
    root: Path,
    name: str,
    *,
    status: str = "active",
    control: str = "auto",
    vendor: str = "0x10de",
    kind: str = "0x030200",
    driver: str = "nvidia",
) -> Path:
    folder = root / name
    (folder / "power").mkdir(parents=True)
    for file, text in (
        ("vendor", vendor),
        ("class", kind),
        ("power/control", control),
        ("power/runtime_status", status),
    ):
        (folder / file).write_text(f"{text}\n")
    if driver:
        (folder / "driver").symlink_to(root / "drivers" / driver)
    return folder


def test_a_sleeping_card_is_told_by_its_place_among_those_the_driver_holds(tmp_path: Path) -> None:
    card(tmp_path, "0000:00:02.0", vendor="0x8086", status="suspended")
    card(tmp_path, "0000:01:00.1", kind="0x040300", status="suspended")  # its sound device
    card(tmp_path, "0000:01:00.0", status="suspended", kind="0x030000")
    card(tmp_path, "0000:02:00.0", status="suspended", driver="vfio-pci")
    card(tmp_path, "0000:0c:00.0", status="active")
    card(tmp_path, "10000:01:00.0", status="suspending")
    card(tmp_path, "0001:01:00.0", status="suspended", control="on")
    assert Suspended(str(tmp_path)).indices() == {0, 3}


@pytest.mark.parametrize(
    ("status", "asleep"),
    [
        ("active", False),
        ("suspended", True),
        ("suspending", True),
        ("resuming", True),
        ("unsupported", False),
        ("error", False),
    ],
)
def test_only_a_card_that_can_wake_is_left_alone(status: str, asleep: bool, tmp_path: Path) -> None:
    folder = card(tmp_path, "0000:01:00.0")
    sleepers = Suspended(str(tmp_path))
    assert sleepers.indices() == frozenset()
    (folder / "power/runtime_status").write_text(status)
    assert sleepers.indices() == ({0} if asleep else frozenset())


def test_a_card_that_comes_or_is_set_to_sleep_is_seen_at_the_next_look_round(tmp_path: Path) -> None:
    folder = card(tmp_path, "0000:02:00.0", status="suspended", control="on")
    sleepers = Suspended(str(tmp_path))
    assert sleepers.indices() == frozenset()
    (folder / "power/control").write_text("auto")
    card(tmp_path, "0000:01:00.0")
    sleepers.rescan()
    assert sleepers.indices() == {1}


def test_a_machine_without_such_a_folder_sleeps_nowhere(tmp_path: Path) -> None:
    assert Suspended(str(tmp_path / "none")).indices() == frozenset()
