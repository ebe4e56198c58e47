"""The state of a card, asked every minute: errors in memory, its link, its modes and limits."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.driver.device import Device

CORRECTED, UNCORRECTED = 0, 1
VOLATILE, AGGREGATE = 0, 1
CAUSES = (0, 1)
"""Pages are retired for several corrected errors, or for an uncorrected one."""
RECOVERY_ACTION, REPLAYS = 230, 94
FIELDS = (RECOVERY_ACTION, REPLAYS)
SWITCH = ("disabled", "enabled")
COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")
ACTIONS = ("none", "reset", "reboot", "drain_p2p", "drain_and_reset")


def facts(device: Device) -> dict[str, float | str]:
    """Facts of ``core.readings.GpuHealth`` by name; absent is unknown. A MIG instance has none of its own.

    Modes are words, counts and limits numbers in base units, ``…_pending`` and ``row_remap_failed`` 0 or 1.

    Raises:
        GpuLost: the card stopped answering.
    """
    if device.is_mig:
        return {}
    told: dict[str, float | str | None] = {}
    _memory(device, told)
    _link(device, told)
    _modes(device, told)
    limit = device.call("nvmlDeviceGetPowerManagementLimit")
    told["power_limit_w"] = None if limit is None else limit / 1000
    limits = device.call("nvmlDeviceGetPowerManagementLimitConstraints")
    if limits is not None:
        told["power_limit_min_w"], told["power_limit_max_w"] = limits[0] / 1000, limits[1] / 1000
    default = device.call("nvmlDeviceGetPowerManagementDefaultLimit")
    told["power_limit_default_w"] = None if default is None else default / 1000
    return {name: value for name, value in told.items() if value is not None}


def _memory(device: Device, told: dict[str, float | str | None]) -> None:
    mode = device.call("nvmlDeviceGetEccMode")
    told["ecc_mode"] = None if mode is None else _word(SWITCH, mode[0])
    for name, kind, span in (
        ("ecc_corrected_count", CORRECTED, VOLATILE),
        ("ecc_uncorrected_count", UNCORRECTED, VOLATILE),
        ("ecc_aggregate_uncorrected_count", UNCORRECTED, AGGREGATE),
    ):
        told[name] = _number(device.call("nvmlDeviceGetTotalEccErrors", kind, span))
    rows = device.call("nvmlDeviceGetRemappedRows")
    if rows is not None:
        names = (
            "row_remap_corrected_count",
            "row_remap_uncorrected_count",
            "row_remap_pending",
            "row_remap_failed",
        )
        told.update(zip(names, map(float, rows[:4]), strict=True))
    pages = [device.call("nvmlDeviceGetRetiredPages", cause) for cause in CAUSES]
    told["retired_page_count"] = None if None in pages else float(sum(map(len, pages)))
    told["retired_pages_pending"] = _number(device.call("nvmlDeviceGetRetiredPagesPendingStatus"))


def _link(device: Device, told: dict[str, float | str | None]) -> None:
    """The link as it is now: its generation drops when the card idles."""
    for name, call in (
        ("pcie_link_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
        ("pcie_link_max_generation", "nvmlDeviceGetMaxPcieLinkGeneration"),
        ("pcie_link_width", "nvmlDeviceGetCurrPcieLinkWidth"),
        ("pcie_link_max_width", "nvmlDeviceGetMaxPcieLinkWidth"),
    ):
        told[name] = _number(device.call(call))
    fields = device.fields(FIELDS)
    replays = fields.get(REPLAYS)
    if replays is None and device.lacks(REPLAYS):
        replays = device.call("nvmlDeviceGetPcieReplayCounter")
    told["pcie_replay_count"] = _number(replays)
    action = fields.get(RECOVERY_ACTION)
    told["recovery_action"] = None if action is None else _word(ACTIONS, int(action))


def _modes(device: Device, told: dict[str, float | str | None]) -> None:
    persistence = device.call("nvmlDeviceGetPersistenceMode")
    told["persistence_mode"] = None if persistence is None else _word(SWITCH, persistence)
    compute = device.call("nvmlDeviceGetComputeMode")
    told["compute_mode"] = None if compute is None else _word(COMPUTE_MODES, compute)
    mig = device.call("nvmlDeviceGetMigMode")
    told["mig_mode"] = None if mig is None else _word(SWITCH, mig[0])


def _word(words: tuple[str, ...], number: int) -> str:
    """A mode as a word; one to come is told by its number."""
    return words[number] if 0 <= number < len(words) else f"code_{number}"


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
