"""What ``--json`` prints is a contract (design section 6): these names stay, more are welcome.

The lists are copied from the design, so that changing a row's field by accident fails here.
"""

from dataclasses import fields
from typing import Any

import pytest

from api.resources.as_json import to_json
from api.resources.by import By
from api.resources.costs import CostRow
from api.resources.energy import EnergyRow
from api.resources.engines import EngineRow
from api.resources.gpus import GpuRow
from api.resources.idle import IdleView
from api.resources.plan_rent_or_buy import RentOrBuyRow
from api.resources.recommendations import (
    AdviceView,
    RecommendationRow,
    SavingView,
    TotalsView,
    row_of,
    totals_view,
)
from api.resources.usage import UsageRow
from core.finding import (
    Action,
    Effort,
    Finding,
    Grade,
    NotEvaluated,
    Range,
    Risk,
    Saving,
    Status,
    Subject,
    Totals,
)
from core.samples import EnergyMethod

CONTRACT: dict[type[Any], str] = {
    GpuRow: """gpu_uuid host model memory_total_bytes activity busy_ratio power_w memory_used_bytes sm_active_ratio
        tensor_active_ratio dram_active_ratio sm_clock_hz last_sample_at coverage_ratio price_usd_per_hour""",
    EnergyRow: "key energy_j energy_kwh mean_power_w coverage_ratio method",
    UsageRow: "key total_gpu_h allocated_gpu_h active_gpu_h effective_gpu_h unknown_gpu_h seconds_by_activity",
    CostRow: "key cost_usd idle_cost_usd energy_cost_usd carbon_g price_basis priced_ratio",
    EngineRow: """engine host gpu_uuids kind model running_mean running_p95 waiting_mean kv_used_max_ratio
        tokens_generated tokens_prompt tokens_per_s tokens_per_j usd_per_million_tokens itl_s mbu_ratio mfu_ratio
        half_batch data_quality""",
    IdleView: "subject idle since idle_s activity coverage_ratio why gpus",
    AdviceView: "recommendations not_evaluated totals",
    RecommendationRow: """rule_id subject status title because state confidence grade effort risk saving evidence
        actions wrong_when not_claimed""",
    SavingView: "cash_usd_month capacity_gpu_h_month energy_kwh_month",
    TotalsView: "cash_usd_month capacity_gpu_h_month energy_kwh_month spend_usd_month",
    NotEvaluated: "rule_id subject missing why",
    Subject: "kind id",
    RentOrBuyRow: """verdict payback_months breakeven_utilisation own_usd_per_gpu_h rent_usd_per_gpu_h ranges
        assumptions""",
}


@pytest.mark.parametrize("row", list(CONTRACT), ids=lambda row: row.__name__)
def test_every_field_of_the_contract_is_there(row: type[Any]) -> None:
    missing = set(CONTRACT[row].split()) - {field.name for field in fields(row)}
    assert not missing


def test_rows_can_be_grouped_by_what_the_contract_names() -> None:
    assert {"gpu", "host", "workload", "owner", "activity", "hour", "day"} <= {key.value for key in By}
    assert {"user", "model", "week", "month"} <= {key.value for key in By}


def test_energy_methods_are_those_of_the_contract() -> None:
    assert {method.value for method in EnergyMethod} == {"counter", "integrated", "mixed"}


FINDING = Finding(
    rule_id="empty-gpu",
    subject=Subject("gpu", "GPU-1", "GPU 0 on h1"),
    cause="empty",
    title="Release GPU 0",
    because="Empty for 100 hours.",
    state="empty",
    confidence="Strong: measured.",
    grade=Grade.A,
    effort=Effort.LOW,
    risk=Risk.LOW,
    saving=Saving(cash_usd_month=Range(1.0, 2.5, 1234.5678912)),
    evidence={"empty_h": 100.0, "cost_usd_month": 2.5, "coverage_ratio": 1.0},
    actions=(Action("Stop it", "gcloud compute instances stop h1"),),
    wrong_when="It is kept as a spare.",
)


def test_a_recommendation_prints_money_as_strings_and_absent_ledgers_as_null() -> None:
    printed = to_json(row_of(FINDING, None))
    assert printed["saving"] == {
        "cash_usd_month": {"p10": "1.00", "p50": "2.50", "p90": "1234.567891"},
        "capacity_gpu_h_month": None,
        "energy_kwh_month": None,
    }
    assert printed["evidence"] == {"empty_h": 100.0, "cost_usd_month": "2.50", "coverage_ratio": 1.0}
    assert printed["subject"]["kind"] == "gpu"
    assert printed["actions"] == [{"text": "Stop it", "command": "gcloud compute instances stop h1"}]
    assert (printed["status"], printed["grade"], printed["effort"], printed["risk"]) == (
        "open",
        "A",
        "low",
        "low",
    )
    assert printed["not_claimed"] == ""


def test_totals_print_money_as_strings_and_other_ledgers_as_figures() -> None:
    printed = to_json(totals_view(Totals(None, Range(1.0, 2.0, 3.0), None, 100.0)))
    assert printed == {
        "cash_usd_month": None,
        "capacity_gpu_h_month": {"p10": 1.0, "p50": 2.0, "p90": 3.0},
        "energy_kwh_month": None,
        "spend_usd_month": "100.00",
    }


def test_statuses_are_those_people_follow() -> None:
    assert {"open", "claimed", "done", "verified", "reopened", "snoozed", "dismissed"} <= {
        s.value for s in Status
    }
