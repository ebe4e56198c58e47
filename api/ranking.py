"""One order for every list of findings: command line, REST, pages and mail."""

from typing import Final

from core.finding import Effort, Finding, Grade, Range
from core.units import HOURS_PER_MONTH

_EFFORTS: Final = {effort: place for place, effort in enumerate(Effort)}


def rank(finding: Finding) -> tuple[float, float, float, bool, int, Grade]:
    """Sort key, best first: cash, then capacity, then energy, each by its median. Ledgers are never added.

    What GPUs cost that do no work now stands among them at its pace: like a saving, it is spent each month that nobody
    acts. Without figures what can be done at once comes first: a command, little effort, a good grade.
    """
    saving, stake = finding.saving, finding.at_stake
    burnt_usd = 0.0 if stake is None else (stake.usd_per_hour or 0.0) * HOURS_PER_MONTH
    burnt_gpu_h = 0.0 if stake is None else stake.gpus * HOURS_PER_MONTH
    return (
        -max(_median(saving.cash_usd_month), burnt_usd),
        -max(_median(saving.capacity_gpu_h_month), burnt_gpu_h),
        -_median(saving.energy_kwh_month),
        not any(action.command for action in finding.actions),
        _EFFORTS[finding.effort],
        finding.grade,
    )


def _median(claim: Range | None) -> float:
    return 0.0 if claim is None else claim.p50
