"""Traffic over NVLink and PCIe out of the driver's cumulative counters.

A sum over links is given only when every link that counts at all answered: a part of it would look like less traffic.
"""

from __future__ import annotations

from agent.collectors.counter import Rate
from agent.driver.fields import ALL_LINKS, FieldBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.driver.device import Device
    from agent.driver.fields import Entry

LINK_COUNT = 91
SUM_TX, SUM_RX = (138, ALL_LINKS), (139, ALL_LINKS)
"""Data over all links up to the fourth generation, KiB."""
LINK_TX, LINK_RX = 202, 204
"""Bytes of one link, fifth generation and newer."""
PCIE_TX, PCIE_RX = 197, 198
WRAPS_AT = 1 << 32
"""Where the PCIe counters were seen to wrap (NVIDIA/dcgm-exporter issue 721): under a second of a fast link, so a
difference proves nothing until a counter has been seen beyond it."""
MOST_LINKS = 64


class Links:
    """Rates of one GPU by reading name, in bytes per second.

    Attributes:
        entries: what to add to the question of every second.
    """

    __slots__ = ("_count", "_counting", "_device", "_links", "_pcie", "_rx", "_tx", "_wide", "entries")

    def __init__(self, device: Device) -> None:
        self._device = device
        self._rx, self._tx = Rate(), Rate()
        self._pcie = {PCIE_RX: Rate(), PCIE_TX: Rate()}
        self._wide: set[int] = set()
        self._count: int | None = None
        self._links: FieldBatch | None = None
        self._counting: tuple[Entry, ...] = ()
        self.entries: tuple[Entry, ...] = (SUM_TX, SUM_RX)

    def quick(self, values: dict[Entry, float], now_ns: int) -> dict[str, float]:
        """Out of the values of ``entries``."""
        if not self.entries or "nvlink_rx_bytes_per_s" in self._device.elsewhere:
            return {}
        tx, rx = values.get(SUM_TX), values.get(SUM_RX)
        return self._rates(None if rx is None else rx * 1024, None if tx is None else tx * 1024, now_ns)

    def slow(self, now_ns: int) -> dict[str, float]:
        """What takes an entry per link, and the PCIe counters; asked less often, a mean over the time between."""
        device, elsewhere = self._device, self._device.elsewhere
        told: dict[str, float] = {}
        if "nvlink_rx_bytes_per_s" not in elsewhere:
            told.update(self._by_link(now_ns))
        if "pcie_rx_bytes_per_s" not in elsewhere:
            values = device.fields((PCIE_TX, PCIE_RX))
            for field, name in ((PCIE_RX, "pcie_rx_bytes_per_s"), (PCIE_TX, "pcie_tx_bytes_per_s")):
                total = values.get(field)
                if total is not None and total >= WRAPS_AT:
                    self._wide.add(field)
                rate = self._pcie[field].per_s(total, now_ns)
                if rate is not None and field in self._wide:
                    told[name] = rate
        return told

    @property
    def counts_pcie(self) -> bool:
        """Both PCIe counters are known not to wrap, so nobody has to block for the rate."""
        return len(self._wide) == 2

    def _by_link(self, now_ns: int) -> dict[str, float]:
        device = self._device
        if self._count is None:
            said = device.fields((LINK_COUNT,)).get(LINK_COUNT)
            if said is None and not device.lacks(LINK_COUNT):
                return {}
            self._count = min(int(said or 0), MOST_LINKS)
            if not self._count:
                self.entries = ()
        if not self._count:
            return {}
        if self._links is None:
            asked = tuple((field, link) for link in range(self._count) for field in (LINK_TX, LINK_RX))
            self._links = FieldBatch(device.library, asked)
        values = self._links.ask(device.handle)
        counting = self._links.entries
        if not counting:
            self._count = 0  # an older generation: the sums tell
            return {}
        self.entries = ()
        if self._counting != counting:  # a link less is a smaller sum, not less traffic
            self._counting = counting
            self._rx, self._tx = Rate(), Rate()
        if len(values) != len(counting):
            return self._rates(None, None, now_ns)
        sums = {LINK_TX: 0.0, LINK_RX: 0.0}
        for entry, total in values.items():
            sums[entry[0]] += total  # type: ignore[index] # every entry here is a pair
        return self._rates(sums[LINK_RX], sums[LINK_TX], now_ns)

    def _rates(self, rx: float | None, tx: float | None, now_ns: int) -> dict[str, float]:
        rates = {
            "nvlink_rx_bytes_per_s": self._rx.per_s(rx, now_ns),
            "nvlink_tx_bytes_per_s": self._tx.per_s(tx, now_ns),
        }
        return {name: rate for name, rate in rates.items() if rate is not None}
