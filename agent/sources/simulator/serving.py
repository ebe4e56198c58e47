"""An LLM server: requests in flight become a batch, the batch becomes tokens, traffic, arithmetic and a queue."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from agent.sources.simulator.calendar import traffic_ratio
from agent.sources.simulator.decode import Decoder
from agent.sources.simulator.load import Load
from agent.sources.simulator.noise import drift, normal
from agent.sources.simulator.program import Process
from core.units import GIB, MINUTE_MS

BLOCK_TOKENS: Final = 16
"""vLLM's default block size."""
GPU_MEMORY_UTILIZATION: Final = 0.9
WORKSPACE_BYTES: Final = 3 * GIB
"""Activations and CUDA graphs beside weights and cache."""

InFlight = Callable[[int], float]
"""Requests that clients have open at an instant."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Open requests that follow the working week.

    Attributes:
        peak_requests: at the busiest hour. floor_requests: never fewer. quiet_ratio: below this share of the peak
            nobody asks at all. seed: of its noise.
    """

    peak_requests: float
    seed: int
    floor_requests: float = 0.0
    quiet_ratio: float = 0.0

    def __call__(self, ts_ms: int) -> float:
        """Open requests, never below 0."""
        above = max(0.0, traffic_ratio(ts_ms) - self.quiet_ratio) / (1.0 - self.quiet_ratio)
        noise = 1.0 + 0.12 * drift(self.seed, ts_ms, 7 * MINUTE_MS) + 0.06 * normal(self.seed, ts_ms // 1000)
        return max(0.0, (self.floor_requests + above * (self.peak_requests - self.floor_requests)) * noise)


class State(NamedTuple):
    """One instant of an engine."""

    running: int
    waiting: int
    kv_used_ratio: float
    tokens_per_s: float
    step_s: float


@dataclass(frozen=True, slots=True)
class Server:
    """One vLLM engine on one or several GPUs.

    Attributes:
        model: as the engine names it. user: who runs it. pid, start_ms: its process.
        decoder: its physics. max_num_seqs: its batch limit. gpu_memory_bytes: of one of its GPUs.
        in_flight: open requests. cached_ratio: share of prompt tokens found in the prefix cache.
    """

    model: str
    user: str
    pid: int
    start_ms: int
    decoder: Decoder
    max_num_seqs: int
    gpu_memory_bytes: int
    in_flight: InFlight
    cached_ratio: float = 0.0
    pool_tokens: int = field(init=False)
    _loads: dict[int, Load] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Size the cache as vLLM does: what the memory share leaves beside weights and workspace."""
        decoder = self.decoder
        room = decoder.tensor_parallel * (GPU_MEMORY_UTILIZATION * self.gpu_memory_bytes - WORKSPACE_BYTES)
        pool = int((room - decoder.weight_bytes) / decoder.kv_bytes_per_token)
        if pool <= 0:
            raise ValueError(f"{self.model} does not fit into {decoder.tensor_parallel} such GPUs")
        object.__setattr__(self, "pool_tokens", pool // BLOCK_TOKENS * BLOCK_TOKENS)

    @property
    def settings(self) -> dict[str, str]:
        """What ``cache_config_info`` and the command line publish."""
        return {
            "num_gpu_blocks": str(self.pool_tokens // BLOCK_TOKENS),
            "block_size": str(BLOCK_TOKENS),
            "gpu_memory_utilization": str(GPU_MEMORY_UTILIZATION),
            "max_num_seqs": str(self.max_num_seqs),
            "tensor_parallel_size": str(self.decoder.tensor_parallel),
            "dtype": "bfloat16",
        }

    def state(self, ts_ms: int) -> State:
        """Batch, queue, cache and speed."""
        decoder = self.decoder
        in_flight = int(self.in_flight(ts_ms))
        running = self._running(in_flight)
        return State(
            running=running,
            waiting=in_flight - running,
            kv_used_ratio=running * decoder.context_tokens / self.pool_tokens,
            tokens_per_s=decoder.tokens_per_s(running),
            step_s=decoder.step_s(running),
        )

    def load(self, ts_ms: int) -> Load:
        """Load of each of its GPUs."""
        running = self._running(int(self.in_flight(ts_ms)))
        found = self._loads.get(running)
        if found is None:  # a few hundred batch sizes cover the hundred thousands of instants of a history
            found = self._loads[running] = self._load(running)
        return found

    def _running(self, in_flight: int) -> int:
        return min(in_flight, self.max_num_seqs, int(self.pool_tokens / self.decoder.context_tokens))

    def _load(self, running: int) -> Load:
        decoder = self.decoder
        held = GPU_MEMORY_UTILIZATION * self.gpu_memory_bytes
        if running == 0:
            return Load(memory_used_bytes=held, process_count=1)
        moved, computed = decoder.bytes_per_s(running), decoder.flops_per_s(running)
        mbu, mfu = moved / decoder.bandwidth_bytes_per_s, computed / decoder.flop_per_s
        filled = running / (running + 64.0)
        return Load(
            memory_used_bytes=held,
            process_count=1,
            # Kernels pause between steps; with the batch grows the host's share (rows of advisor-rules 2.4).
            busy_ratio=0.965 - 0.1 * filled,
            memory_busy_ratio=min(0.4 + 0.7 * mbu, 0.95),
            bytes_per_s=moved,
            flop_per_s=computed,
            sm_ratio=0.52 + 0.26 * filled,
            occupancy_ratio=0.12 + 0.1 * filled,
            tensor_ratio=mfu / 0.93,
            dram_ratio=1.05 * mbu,
            fp32_ratio=0.02 + 0.04 * filled,
            pcie_rx_bytes_per_s=3e6 + 2e4 * running,
            pcie_tx_bytes_per_s=2e6 + 1e4 * running,
        )

    def process(self, _ts_ms: int) -> Process | None:
        """Its process; one run for as long as the fleet exists."""
        return Process(self.pid, self.start_ms, f"vllm serve {self.model}", self.user)

    def gauges(self, state: State) -> dict[str, float]:
        """Engine readings that are no counters."""
        return {
            "running_requests": float(state.running),
            "waiting_requests": float(state.waiting),
            "kv_used_ratio": round(state.kv_used_ratio, 4),
        }

    def rates(self, state: State) -> dict[str, float]:
        """Growth of each engine counter, per second."""
        decoder, speed = self.decoder, state.tokens_per_s
        finished = speed / decoder.generated_tokens
        prompts = speed * decoder.prompt_per_generated
        # Little's law: who joins a queue of this length waits until it has been served.
        queued_s = state.waiting / finished if finished > 0 else 0.0
        prefill_s = (
            2
            * decoder.active_parameters
            * decoder.prompt_tokens
            / (0.5 * decoder.tensor_parallel * decoder.flop_per_s)
        )
        return {
            "generated_tokens": speed,
            "prompt_tokens": prompts,
            "cached_prompt_tokens": self.cached_ratio * prompts,
            "preemption_count": 0.0,
            "finished_requests": finished,
            "ttft_sum_s": finished * (queued_s + prefill_s + state.step_s),
            "ttft_count": finished,
            "itl_sum_s": speed * state.step_s,
            "itl_count": speed,
        }
