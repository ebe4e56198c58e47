"""One order for every list of findings: command line, REST, pages and mail."""

from typing import Final

from core.finding import Effort, Finding, Grade

_EFFORTS: Final = {effort: place for place, effort in enumerate(Effort)}


def rank(finding: Finding) -> tuple[float, float, float, bool, int, Grade]:
    """Sort key, best first: cash, then capacity, then energy, each by its median. Ledgers are never added.

    Without figures what can be done at once comes first: a command, little effort, a good grade.
    """
    saving = finding.saving
    return (
        -(saving.cash_usd_month.p50 if saving.cash_usd_month else 0.0),
        -(saving.capacity_gpu_h_month.p50 if saving.capacity_gpu_h_month else 0.0),
        -(saving.energy_kwh_month.p50 if saving.energy_kwh_month else 0.0),
        not any(action.command for action in finding.actions),
        _EFFORTS[finding.effort],
        finding.grade,
    )
