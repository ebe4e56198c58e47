"""Times as people write them."""

import pytest

from api.resources.scope import LATEST_MS, parse_time
from core.errors import UsageError

DAY = 1_790_985_600_000  # 2026-10-03T00:00:00Z


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-10-03", DAY),
        ("2026-10-03T00:00:00Z", DAY),
        ("2026-10-03T02:00:00+02:00", DAY),
        ("1d", DAY - 86_400_000),
        ("24h", DAY - 86_400_000),
        ("90m", DAY - 5_400_000),
        ("2w", DAY - 14 * 86_400_000),
        (" 7d ", DAY - 7 * 86_400_000),
    ],
)
def test_days_times_and_ages_are_read(text: str, ms: int) -> None:
    assert parse_time(text, back_from_ms=DAY, flag="since") == ms


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "7y", "", "-3d", "9" * 30 + "d"])
def test_what_cannot_be_read_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"since is .* 7d"):
        parse_time(text, back_from_ms=DAY, flag="since")


@pytest.mark.parametrize("text", ["2026-10-03T00:00:00", "2026-10-03 08:00"])
def test_a_time_without_a_zone_is_refused_for_the_zone(text: str) -> None:
    with pytest.raises(UsageError, match="append Z or an offset"):
        parse_time(text, back_from_ms=DAY, flag="since")


@pytest.mark.parametrize(
    ("text", "ms"), [("999999w", 0), ("0001-01-01", 0), ("9999-12-31T23:59:59Z", LATEST_MS)]
)
def test_times_beyond_the_calendar_are_its_ends(text: str, ms: int) -> None:
    assert parse_time(text, back_from_ms=DAY, flag="since") == ms
