"""Thresholds and exclusions in ``gpuwise.toml``."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.errors import SettingsError
from core.rule_settings import Exclusion, RuleSettings, ScopedThresholds, Selector
from core.settings import Settings, load

WHOLE = """
port = 9000
minimum_saving_usd_month = 50

[rules.small-batch]
min_small_ratio = 0.3

[[rules.scope]]
rule = "small-batch"
host = "dev-*"
label = "namespace=ml"
min_small_ratio = 0.6

[[exclusion]]
gpu = "GPU-1*"
until = 2026-12-04
reason = "hot spare until Friday."
rule = "empty-gpu"

[[exclusion]]
host = "lab"
until = "2026-12-04T12:00:00+02:00"
reason = "rebuilt"
"""


def of(text: str, folder: Path) -> Settings:
    file = folder / "gpuwise.toml"
    file.write_text(text)
    return load(None, {"GPUWISE_CONFIG": str(file)})


def test_tables_stand_beside_flat_settings(tmp_path: Path) -> None:
    settings = of(WHOLE, tmp_path)
    assert (settings.port, settings.minimum_saving_usd_month) == (9000, 50.0)
    assert settings.rules.fleet == {"small-batch": {"min_small_ratio": 0.3}}
    (scope,) = settings.rules.scoped
    assert scope.selectors == (Selector("host", "dev-*"), Selector("label", "namespace=ml"))
    assert (scope.rule_id, scope.values) == ("small-batch", {"min_small_ratio": 0.6})


def test_an_exclusion_ends_with_its_day_or_at_its_time(tmp_path: Path) -> None:
    day, time = of(WHOLE, tmp_path).rules.exclusions
    assert day.until == datetime(2026, 12, 5, tzinfo=UTC)
    assert day.sentence == "Excluded until 2026-12-04: hot spare until Friday."
    assert time.until == datetime(2026, 12, 4, 10, tzinfo=UTC)
    assert time.rule_id is None


def test_without_a_file_nothing_is_set() -> None:
    assert Settings().rules.fleet == {}
    assert Settings().minimum_saving_usd_month == 20.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[exclusion]]\nhost = "a"\nreason = "x"', "until is missing"),
        ('[[exclusion]]\nhost = "a"\nuntil = "Friday"\nreason = "x"', "until is 'Friday'"),
        ('[[exclusion]]\nhost = "a"\nuntil = 2026-12-04T10:00:00\nreason = "x"', "names no time zone"),
        ('[[exclusion]]\nhost = "a"\nuntil = 2026-12-04', "reason is missing"),
        ('[[exclusion]]\nuntil = 2026-12-04\nreason = "x"', "names no part of the fleet"),
        ('[[exclusion]]\nhots = "a"\nuntil = 2026-12-04\nreason = "x"', "unknown key 'hots'"),
        (
            '[[exclusion]]\nhost = "a"\nuntil = 2026-12-04\nreason = "x"\nsince = 2026-12-05',
            "since is not before",
        ),
        ('[[exclusion]]\nhost = "a"\nuntil = 2026-12-04\nreason = "x"\nsince = 7', "since is 7"),
        ('[exclusion]\nhost = "a"', "double brackets"),
        ("[rules]\nsmall-batch = 3", r"\[rules.small-batch\] is 3"),
        ('[[rules.scope]]\nhost = "a"\nmin_gain = 2', "rule is missing"),
        ('[[rules.scope]]\nrule = "small-batch"\nhost = "a"', "sets no threshold"),
        ('[[rules.scope]]\nrule = "small-batch"\nlabel = "ml"\nmin_gain = 2', "use NAME=VALUE"),
        ('[[rules.scope]]\nrule = "small-batch"\nhost = 3\nmin_gain = 2', "host is 3"),
    ],
)
def test_mistakes_name_table_and_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as raised:
        of(text, tmp_path)
    assert "gpuwise.toml" in str(raised.value)


def test_an_exclusion_holds_from_its_first_day_to_its_last(tmp_path: Path) -> None:
    text = '[[exclusion]]\nhost = "a"\nsince = 2026-12-02\nuntil = 2026-12-04\nreason = "rebuilt"'
    (one,) = of(text, tmp_path).rules.exclusions
    days = [datetime(2026, 12, day, hour, tzinfo=UTC) for day, hour in ((1, 23), (2, 0), (4, 23), (5, 0))]
    assert [one.holds_at(day) for day in days] == [False, True, True, False]
    assert one.who == "gpuwise.toml"


DEV, LAB = Selector("host", "dev-*"), Selector("host", "lab")
OWNED = Selector("owner", "ml")


def scoped(values: dict[str, float], *selectors: Selector) -> ScopedThresholds:
    return ScopedThresholds("small-batch", selectors, values, "here")


def test_what_comes_later_wins_key_by_key_for_the_fleet() -> None:
    first = RuleSettings(fleet={"small-batch": {"min_gain": 2, "min_busy_s": 600}, "off-hours": {"a": 1}})
    both = first.then(RuleSettings(fleet={"small-batch": {"min_gain": 3}}))
    assert both.fleet == {"small-batch": {"min_gain": 3, "min_busy_s": 600}, "off-hours": {"a": 1}}
    assert first.fleet["small-batch"]["min_gain"] == 2


def test_what_comes_later_wins_key_by_key_for_the_same_part_and_is_asked_last() -> None:
    first = RuleSettings(
        scoped=(scoped({"min_gain": 2, "min_busy_s": 600}, DEV, OWNED), scoped({"min_gain": 4}, LAB))
    )
    both = first.then(RuleSettings(scoped=(scoped({"min_gain": 3}, OWNED, DEV),)))
    assert [(one.selectors, one.values) for one in both.scoped] == [
        ((LAB,), {"min_gain": 4}),
        ((OWNED, DEV), {"min_gain": 3, "min_busy_s": 600}),
    ]


def test_exclusions_of_both_hold() -> None:
    one, two = (
        Exclusion((part,), None, datetime(2026, 12, 4, tzinfo=UTC), "spare", "here") for part in (DEV, LAB)
    )
    assert RuleSettings(exclusions=(one,)).then(RuleSettings(exclusions=(two,))).exclusions == (one, two)
