"""Energy measured at the GPU, by any key. Site energy, money and carbon belong to costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from api.resources.by import AskedBy, By, Keys, key_fields, keys_of
from api.resources.columns import about
from api.resources.report import Question, report
from api.resources.report_filters import NO_FILTERS, Filters
from api.resources.report_parts import ENERGY
from api.resources.report_sum import LineSum, ratio
from api.resources.scope import Scope
from core.samples import EnergyMethod
from core.units import J_PER_KWH


@dataclass(frozen=True, slots=True)
class EnergyRow:
    """Energy of one group."""

    key: Annotated[
        str | None, about("Group; null: what cannot be said (no known workload, user, engine, owner).")
    ]
    label: Annotated[str, about("The group for people; of two keys both.")]
    energy_j: Annotated[float | None, about("Joules drawn by the GPUs themselves; null when none is known.")]
    energy_kwh: Annotated[float | None, about("The same in kWh; without host share and PUE.")]
    mean_power_w: Annotated[float | None, about("Energy over the time it was measured in.")]
    coverage_ratio: Annotated[
        float | None,
        about(
            "Time with known energy over the time between first and last sample; the rest is not estimated."
        ),
    ]
    method: Annotated[
        EnergyMethod | None, about("counter: the card's own; integrated: power over time; mixed: both.")
    ]
    energy_covered_s: Annotated[float, about("GPU-seconds behind the figure.")]
    second_key: Annotated[str | None, about("Group by the second key; null: only one was asked for.")] = None
    keys: Annotated[Mapping[str, str | None], about("All, by the names of the keys.")] = field(
        default_factory=dict
    )


def row_of(key: tuple[str | None, ...], keys: Keys, one: LineSum) -> EnergyRow:
    """A group as a row."""
    energy_j, covered_s = one.energy_j, one.whole("energy_covered_ms") / 1000
    return EnergyRow(
        **key_fields(key, keys),
        label=one.label,
        energy_j=energy_j,
        energy_kwh=None if energy_j is None else energy_j / J_PER_KWH,
        mean_power_w=energy_j / covered_s if energy_j is not None and covered_s > 0 else None,
        coverage_ratio=ratio(one.whole("energy_covered_ms"), one.whole("known_ms")),
        method=one.method,
        energy_covered_s=covered_s,
    )


def rows(scope: Scope, by: AskedBy = By.GPU, filters: Filters = NO_FILTERS) -> list[EnergyRow]:
    """Energy by ``by``, ordered by key; the group that cannot be said comes last."""
    keys = keys_of(by)
    found = report(scope, Question(keys, ENERGY, filters=filters))
    return [row_of(key, keys, one) for key, one in found.items()]
