"""The demo tells who pays, at which tariff and budget; what somebody changes of it stays."""

from pathlib import Path

from api.resources import budgets, owners, tariffs
from gpuwise.demo import demo_settings, seed
from store.engine import make_engine, session_scope

NOW_MS = 1_794_960_000_000


def test_owners_budgets_and_tariff_are_told_once(tmp_path: Path) -> None:
    settings = demo_settings(f"sqlite:///{tmp_path / 'demo.db'}")
    seed(settings, NOW_MS, days=1, workers=0)
    engine = make_engine(settings.database_url)
    with session_scope(engine) as session:
        told = owners.rows(session, NOW_MS)
        assert [rule.team for rule in told if rule.user == "svc-search"] == ["assistants"]
        assert [one.name for one in budgets.rows(session, settings, NOW_MS)] == [
            "Assistants",
            "Media",
            "Research",
        ]
        assert [one.name for one in tariffs.rows(session)] == ["hall, day and night"]
        owners.remove(session, told[0].id)
    seed(settings, NOW_MS, days=1, workers=0)
    with session_scope(engine) as session:
        assert len(owners.rows(session, NOW_MS)) == len(told) - 1
