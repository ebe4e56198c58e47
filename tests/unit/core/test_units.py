import pytest

from core.metrics import BY_NAME, ENGINE_METRICS, GPU_METRICS, HOST_METRICS, Fold, Kind, Metric
from core.plausible import RANGES, bounds, plausible
from core.units import Unit, per_base


@pytest.mark.parametrize(
    ("text", "raw", "base"),
    [
        ("%", 97, 0.97),
        ("MiB", 65247, 65247 * 2**20),
        (" W", 700, 700.0),
        ("MHz", 1980, 1.98e9),
        ("MB/s", 38, 38e6),
        ("mJ", 5, 0.005),
    ],
)
def test_printed_units_become_base_units(text: str, raw: float, base: float) -> None:
    assert raw * per_base(text) == pytest.approx(base)


def test_an_unknown_unit_is_refused_rather_than_guessed() -> None:
    with pytest.raises(KeyError):
        per_base("furlong")


def test_a_metric_without_its_unit_in_the_name_is_refused() -> None:
    with pytest.raises(ValueError, match="must end in _w"):
        Metric("power", Unit.WATT, Kind.GAUGE, Fold.MEAN, "Power.", "somewhere")


def test_metric_names_are_unique_and_explained() -> None:
    metrics = GPU_METRICS + ENGINE_METRICS + HOST_METRICS
    assert len(BY_NAME) == len(metrics)
    assert all(metric.help.endswith(".") and metric.source for metric in metrics)


def test_what_a_metric_folds_is_a_reading_some_metric_declares() -> None:
    declared = {metric.name for metric in GPU_METRICS + ENGINE_METRICS}
    assert {metric.reading for metric in GPU_METRICS + ENGINE_METRICS} <= declared


def test_no_two_metrics_claim_the_same_dcgm_field() -> None:
    fields = [metric.dcgm for metric in GPU_METRICS if metric.dcgm]
    assert len(fields) == len(set(fields))


@pytest.mark.parametrize("metric", GPU_METRICS + ENGINE_METRICS, ids=lambda metric: metric.name)
def test_every_metric_has_a_plausible_range_with_a_reason(metric: Metric) -> None:
    least, most = bounds(metric.reading)
    assert plausible(metric.reading, least) == least
    assert plausible(metric.reading, least - 1) is None
    assert plausible(metric.reading, most * 1.1) is None
    assert RANGES[metric.reading].reason
