"""What is asked of a model: the requests, their length, the precision, the latency promised.

    context = prompt + output tokens of a request when it ends;   ctx = prompt + output/2 while it runs     (2.2)

A request is either one of ``concurrency`` that run at once, or one of ``requests_per_s`` that arrive; then Little's law
says how many run at once. Both are of the whole service, all replicas together.
"""

from dataclasses import dataclass
from typing import Final

from advisor.estimators.sizing_hardware import Form
from catalog.llm_models import LlmSpec, kv_bytes_per_sequence, kv_bytes_per_token

MOST_TOKENS: Final = 100_000_000
MOST_LOAD: Final = 100_000_000
LEAST: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Load:
    """A service to size.

    Attributes:
        llm, form: the model and its weights. kv_element_bytes: 2 for 16-bit, 1 for 8-bit KV cache.
        context_tokens: prompt and output of one request. output_tokens: of these, generated.
        concurrency: requests at once; None when ``requests_per_s`` is given, and the other way round.
        itl_slo_s, ttft_slo_s: longest mean time between tokens, and to the first one; None: no promise.
    """

    llm: LlmSpec
    form: Form
    kv_element_bytes: float
    context_tokens: int
    output_tokens: int
    concurrency: int | None = None
    requests_per_s: float | None = None
    itl_slo_s: float | None = None
    ttft_slo_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse a load that cannot be. Raises ``ValueError`` with field, value and what to do."""
        if not 2 <= self.context_tokens <= MOST_TOKENS:
            raise ValueError(
                f"context_tokens is {self.context_tokens}: give 2 to {MOST_TOKENS:,}, prompt and output together"
            )
        if not 1 <= self.output_tokens < self.context_tokens:
            raise ValueError(
                f"output_tokens is {self.output_tokens}: give 1 or more, and fewer than context_tokens ({self.context_tokens})"
            )
        if (self.concurrency is None) == (self.requests_per_s is None):
            raise ValueError("concurrency and requests_per_s: give one of them")
        if self.concurrency is not None and not 1 <= self.concurrency <= MOST_LOAD:
            raise ValueError(f"concurrency is {self.concurrency}: give 1 or more requests at once")
        for name in ("requests_per_s", "itl_slo_s", "ttft_slo_s"):
            value: float | None = getattr(self, name)
            if value is not None and not LEAST <= value <= MOST_LOAD:
                raise ValueError(f"{name} is {value}: give {LEAST:f} or more, and no more than {MOST_LOAD:,}")

    @property
    def prompt_tokens(self) -> int:
        """Tokens a request comes with."""
        return self.context_tokens - self.output_tokens

    @property
    def prompt_per_generated(self) -> float:
        """n_in/n_out."""
        return self.prompt_tokens / self.output_tokens

    @property
    def mean_context_tokens(self) -> float:
        """Tokens in cache while a request runs: n_in + n_out/2."""
        return self.prompt_tokens + self.output_tokens / 2

    @property
    def kv_token_bytes(self) -> float:
        """KV cache of one token, within every window."""
        return kv_bytes_per_token(self.llm, self.kv_element_bytes)

    @property
    def sequence_bytes(self) -> float:
        """KV cache of one request when it ends."""
        return kv_bytes_per_sequence(self.llm, self.context_tokens, self.kv_element_bytes)

    @property
    def read_bytes(self) -> float:
        """KV cache that a step reads of one running request."""
        return kv_bytes_per_sequence(self.llm, self.mean_context_tokens, self.kv_element_bytes)

    @property
    def generated_per_s(self) -> float | None:
        """λ·n_out; None where the load is requests at once."""
        return None if self.requests_per_s is None else self.requests_per_s * self.output_tokens
