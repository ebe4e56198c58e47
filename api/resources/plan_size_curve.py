"""The rate of one replica by its batch: what a promise and memory leave of it, and where half of it is reached."""

from dataclasses import dataclass
from math import inf
from typing import Final

from advisor.estimators.sizing_hardware import support
from advisor.estimators.sizing_replica import replicas
from api.resources.plan_size import SizeRow
from api.resources.plan_size_inputs import Question

STEPS: Final = 60
BEYOND: Final = 1.25
"""The curve goes on a little past the largest batch that fits."""


@dataclass(frozen=True, slots=True)
class RateCurve:
    """One replica of the chosen split.

    Attributes:
        points: batch, generated tokens a second, and the low and high end of the estimate.
        batch: what it runs. room: requests whose KV cache fits. half_batch: at which half of its highest rate is reached.
        promised_batch: largest within the promised time between tokens; None: none was promised.
    """

    points: tuple[tuple[float, float, float, float], ...]
    batch: float
    room: int
    half_batch: float
    promised_batch: float | None


def rate_curve(asked: Question, row: SizeRow) -> RateCurve | None:
    """The curve behind one row; None where it has no speed."""
    spec = next((one for one in asked.specs if one.gpu_key == row.gpu_key), None)
    if spec is None or row.replicas is None or row.concurrency is None or row.uncertainty_ratio is None:
        return None
    batch = max(1.0, row.concurrency / row.replicas)
    how = support(spec, asked.load.form)
    ways = [
        one
        for one in replicas(asked.load, spec, weights_only=how.weights_only)
        if one.tensor_parallel == row.tensor_parallel
    ]
    way = next((one for one in ways if batch <= one.ceiling), ways[-1] if ways else None)
    if way is None:
        return None
    step, width = way.step, row.uncertainty_ratio
    promise = asked.load.itl_slo_s
    promised = None if promise is None else step.largest_batch_within(promise)
    ends = [batch, float(min(way.room, 4 * step.half_batch))]
    if promised is not None and promised < inf:
        ends.append(min(promised, 4 * step.half_batch))
    most = max(2.0, BEYOND * max(ends))
    batches = [1 + (most - 1) * number / STEPS for number in range(STEPS + 1)]
    rates = [(each, step.tokens_per_s(each)) for each in batches]
    return RateCurve(
        points=tuple((each, rate, rate * (1 - width), rate * (1 + width)) for each, rate in rates),
        batch=batch,
        room=way.room,
        half_batch=step.half_batch,
        promised_batch=promised,
    )
