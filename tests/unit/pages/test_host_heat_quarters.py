"""Steps of hours cut into quarters where hours keep them."""

from api.pages import host_heat_quarters
from core.activity import Activity
from core.quarters import OF_GPU, QUARTER_MS, Quarter
from core.units import HOUR_MS
from store.queries.gpu_heat import Step

NOTHING = (None,) * len(OF_GPU)
GAP = Quarter(0.0, None, NOTHING)
KEPT = (
    Quarter(900.0, Activity.EMPTY, (0.0, 70.0, *NOTHING[2:])),
    GAP,
    GAP,
    Quarter(60.0, Activity.BUSY, NOTHING),
)
T0 = 100 * HOUR_MS
LAST = T0 + 3 * QUARTER_MS


def test_quarters_have_their_own_activity_and_gaps_stay_gaps() -> None:
    hours = {(1, T0): {Activity.EMPTY: 900.0, Activity.BUSY: 60.0}}
    assert host_heat_quarters.activities(hours, {(1, T0): KEPT}) == {
        (1, T0): {Activity.EMPTY: 900.0},
        (1, LAST): {Activity.BUSY: 60.0},
    }


def test_an_hour_without_quarters_stands_for_all_four() -> None:
    seconds = {Activity.PARKED: 3_600.0}
    found = host_heat_quarters.activities({(1, T0): seconds}, {(1, T0): None})
    assert found == {(1, T0 + at * QUARTER_MS): seconds for at in range(4)}
    steps = host_heat_quarters.values([Step(1, T0, 55.0)], {(1, T0): None}, "power_w")
    assert steps == [Step(1, T0 + at * QUARTER_MS, 55.0) for at in range(4)]
    told = host_heat_quarters.machine({T0: {"cpu_busy_ratio": 0.5}}, {T0: None})
    assert [told[start]["cpu_busy_ratio"] for start in sorted(told)] == [0.5] * 4


def test_a_quarter_with_samples_and_without_the_counter_is_unknown() -> None:
    steps = host_heat_quarters.values([Step(1, T0, 70.0)], {(1, T0): KEPT}, "power_w")
    assert steps == [Step(1, T0, 70.0), Step(1, LAST, None)]


def test_the_machine_has_its_quarters() -> None:
    quarters = tuple(Quarter(900.0, None, (share, None, 0.0)) for share in (0.1, 0.2, 0.3, 0.4))
    told = host_heat_quarters.machine({T0: {"cpu_busy_ratio": 0.25}}, {T0: quarters})
    assert [told[T0 + at * QUARTER_MS]["cpu_busy_ratio"] for at in range(4)] == [0.1, 0.2, 0.3, 0.4]
    assert told[T0]["cpu_busiest_ratio"] is None
