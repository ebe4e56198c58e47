"""Prices and exchange rates in the store: kept to the last digit, and whatever changes one marks the days it prices."""

from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from core.activity import Activity
from core.errors import StoreError
from core.readings import GpuIdentity
from core.samples import GpuSample
from core.user_price import ExchangeRate, UserPrice
from store import schema
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import exchange_rates, prices
from store.rollup import roll_up

DAY = 86_400_000
T0 = 1_791_158_400_000  # 2026-10-05T00:00:00Z
PRICE = UserPrice(
    id=0,
    scope_kind="label",
    scope_value="pool=train",
    amount_per_gpu_hour=Decimal("1.000001"),
    billing="committed",
    gpus_per_unit=None,
    valid_from_ms=T0,
    valid_to_ms=T0 + 2 * DAY,
    note="=1+1",
    currency="EUR",
    commitment="cud-7",
    committed_gpus=16,
    upfront=Decimal("120000.5"),
)
OWNED = replace(
    PRICE,
    billing="owned",
    commitment=None,
    committed_gpus=None,
    upfront=None,
    inputs={"capex": 330_000.1, "colo_includes_power": True},
)


@pytest.fixture
def days(ready_database: str) -> Engine:
    """Two GPUs on two hosts with four days each, none of them pending."""
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity("GPU-a", "h1", 0, "m"), GpuIdentity("GPU-b", "h2", 0, "m")])
        ingest.gpu_samples(
            [
                GpuSample(uuid, T0 + day * DAY, 600_000, 600_000, {"busy_ratio": 1.0}, None, Activity.BUSY)
                for uuid in ("GPU-a", "GPU-b")
                for day in range(4)
            ]
        )
        ingest.commit()
    engine = make_engine(ready_database)
    assert roll_up(engine, now_ms=T0 + 5 * DAY).pending_left == 0
    _pending(engine)
    return engine


def _pending(engine: Engine) -> list[tuple[str, int]]:
    """GPU and number of the day of every mark; takes them."""
    with engine.begin() as connection:
        found = connection.execute(
            text("SELECT gpu_uuid, day_ms FROM ledger_pending JOIN gpu ON gpu.id = gpu_id ORDER BY 1, 2")
        ).all()
        connection.execute(text("DELETE FROM ledger_pending"))
    return [(uuid, (day_ms - T0) // DAY) for uuid, day_ms in found]


def _both(*numbers: int) -> list[tuple[str, int]]:
    return [(uuid, number) for uuid in ("GPU-a", "GPU-b") for number in numbers]


@pytest.mark.parametrize("price", [PRICE, OWNED])
def test_a_price_comes_back_as_it_was_given(session: Session, price: UserPrice) -> None:
    made = prices.insert_all(session, [price, replace(price, scope_value="pool=serve")])
    session.commit()
    assert [row.id for row in made] == [1, 2]
    assert prices.listing(session) == made
    assert replace(made[0], id=0) == price
    assert prices.get(session, 1) == made[0]


def test_a_rate_comes_back_to_the_last_digit(session: Session) -> None:
    made = exchange_rates.insert_all(
        session,
        [ExchangeRate(0, "VND", T0, Decimal("0.000039876543")), ExchangeRate(0, "KWD", T0, Decimal("3.25"))],
    )
    session.commit()
    assert exchange_rates.listing(session) == sorted(made, key=lambda rate: rate.currency)
    assert session.execute(text("SELECT usd_per_unit FROM exchange_rate ORDER BY id")).scalars().all() == [
        39_876_543,
        3_250_000_000_000,
    ]


def test_a_second_rate_of_a_day_is_refused_and_the_transaction_goes_on(session: Session) -> None:
    rate = ExchangeRate(0, "EUR", T0, Decimal("1.1"))
    exchange_rates.insert_all(session, [rate])
    with pytest.raises(StoreError, match="one rate of a currency a day"):
        exchange_rates.insert_all(session, [replace(rate, from_ms=T0 + DAY), rate])
    session.commit()
    assert [found.from_ms for found in exchange_rates.listing(session)] == [T0]


def test_a_price_marks_the_days_that_it_prices(days: Engine) -> None:
    with session_scope(days) as session:
        key = prices.insert_all(session, [PRICE])[0].id
    assert _pending(days) == _both(0, 1)
    with session_scope(days) as session:
        prices.end(session, key, T0 + DAY)
    assert _pending(days) == _both(1)
    with session_scope(days) as session:
        prices.delete(session, key)
    assert _pending(days) == _both(0)


@pytest.mark.parametrize(
    ("kind", "value", "marked"), [("gpu_uuid", "GPU-b", "GPU-b"), ("host", "h1", "GPU-a"), ("host", "h9", "")]
)
def test_a_price_of_one_gpu_or_host_marks_only_its_days(
    days: Engine, kind: str, value: str, marked: str
) -> None:
    price = replace(PRICE, scope_kind=kind, scope_value=value, valid_from_ms=T0 + DAY + 1)
    with session_scope(days) as session:
        prices.insert_all(session, [price])
    assert _pending(days) == ([(marked, 1)] if marked else [])


def test_a_rate_marks_from_its_day_to_the_next_rates(days: Engine) -> None:
    first, second = (
        ExchangeRate(0, "EUR", T0 + DAY, Decimal("1.1")),
        ExchangeRate(0, "EUR", T0 + 3 * DAY, Decimal("1.2")),
    )
    with session_scope(days) as session:
        exchange_rates.insert_all(session, [second])
    assert _pending(days) == _both(3)
    with session_scope(days) as session:
        made = exchange_rates.insert_all(session, [first])[0]
    assert _pending(days) == _both(1, 2)
    with session_scope(days) as session:
        exchange_rates.replace_one(session, replace(made, usd_per_unit=Decimal("1.3")))
    assert _pending(days) == _both(1, 2)
    with session_scope(days) as session:
        assert exchange_rates.delete(session, made.id)
        assert not exchange_rates.delete(session, made.id)
    assert _pending(days) == _both(1, 2)


def test_what_is_rolled_back_leaves_no_mark(days: Engine) -> None:
    with Session(days) as session:
        prices.insert_all(session, [PRICE])
        session.rollback()
    assert _pending(days) == []


def test_prices_of_before_are_dollars_and_those_the_older_tables_cannot_say_go(database_url: str) -> None:
    schema.upgrade(database_url, "0009")
    columns = "scope_kind, scope_value, usd_per_gpu_hour, billing, gpus_per_unit, valid_from_ms"
    with make_engine(database_url).begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO price ({columns}) VALUES ('host', 'h1', 2500000, 'reserved', 8, 5)"
        )
    schema.upgrade(database_url, "0010")
    with make_engine(database_url).begin() as connection:
        found = connection.exec_driver_sql(
            "SELECT id, scope_value, amount_per_gpu_hour, currency, billing, gpus_per_unit, commitment FROM price"
        )
        assert found.all() == [(1, "h1", 2_500_000, "USD", "reserved", 8, None)]
        for kind, value, currency in (("host", "h2", "EUR"), ("cluster", "c", "USD"), ("model", "m", "USD")):
            connection.exec_driver_sql(
                "INSERT INTO price (scope_kind, scope_value, amount_per_gpu_hour, currency, billing, valid_from_ms) "
                f"VALUES ('{kind}', '{value}', 1, '{currency}', 'committed', 0)"
            )
    schema.downgrade(database_url, "0009")
    with make_engine(database_url).begin() as connection:
        left = connection.exec_driver_sql(
            "SELECT scope_value, usd_per_gpu_hour, billing FROM price ORDER BY id"
        )
        assert left.all() == [("h1", 2_500_000, "reserved"), ("m", 1, "reserved")]
