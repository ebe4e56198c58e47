"""Exports hold what the ledger holds, to the micro-dollar, stored or priced on the fly; on both databases."""

import csv
import io
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from fleet_for_tests import GIB, HOUR, NOW, SPAN, T0, A, B, C, sample
from ledger_for_tests import ingest, price, settings, sums
from sqlalchemy import Engine
from starlette.testclient import TestClient

from api.resources import export_files
from api.resources.exports import Summary, export, window_of
from api.resources.ledger_days import materialise
from api.resources.ledger_months import close
from core.activity import Activity
from core.errors import GpuwiseError, NotFoundError, UsageError
from core.readings import GpuIdentity, WorkloadKey
from core.samples import EnergyMethod, GpuSample, ProcessSample
from core.settings import Settings
from core.sharing import ShareMethod
from core.units import DAY_MS
from core.user_price import UserPrice
from ledger.focus_check import check
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import ledger_pending, prices
from store.rollup import roll_up
from tests.integration.api.conftest import client_for

LATER = T0 + 40 * DAY_MS
"""In November."""
Row = dict[str, str]


@pytest.fixture
def engine(filled_database: str) -> Engine:
    return make_engine(filled_database)


def focus(
    engine: Engine, from_: str = "2026-10", to: str = "2026-11", of: Settings | None = None
) -> tuple[list[Row], Summary]:
    """Rows of a file that was found sound, and what is said of it."""
    with session_scope(engine) as session:
        made = export(session, of or settings(engine), LATER, from_, to)
        text = "".join(export_files.focus_file(made))
    assert list(check(io.StringIO(text, newline=""))) == []
    return list(csv.DictReader(io.StringIO(text, newline=""))), made.summary


def total(rows: list[Row], name: str) -> Decimal:
    return sum((Decimal(row[name] or 0) for row in rows), Decimal(0))


def micro(amount: Decimal) -> int:
    return int(amount * 1_000_000)


def month_of(engine: Engine) -> Any:
    with session_scope(engine) as session:
        return close(session, settings(engine), LATER, "2026-10")


def add_price(engine: Engine, usd: str, **more: Any) -> None:
    given = {"scope_kind": "gpu_uuid", "scope_value": B, "billing": "committed", "valid_from_ms": T0} | more
    with session_scope(engine) as session:
        prices.insert_all(
            session,
            [UserPrice(id=0, amount_per_gpu_hour=Decimal(usd), gpus_per_unit=1, **given)],
        )
        ledger_pending.mark(session, 0, None)


def test_the_file_costs_what_the_ledger_costs(engine: Engine) -> None:
    of = settings(engine)
    on_the_fly, said = focus(engine)
    materialise(engine, of, LATER)
    stored, said_then = focus(engine)
    assert sorted(map(repr, stored)) == sorted(map(repr, on_the_fly))
    assert said == said_then
    want = sums(engine)
    for name in ("BilledCost", "EffectiveCost", "ContractedCost"):
        assert micro(total(stored, name)) == want["cost_usd"] == 8_000_000
    assert micro(total(stored, "x_IdleCost")) == want["idle_cost_usd"]
    assert micro(total(stored, "x_EnergyCost")) == want["energy_usd"]
    assert micro(total(stored, "x_CarbonGramsCo2e")) == want["carbon_ug"]
    assert {row["ResourceId"] for row in stored} == {A, B}
    assert {row["x_AllocationType"] for row in stored} == {"allocated", "idle", "unknown"}


def test_hours_without_a_price_are_counted_and_have_no_row(engine: Engine) -> None:
    rows, said = focus(engine)
    assert C not in {row["ResourceId"] for row in rows}
    assert (said.unpriced_gpus, said.unpriced_gpu_h, said.unpriced_lines) == (1, 1.0, 1)
    assert said.notes == [
        "2026-10 is not closed: its rows may still change until gpuwise ledger close 2026-10",
        "1.0 GPU-hours of 1 GPUs have no price and no row: gpuwise prices --effective says why",
    ]


def test_every_line_is_in_the_plain_file_also_without_a_price(engine: Engine) -> None:
    with session_scope(engine) as session:
        made = export(session, settings(engine), LATER, "2026-10", "2026-11")
        rows = list(csv.DictReader(io.StringIO("".join(export_files.line_file(made)), newline="")))
    assert {row["gpu_uuid"]: row["cost_usd"] for row in rows}[C] == ""
    assert total(rows, "cost_usd") == 8
    assert sum(float(row["known_h"]) for row in rows) == pytest.approx(5.0)


def test_corrections_of_a_closed_month_stand_beside_what_was_charged(engine: Engine) -> None:
    of = settings(engine)
    materialise(engine, of, LATER)
    month_of(engine)
    charged, _ = focus(engine)
    price(engine, "4.00", A, T0)
    waiting, said = focus(engine)
    assert waiting == charged
    assert any("not booked yet" in note for note in said.notes)
    materialise(engine, of, LATER)
    rows, said = focus(engine)
    booked = [row for row in rows if row["ChargeClass"] == "Correction"]
    assert len(booked) == said.corrections > 0
    assert [row for row in rows if row not in booked] == charged
    assert micro(total(rows, "BilledCost")) == sums(engine)["cost_usd"] == 12_000_000
    assert {row["x_CorrectionBookedAt"] for row in booked} == {"2026-11-14T00:00:00Z"}
    assert not said.notes[0].startswith("2026-10")


def test_energy_is_billed_apart_where_the_site_pays_for_power(engine: Engine) -> None:
    of = replace(settings(engine), pays_for_power=True)
    rows, said = focus(engine, of=of)
    power = [row for row in rows if row["ServiceName"] == "Electricity"]
    want, _ = focus(engine)
    assert total(power, "BilledCost") == total(want, "x_EnergyCost") == said.energy_usd > 0
    assert {row["PricingUnit"] for row in power} == {"kWh"}
    for name in ("x_EnergyKwh", "x_CarbonGramsCo2e"):
        assert total(rows, name) == total(want, name)
    assert said.ledger_usd + said.energy_usd == said.billed_usd


def test_committed_hours_are_used_or_unused_and_the_upfront_is_bought_once(engine: Engine) -> None:
    term_h = 100
    add_price(
        engine,
        "0.50",
        commitment="cud-7",
        committed_gpus=3,
        upfront=Decimal(300),
        valid_to_ms=T0 + term_h * HOUR,
    )
    rows, said = focus(engine)
    of = [row for row in rows if row["CommitmentDiscountId"] == "cud-7"]
    by_status = {row["CommitmentDiscountStatus"]: row for row in of}
    assert len(of) == 3
    # Upfront 300 over 3 GPUs and 100 hours is 1 a GPU-hour; 0.50 comes on top. One of three was seen, for two hours.
    used, unused, bought = by_status["Used"], by_status["Unused"], by_status[""]
    assert (used["ResourceId"], used["EffectiveCost"], used["BilledCost"]) == (B, "3.0", "1.0")
    assert (unused["PricingQuantity"], unused["EffectiveCost"], unused["BilledCost"]) == ("4.0", "6.0", "2.0")
    assert (bought["ChargeCategory"], bought["BilledCost"], bought["EffectiveCost"]) == (
        "Purchase",
        "300.0",
        "0.0",
    )
    assert said.unused_usd == 6
    assert unused["SkuId"] == used["SkuId"] == "H100-SXM5-80GB"
    later, _ = focus(engine, "2026-10-05", "2026-10-06")
    assert sum(row["ChargeCategory"] == "Purchase" for row in later) == 1


def test_what_has_not_been_seen_yet_is_not_unused(engine: Engine) -> None:
    add_price(engine, "0.50", commitment="cud-7", committed_gpus=2)
    ingest(engine, [sample(B, 12, Activity.BUSY, 200.0)], T0 + 3 * HOUR)
    rows, _ = focus(engine)
    (unused,) = [row for row in rows if row["CommitmentDiscountStatus"] == "Unused"]
    assert Decimal(unused["PricingQuantity"]) == pytest.approx(Decimal(130) / 60)
    assert unused["ChargePeriodEnd"] == "2026-10-05T02:10:00Z"


def test_a_commitment_in_a_currency_without_a_rate_is_left_out_and_said(engine: Engine) -> None:
    add_price(engine, "0.50", commitment="cud-9", committed_gpus=3, currency="EUR")
    rows, said = focus(engine)
    assert "cud-9" not in {row["CommitmentDiscountId"] for row in rows}
    assert sum("cud-9" in note and "EUR" in note for note in said.notes) == 1


def test_the_upfront_of_another_month_is_in_its_own_file(engine: Engine) -> None:
    add_price(
        engine,
        "0.50",
        commitment="cud-7",
        committed_gpus=3,
        upfront=Decimal(300),
        valid_from_ms=T0 - 40 * DAY_MS,
        valid_to_ms=T0 + 40 * DAY_MS,
    )
    rows, _ = focus(engine)
    assert "Purchase" not in {row["ChargeCategory"] for row in rows}


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns"])
def test_days_of_any_zone_add_up_and_no_row_crosses_a_month_in_utc(engine: Engine, zone: str) -> None:
    of = replace(settings(engine), accounting_time_zone=zone)
    rows, _ = focus(engine, "2026-10-01", "2026-10-31", of)
    assert total(rows, "BilledCost") == 8
    parts = [
        row for day in range(4, 7) for row in _or_none(engine, f"2026-10-0{day}", f"2026-10-0{day + 1}", of)
    ]
    assert total(parts, "BilledCost") == 8


def _or_none(engine: Engine, from_: str, to: str, of: Settings) -> list[Row]:
    try:
        return focus(engine, from_, to, of)[0]
    except NotFoundError:
        return []


def test_a_new_price_within_a_day_makes_two_rows_of_their_hours(engine: Engine) -> None:
    price(engine, "4.00", B, T0 + HOUR)
    on_the_fly, _ = focus(engine)
    materialise(engine, settings(engine), LATER)
    stored, _ = focus(engine)
    assert sorted(map(repr, stored)) == sorted(map(repr, on_the_fly))
    spans = {
        (row["ChargePeriodStart"][11:16], row["ChargePeriodEnd"][:16], row["BilledCost"])
        for row in stored
        if row["ResourceId"] == B
    }
    assert spans == {("00:00", "2026-10-05T01:00", "2.0"), ("01:00", "2026-10-06T00:00", "4.0")}


@pytest.mark.parametrize("method", [ShareMethod.MIG_SLICE, ShareMethod.MEMORY_TIME])
def test_work_on_mig_slices_is_charged_to_the_slices(ready_database: str, method: ShareMethod) -> None:
    a100 = "NVIDIA A100-SXM4-80GB"
    cut = {"MIG-large": "3g.40gb", "MIG-small": "2g.20gb", "MIG-free": "2g.20gb"}
    big, little = (WorkloadKey("process", key, key, user=key, host="h1") for key in ("big", "little"))
    with closing(open_connection(ready_database)) as connection:
        sink = Ingest(connection)
        slices = [GpuIdentity(uuid, "h1", 0, f"{a100} MIG {name}", 20 * GIB) for uuid, name in cut.items()]
        sink.gpus([GpuIdentity("GPU-card", "h1", 0, a100, 80 * GIB), *slices])
        for uuid in ("GPU-card", *cut):
            known = {"power_w": 300.0, "energy_j": 180_000.0} if uuid == "GPU-card" else {}
            counter = EnergyMethod.COUNTER if known else None
            sink.gpu_samples(
                GpuSample(uuid, T0 + slot * SPAN, SPAN, SPAN, known, counter, Activity.BUSY)
                for slot in range(6)
            )
        held = (
            ("GPU-card", big, 30),
            ("GPU-card", little, 10),
            ("MIG-large", big, 30),
            ("MIG-small", little, 10),
        )
        for uuid, who, gib in held:
            sink.process_samples(
                ProcessSample(uuid, T0 + slot * SPAN, SPAN, who, gib * GIB, None, 1) for slot in range(6)
            )
        sink.commit()
    engine = make_engine(ready_database)
    roll_up(engine, now_ms=NOW, share_method=method)
    add_price(engine, "7.00", scope_kind="all", scope_value="", billing="on_demand")
    on_the_fly, _ = focus(engine)
    materialise(engine, settings(engine), LATER)
    rows, _ = focus(engine)
    assert sorted(map(repr, rows)) == sorted(map(repr, on_the_fly))
    by_resource = {row["ResourceId"]: row for row in rows}
    free = {"GPU-card"} if method is ShareMethod.MIG_SLICE else set()
    assert set(by_resource) == {"MIG-large", "MIG-small"} | free
    assert total(rows, "BilledCost") == 7
    large = by_resource["MIG-large"]
    assert (large["x_MigCardId"], large["ResourceName"], large["x_JobName"]) == (
        "GPU-card",
        "h1/gpu0/3g.40gb",
        "big",
    )
    assert Decimal(large["BilledCost"]) == pytest.approx(Decimal(3 if free else "5.25"), abs=Decimal("0.001"))


@pytest.mark.parametrize(
    ("from_", "to", "said"),
    [
        ("2026-11", "2026-10", "from 2026-11 is not before to 2026-10"),
        ("2026-10-05", "2026-10-05", "is not before"),
        ("soon", "2026-10", "from is 'soon': give a day"),
        ("2026-10", "2026-13", "to is '2026-13': give a day"),
        ("2026-10", "2026-10-32", "to is '2026-10-32'"),
        ("2026-10-05T00:00:00Z", "2026-11", "give a day"),
        ("0001-01", "2026-11", "from is '0001-01'"),
        ("2026-10", "9999-12-31", "to is '9999-12-31'"),
    ],
)
def test_days_that_cannot_be_read_are_refused(from_: str, to: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        window_of(Settings(), from_, to)
    assert said in str(refused.value)


def test_days_without_samples_are_said_with_those_that_have_some(engine: Engine) -> None:
    with pytest.raises(NotFoundError, match="but from 2026-10-05 to 2026-10-05"):
        focus(engine, "2026-01", "2026-02")


def test_an_empty_database_and_one_without_prices_say_so(ready_database: str) -> None:
    with pytest.raises(NotFoundError, match="no samples"):
        focus(make_engine(ready_database), "2026-01", "2026-02")


def test_days_in_which_nothing_has_a_price_say_what_to_do(ready_database: str) -> None:
    with closing(open_connection(ready_database)) as connection:
        sink = Ingest(connection)
        sink.gpus([GpuIdentity(C, "h2", 0, "Card Of Nobody", 16 * GIB)])
        sink.gpu_samples([GpuSample(C, T0, SPAN, SPAN, {}, None, Activity.BUSY)])
        sink.commit()
    engine = make_engine(ready_database)
    roll_up(engine, now_ms=NOW)
    with pytest.raises(GpuwiseError, match=r"no row to export.*have no price"):
        focus(engine)


def test_names_that_a_spreadsheet_would_run_are_defused(engine: Engine) -> None:
    add_price(engine, "1.00", commitment="=HYPERLINK(1)", committed_gpus=2)
    rows, _ = focus(engine)
    ids = {row["CommitmentDiscountId"] for row in rows}
    assert "'=HYPERLINK(1)" in ids
    assert not any(one.startswith("=") for one in ids)


def test_rest_streams_the_file_and_says_where_its_summary_is(filled_database: str) -> None:
    client = client_for(filled_database)
    days = "from=2026-10&to=2026-11"
    answer = client.get(f"/api/v1/exports/focus?{days}&account=site-1&provider=Acme")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-encoding"] == "gzip"
    assert 'filename="gpuwise-focus.csv"' in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert {(row["BillingAccountId"], row["ProviderName"]) for row in rows} == {("site-1", "Acme")}
    link, _, relation = answer.headers["link"].partition(">")
    assert "describedby" in relation
    said = client.get(link.lstrip("<")).json()
    assert (said["rows"], said["billed_usd"], said["unpriced_gpus"]) == (len(rows), "8.00", 1)
    plain = client.get(f"/api/v1/exports/lines?{days}")
    assert len(list(csv.DictReader(io.StringIO(plain.text, newline="")))) == len(rows) + 1


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("from=2026-11&to=2026-10", 400, "is not before"),
        ("from=2026-01&to=2026-02", 404, "no samples"),
        ("from=x&to=2026-02", 400, "from is 'x'"),
        ("from=2026-02", 422, "to: field required"),
    ],
)
@pytest.mark.parametrize("file", ["focus", "lines", "focus/summary"])
def test_rest_refuses_with_a_sentence(
    client: TestClient, file: str, query: str, status: int, said: str
) -> None:
    answer = client.get(f"/api/v1/exports/{file}?{query}")
    assert answer.status_code == status
    assert said in answer.json()["detail"]


def test_an_account_without_a_name_is_refused(client: TestClient) -> None:
    answer = client.get("/api/v1/exports/focus?from=2026-10&to=2026-11&account=")
    assert (answer.status_code, "account" in answer.json()["detail"]) == (422, True)
