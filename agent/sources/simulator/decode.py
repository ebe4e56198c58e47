"""One decode step of an LLM engine: how long it takes, what it moves and computes (advisor-rules 2.2).

This is the nature of the simulated engines. The advisor's estimator has the same law from the same source, and
neither imports the other: what is simulated must not be derived from what is to be checked by it.
"""

from dataclasses import dataclass, field
from typing import Final

WEIGHT_READ_FACTOR: Final = 1.08
STEP_OVERHEAD_S: Final = 2.0e-3
LAYER_SYNC_S: Final = 40e-6
SEQUENCE_OVERHEAD_S: Final = 42e-6
FLOP_FACTOR: Final = 1.35


@dataclass(frozen=True, slots=True)
class Decoder:
    """A dense model served on some GPUs with one mean request.

    Attributes:
        weight_bytes: read in every step. kv_bytes_per_token: cache of one token. active_parameters: used per token.
        layers: of the model. tensor_parallel: GPUs that share each step.
        bandwidth_bytes_per_s, flop_per_s: peak of one GPU, dense.
        prompt_tokens, generated_tokens: of the mean request.
        fixed_s, sequence_s: time of a step whatever the batch, and what each running sequence adds to it.
    """

    weight_bytes: float
    kv_bytes_per_token: float
    active_parameters: float
    layers: int
    tensor_parallel: int
    bandwidth_bytes_per_s: float
    flop_per_s: float
    prompt_tokens: float
    generated_tokens: float
    fixed_s: float = field(init=False)
    sequence_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Work out the two coefficients of the step once: a history asks for them very often."""
        object.__setattr__(self, "fixed_s", self._fixed_s())
        object.__setattr__(self, "sequence_s", self._sequence_s())

    @property
    def context_tokens(self) -> float:
        """Mean tokens in cache of a running sequence."""
        return self.prompt_tokens + self.generated_tokens / 2

    @property
    def prompt_per_generated(self) -> float:
        """Prompt tokens computed for each generated one."""
        return self.prompt_tokens / self.generated_tokens

    def _fixed_s(self) -> float:
        """Time of a step whatever the batch: weights, launch, synchronisation."""
        weights = WEIGHT_READ_FACTOR * self.weight_bytes / (self.tensor_parallel * self.bandwidth_bytes_per_s)
        sync = LAYER_SYNC_S * self.layers if self.tensor_parallel > 1 else 0.0
        return weights + STEP_OVERHEAD_S + sync

    def _sequence_s(self) -> float:
        """Time that each running sequence adds to a step: its cache, its bookkeeping, its arithmetic."""
        cache = (
            self.context_tokens
            * self.kv_bytes_per_token
            / (self.tensor_parallel * self.bandwidth_bytes_per_s)
        )
        flops = (
            FLOP_FACTOR
            * 2
            * self.active_parameters
            * (1 + self.prompt_per_generated)
            / (self.tensor_parallel * self.flop_per_s)
        )
        return cache + SEQUENCE_OVERHEAD_S + flops

    def step_s(self, running: float) -> float:
        """Time of one step with ``running`` sequences: also their inter-token latency."""
        return self.fixed_s + running * self.sequence_s

    def tokens_per_s(self, running: float) -> float:
        """Generated tokens per second of the engine."""
        return running / self.step_s(running) if running > 0 else 0.0

    def bytes_per_s(self, running: float) -> float:
        """Device-memory traffic of each GPU."""
        if running <= 0:
            return 0.0
        moved = self.weight_bytes + running * self.context_tokens * self.kv_bytes_per_token
        return moved / (self.tensor_parallel * self.step_s(running))

    def flops_per_s(self, running: float) -> float:
        """Operations per second of each GPU, prompts included."""
        tokens = self.tokens_per_s(running) * (1 + self.prompt_per_generated)
        return 2 * self.active_parameters * tokens / self.tensor_parallel
