"""Loads of jobs that are no LLM servers: training, input-bound training, a stuck collective, batch work, work by day."""

from dataclasses import dataclass
from typing import Final

from agent.sources.simulator.calendar import in_office
from agent.sources.simulator.cards import Card
from agent.sources.simulator.load import Load, parked
from agent.sources.simulator.noise import drift
from core.units import HOUR_MS, MINUTE_MS

WARM_UP_MS: Final = 4 * MINUTE_MS
"""Imports, weights, first compilation: memory is held and nothing runs."""
CHECKPOINT_AFTER_MS: Final = 17 * MINUTE_MS + 20_000
CHECKPOINT_MS: Final = 80_000
"""Every hour at 17:20 the state goes to disk: 80 s in which the GPUs wait."""
INPUT_PERIOD_MS: Final = 8_000
INPUT_WAIT_MS: Final = 3_600
"""The loader fills a buffer for 3.6 s, the GPU empties it for 4.4 s. Readings 1, 60 or 300 s apart meet both halves
in turn (60 s are 7.5 periods), so that every cadence sees the same two humps."""


def _pace(spread_ratio: float, seed: int, ts_ms: int, period_ms: int) -> float:
    """Slow noise around 1 in steps of a thousandth: a work then has some hundred loads, not one per instant."""
    return round(1.0 + spread_ratio * drift(seed, ts_ms, period_ms), 3)


@dataclass(frozen=True, slots=True)
class Training:
    """Synchronous training: compute-bound, with checkpoints.

    Attributes:
        card: it runs on. memory_used_bytes: held on each GPU. mfu_ratio: share of peak arithmetic reached.
        seed: of its slow noise (sequence-length mix).
    """

    card: Card
    memory_used_bytes: float
    mfu_ratio: float
    seed: int

    def __call__(self, ts_ms: int, start_ms: int) -> Load:
        """Load of one rank."""
        if ts_ms - start_ms < WARM_UP_MS:
            return parked(0.4 * self.memory_used_bytes)
        if CHECKPOINT_AFTER_MS <= ts_ms % HOUR_MS < CHECKPOINT_AFTER_MS + CHECKPOINT_MS:
            return parked(self.memory_used_bytes)._replace(pcie_tx_bytes_per_s=4.1e9)
        pace = _pace(0.03, self.seed, ts_ms, 20 * MINUTE_MS)
        mfu = self.mfu_ratio * pace
        dram = 0.42 * pace
        return Load(
            memory_used_bytes=self.memory_used_bytes,
            process_count=1,
            busy_ratio=0.985,
            memory_busy_ratio=0.55 * pace,
            bytes_per_s=dram * self.card.bandwidth_bytes_per_s,
            flop_per_s=mfu * self.card.flop_per_s,
            sm_ratio=0.9 * pace,
            occupancy_ratio=0.31,
            tensor_ratio=mfu / 0.93,
            dram_ratio=dram,
            fp32_ratio=0.06,
            pcie_rx_bytes_per_s=160e6,
            pcie_tx_bytes_per_s=90e6,
        )


@dataclass(frozen=True, slots=True)
class InputBound:
    """Training that waits for its data loader half of the time: busy alternates between nothing and full."""

    card: Card
    memory_used_bytes: float
    seed: int

    def __call__(self, ts_ms: int, start_ms: int) -> Load:
        """Load of one rank."""
        if ts_ms - start_ms < WARM_UP_MS:
            return parked(0.4 * self.memory_used_bytes)
        pace = _pace(0.04, self.seed, ts_ms, 15 * MINUTE_MS)
        if ts_ms % INPUT_PERIOD_MS < INPUT_WAIT_MS:
            return Load(
                memory_used_bytes=self.memory_used_bytes,
                process_count=1,
                busy_ratio=0.03,
                memory_busy_ratio=0.01,
                pcie_rx_bytes_per_s=1.3e9,
                pcie_tx_bytes_per_s=20e6,
            )
        return Load(
            memory_used_bytes=self.memory_used_bytes,
            process_count=1,
            busy_ratio=0.93 * pace,
            memory_busy_ratio=0.44 * pace,
            bytes_per_s=0.5 * self.card.bandwidth_bytes_per_s,
            flop_per_s=0.26 * self.card.flop_per_s,
            pcie_rx_bytes_per_s=2.4e9,
            pcie_tx_bytes_per_s=60e6,
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """Steady work of one process: scoring, embedding, rendering.

    Attributes:
        card: it runs on. memory_used_bytes: held. busy_ratio, flop_ratio, dram_ratio: reached, the last two of peak.
        seed: of its slow noise.
    """

    card: Card
    memory_used_bytes: float
    busy_ratio: float
    flop_ratio: float
    dram_ratio: float
    seed: int

    def __call__(self, ts_ms: int, start_ms: int) -> Load:
        """Load of its GPU."""
        if ts_ms - start_ms < WARM_UP_MS:
            return parked(0.5 * self.memory_used_bytes)
        pace = _pace(0.06, self.seed, ts_ms, 12 * MINUTE_MS)
        return Load(
            memory_used_bytes=self.memory_used_bytes,
            process_count=1,
            busy_ratio=min(self.busy_ratio * pace, 0.99),
            memory_busy_ratio=min(1.2 * self.dram_ratio * pace, 0.95),
            bytes_per_s=self.dram_ratio * pace * self.card.bandwidth_bytes_per_s,
            flop_per_s=self.flop_ratio * pace * self.card.flop_per_s,
            sm_ratio=min(0.95 * self.busy_ratio * pace, 0.95),
            occupancy_ratio=0.3,
            tensor_ratio=self.flop_ratio * pace,
            dram_ratio=self.dram_ratio * pace,
            fp32_ratio=0.05,
            pcie_rx_bytes_per_s=310e6,
            pcie_tx_bytes_per_s=45e6,
        )


@dataclass(frozen=True, slots=True)
class Overheating:
    """Work that runs slower between two instants, because its card is too hot.

    Attributes:
        work: what runs. from_ms, to_ms: the hot spell. slowdown_ratio: speed that is left.
    """

    work: Batch
    from_ms: int
    to_ms: int
    slowdown_ratio: float = 0.68

    def __call__(self, ts_ms: int, start_ms: int) -> Load:
        """Load of its GPU."""
        load = self.work(ts_ms, start_ms)
        if not self.from_ms <= ts_ms < self.to_ms or load.busy_ratio == 0.0:
            return load
        return load._replace(
            bytes_per_s=self.slowdown_ratio * load.bytes_per_s,
            flop_per_s=self.slowdown_ratio * load.flop_per_s,
            busy_ratio=0.99,
            overheated=True,
        )


@dataclass(frozen=True, slots=True)
class Stuck:
    """Work that ends in a collective which one rank never joins (advisor-rules R27).

    Kernels spin at full busy, no memory moves, little power is drawn.

    Attributes:
        work: what ran before. since_ms: when it got stuck. spinning_w: power of the waiting kernels.
    """

    work: Training
    since_ms: int
    spinning_w: float = 21.0

    def __call__(self, ts_ms: int, start_ms: int) -> Load:
        """Load of one rank."""
        if ts_ms < self.since_ms:
            return self.work(ts_ms, start_ms)
        return Load(
            memory_used_bytes=self.work.memory_used_bytes,
            process_count=1,
            busy_ratio=1.0,
            memory_busy_ratio=0.0,
            sm_ratio=0.12,
            occupancy_ratio=0.02,
            spinning_w=self.spinning_w,
        )


@dataclass(frozen=True, slots=True)
class ByDay:
    """Work within two hours of a weekday (UTC), the same process parked for the rest."""

    work: Batch
    from_h: float
    to_h: float

    def __call__(self, ts_ms: int, start_ms: int) -> Load:
        """Load of its GPU."""
        if in_office(ts_ms, self.from_h, self.to_h):
            return self.work(ts_ms, start_ms)
        return parked(self.work.memory_used_bytes)
