"""What the spool notes of a delivery beside its body."""

from typing import Any

from core.delivery import Delivery


def newest_ts_ms(of: Delivery) -> int:
    """When its newest part began, UTC epoch; 0 without any."""
    samples: list[list[Any]] = [of.gpu_samples, of.process_samples, of.engine_samples, of.host_samples]
    return max((row.ts_ms for rows in (*samples, of.events, of.health) for row in rows), default=0)


def lost_with(delivery: Delivery) -> int:
    """Rows that are lost when it is: its own, and those lost before of which only it would have told."""
    told = sum(sample.values.get("agent_dropped_count", 0.0) for sample in delivery.host_samples)
    return delivery.row_count + round(told)
