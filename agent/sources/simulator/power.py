"""Watts of a load: what the context holds, plus an energy for every byte moved and every operation done.

Fitted on the Llama-3.1-8B rows of advisor-rules 2.4 (486 W at batch 8, 610 W at 64, 688 W at 511, loaded idle
118 W), and within 15 % of the other rows there: Llama-2-7B and OPT-2.7B on a slower memory, 70B on four GPUs.
"""

from math import sqrt
from typing import Final

from agent.sources.simulator.cards import Card
from agent.sources.simulator.load import Load

J_PER_BYTE: Final = 155e-12
J_PER_FLOP: Final = 1.6e-12
W_PER_BYTE_HELD: Final = 0.02e-9
"""Memory that is only held: < 0.02 W/GB (advisor-rules 4.1 [S8])."""
CAPPED_RATIO: Final = 0.985
"""A card at its limit hovers just below it."""
COOLING_AIR_C: Final = 27.0
FULL_RISE_C: Final = 37.0
"""Air-cooled SXM modules run near 64 °C at full power."""
OVERHEATED_C: Final = 88.0


def asked_w(card: Card, load: Load) -> float:
    """Power the load would draw without a limit."""
    if load.process_count == 0:
        return card.bare_idle_w
    held = card.bare_idle_w + card.context_w + W_PER_BYTE_HELD * load.memory_used_bytes
    return held + J_PER_BYTE * load.bytes_per_s + J_PER_FLOP * load.flop_per_s + load.spinning_w


def drawn_w(card: Card, asked: float) -> float:
    """Power under the card's limit."""
    return min(asked, CAPPED_RATIO * card.power_limit_w)


def sm_clock_hz(card: Card, load: Load, asked: float) -> float:
    """SM clock: low without a context, highest with one, lower under the limit or when too hot."""
    if load.process_count == 0:
        return card.idle_sm_clock_hz
    if load.overheated:
        return 0.62 * card.max_sm_clock_hz
    limit = CAPPED_RATIO * card.power_limit_w
    if asked <= limit:
        return card.max_sm_clock_hz
    return card.max_sm_clock_hz * max(0.6, sqrt(limit / asked))


def temperature_c(card: Card, load: Load, power_w: float) -> float:
    """GPU temperature once it has settled."""
    if load.overheated:
        return OVERHEATED_C
    return COOLING_AIR_C + FULL_RISE_C * power_w / card.power_limit_w
