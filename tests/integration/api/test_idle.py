"""Is it idle, since when: answered for schedulers; whatever is not known is not idle."""

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from fleet_for_tests import H100, settings_for
from starlette.testclient import TestClient

from api.app import create_app
from core.activity import Activity
from core.readings import GpuIdentity, WorkloadKey
from core.samples import GpuSample, ProcessSample
from gpuwise.__main__ import main
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest
from store.rollup import roll_up

T0 = 1_791_158_400_000  # 2026-10-05T00:00:00Z
MINUTE = 60_000
NOW = T0 + 6 * 60 * MINUTE + 30 * MINUTE + 5_000
END = 390
"""Minutes from T0 to the end of the newest samples: 06:30."""
TRAIN = WorkloadKey("slurm_job", "77", "train", user="ann", host="h1")
POD = WorkloadKey("pod", "uid-1", "bert-0", host="h1", attributes=(("namespace", "ml"),))
TWIN = WorkloadKey("pod", "uid-2", "bert-0", host="h2", attributes=(("namespace", "test"),))


def stretch(
    uuid: str, activity: Activity, start: int, end: int = END, *, covered: float = 1.0, step: int = 1
) -> list[GpuSample]:
    """Samples of a minute (or ``step`` minutes) each, from one minute after T0 to another."""
    span = step * MINUTE
    return [
        GpuSample(uuid, T0 + at * MINUTE, span, int(span * covered), {"busy_ratio": 0.0}, None, activity)
        for at in range(start, end, step)
    ]


def holding(uuid: str, who: WorkloadKey, start: int, end: int = END) -> list[ProcessSample]:
    """A workload on a GPU, minute by minute."""
    return [ProcessSample(uuid, T0 + at * MINUTE, MINUTE, who, 1e9, None, 1) for at in range(start, end)]


class Site:
    """A database under test: fill it, then ask over REST."""

    def __init__(self, url: str) -> None:
        self.url = url
        app = create_app(settings_for(url))
        app.state.clock = lambda: NOW
        self.client = TestClient(app, base_url="http://127.0.0.1:8787", raise_server_exceptions=False)

    def fill(
        self, gpus: Sequence[GpuIdentity], samples: Sequence[GpuSample], held: Sequence[ProcessSample] = ()
    ) -> None:
        with closing(open_connection(self.url)) as connection:
            ingest = Ingest(connection)
            ingest.gpus(list(gpus))
            ingest.gpu_samples(list(samples))
            ingest.process_samples(list(held))
            ingest.commit()
        roll_up(make_engine(self.url), now_ms=NOW)

    def ask(self, **asked: str) -> Any:
        answer = self.client.get("/api/v1/idle", params=asked)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refusal(self, **asked: str) -> tuple[int, str]:
        answer = self.client.get("/api/v1/idle", params=asked)
        return answer.status_code, answer.json()["detail"]


@pytest.fixture
def site(ready_database: str) -> Site:
    """An empty site, on each kind of database."""
    return Site(ready_database)


def gpu(uuid: str, host: str | None = "h1", index: int | None = 0, model: str = H100) -> GpuIdentity:
    return GpuIdentity(uuid, host, index, model, 80 << 30)


A, B = gpu("GPU-a"), gpu("GPU-b", index=1)


def test_a_parked_gpu_is_idle_since_its_work_ended(site: Site) -> None:
    site.fill([A], stretch("GPU-a", Activity.BUSY, 0, 345) + stretch("GPU-a", Activity.PARKED, 345))
    found = site.ask(gpu="GPU-a")
    assert found["subject"] == {"kind": "gpu", "id": "GPU-a"}
    assert (found["idle"], found["activity"], found["since"]) == (True, "parked", "2026-10-05T05:45:00.000Z")
    assert (found["idle_s"], found["coverage_ratio"]) == (45 * 60, 1.0)
    assert [one["gpu_uuid"] for one in found["gpus"]] == ["GPU-a"]


def test_idleness_of_more_than_the_raw_hours_is_followed_through_the_hours_before(site: Site) -> None:
    site.fill([A], stretch("GPU-a", Activity.BUSY, 0, 90) + stretch("GPU-a", Activity.EMPTY, 90))
    found = site.ask(gpu="GPU-a")
    # It fell idle at 01:30; of hours only whole ones count, so it is said to have been later, never earlier.
    assert (found["since"], found["idle_s"]) == ("2026-10-05T02:00:00.000Z", 270 * 60)


@pytest.mark.parametrize(
    "activity",
    [Activity.STARVED, Activity.SPINNING, Activity.UNKNOWN, Activity.BUSY, Activity.MEMORY_BOUND],
)
def test_what_works_waits_or_cannot_be_told_is_not_idle(site: Site, activity: Activity) -> None:
    site.fill([A], stretch("GPU-a", Activity.EMPTY, 0, END - 1) + stretch("GPU-a", activity, END - 1))
    found = site.ask(gpu="GPU-a")
    assert (found["idle"], found["since"], found["idle_s"]) == (False, None, None)
    assert found["activity"] == activity.value
    assert found["why"]


def test_a_silent_gpu_is_not_idle(site: Site) -> None:
    site.fill([A], stretch("GPU-a", Activity.EMPTY, 0, END - 4))
    found = site.ask(gpu="GPU-a")
    assert (found["idle"], found["activity"]) == (False, None)
    assert found["why"] == "silent: its newest sample ended at 2026-10-05T06:26:00Z"


def test_samples_of_the_future_are_not_taken_for_now(site: Site) -> None:
    site.fill([A], stretch("GPU-a", Activity.EMPTY, 0, END + 60))
    found = site.ask(gpu="GPU-a")
    assert not found["idle"]
    assert "ahead of this clock" in found["why"]


def test_a_gpu_that_was_never_sampled_is_not_idle(site: Site) -> None:
    site.fill([A], [])
    assert (site.ask(gpu="GPU-a")["idle"], site.ask(host="h1")["idle"]) == (False, False)


def test_a_gap_ends_the_stretch(site: Site) -> None:
    site.fill([A], stretch("GPU-a", Activity.EMPTY, 0, 350) + stretch("GPU-a", Activity.EMPTY, 360))
    assert site.ask(gpu="GPU-a")["since"] == "2026-10-05T06:00:00.000Z"


def test_a_lost_sample_is_bridged_and_lowers_the_coverage(site: Site) -> None:
    site.fill(
        [A],
        stretch("GPU-a", Activity.BUSY, 0, 330)
        + stretch("GPU-a", Activity.EMPTY, 330, 350)
        + stretch("GPU-a", Activity.EMPTY, 352),
    )
    found = site.ask(gpu="GPU-a")
    assert (found["since"], found["coverage_ratio"]) == ("2026-10-05T05:30:00.000Z", pytest.approx(58 / 60))


def test_a_thin_sample_does_not_make_idle(site: Site) -> None:
    site.fill([A], stretch("GPU-a", Activity.EMPTY, 0, END, covered=0.4))
    found = site.ask(gpu="GPU-a")
    assert (found["idle"], found["coverage_ratio"]) == (False, pytest.approx(0.4))


def test_an_hour_with_a_gap_in_it_is_not_counted(site: Site) -> None:
    site.fill([A], stretch("GPU-a", Activity.EMPTY, 0, 190) + stretch("GPU-a", Activity.EMPTY, 200))
    assert site.ask(gpu="GPU-a")["since"] == "2026-10-05T04:00:00.000Z"


def test_a_host_is_idle_since_its_last_gpu_is(site: Site) -> None:
    site.fill(
        [A, B],
        stretch("GPU-a", Activity.EMPTY, 0)
        + stretch("GPU-b", Activity.BUSY, 0, 380)
        + stretch("GPU-b", Activity.PARKED, 380),
    )
    found = site.ask(host="h1")
    assert (found["idle"], found["since"], found["activity"]) == (True, "2026-10-05T06:20:00.000Z", "parked")
    assert [one["since"] for one in found["gpus"]] == ["2026-10-05T00:00:00.000Z", "2026-10-05T06:20:00.000Z"]


def test_one_gpu_that_is_silent_keeps_its_host_from_idleness(site: Site) -> None:
    site.fill([A, B], stretch("GPU-a", Activity.EMPTY, 0) + stretch("GPU-b", Activity.EMPTY, 0, 300))
    found = site.ask(host="h1")
    assert (found["idle"], [one["idle"] for one in found["gpus"]]) == (False, [True, False])
    assert "GPU-b: silent" in found["why"]


def test_a_card_is_as_idle_as_its_slices(site: Site) -> None:
    part = gpu("MIG-1", model=f"{H100} MIG 1g.10gb")
    site.fill([A, part], stretch("GPU-a", Activity.PARKED, 0) + stretch("MIG-1", Activity.UNKNOWN, 0))
    assert site.ask(gpu="GPU-a")["idle"] is False
    assert "MIG slice MIG-1" in site.ask(host="h1")["why"]
    assert site.ask(gpu="MIG-1")["idle"] is False
    assert len(site.ask(host="h1")["gpus"]) == 1


def test_a_slice_and_its_card_are_idle_together(site: Site) -> None:
    part = gpu("MIG-GPU-a/3/0", model=f"{H100} MIG 1g.10gb")
    site.fill(
        [A, part],
        stretch("GPU-a", Activity.PARKED, 0)
        + stretch("MIG-GPU-a/3/0", Activity.BUSY, 0, 380)
        + stretch("MIG-GPU-a/3/0", Activity.PARKED, 380),
    )
    assert site.ask(gpu="MIG-GPU-a/3/0")["since"] == "2026-10-05T06:20:00.000Z"
    assert site.ask(gpu="GPU-a")["since"] == "2026-10-05T06:20:00.000Z"


def test_a_slice_of_a_card_without_a_host_is_found_by_its_uuid(site: Site) -> None:
    part = gpu("MIG-GPU-a/3/0", None, None, f"{H100} MIG 1g.10gb")
    other = gpu("MIG-GPU-ab/3/0", None, None, f"{H100} MIG 1g.10gb")
    idle_card = stretch("GPU-a", Activity.PARKED, 300)
    site.fill([gpu("GPU-a", None, None), other], idle_card + stretch("MIG-GPU-ab/3/0", Activity.BUSY, 300))
    assert site.ask(gpu="GPU-a")["idle"] is True
    site.fill([part], stretch("MIG-GPU-a/3/0", Activity.BUSY, 300))
    assert site.ask(gpu="GPU-a")["idle"] is False


def test_a_slice_that_was_deleted_keeps_no_card_from_idleness(site: Site) -> None:
    part = gpu("MIG-1", model=f"{H100} MIG 1g.10gb")
    site.fill([A, part], stretch("GPU-a", Activity.PARKED, 0) + stretch("MIG-1", Activity.BUSY, 0, 300))
    assert site.ask(gpu="GPU-a")["idle"] is True


def test_a_job_is_idle_where_all_its_gpus_are(site: Site) -> None:
    site.fill(
        [A, B],
        stretch("GPU-a", Activity.PARKED, 0) + stretch("GPU-b", Activity.BUSY, 0),
        holding("GPU-a", TRAIN, 0) + holding("GPU-b", TRAIN, 0),
    )
    found = site.ask(job="77")
    assert (found["idle"], [one["idle"] for one in found["gpus"]]) == (False, [True, False])
    assert site.ask(workload="slurm_job/h1/77")["idle"] is False


def test_a_pod_that_came_a_moment_ago_has_not_idled_for_as_long_as_its_gpu(site: Site) -> None:
    site.fill(
        [A, B],
        stretch("GPU-a", Activity.EMPTY, 0, 385)
        + stretch("GPU-a", Activity.PARKED, 385)
        + stretch("GPU-b", Activity.BUSY, 0),
        holding("GPU-a", POD, 385),
    )
    found = site.ask(pod="ml/bert-0")
    assert (found["idle"], found["since"], found["idle_s"]) == (True, "2026-10-05T06:25:00.000Z", 300)
    assert site.ask(pod="bert-0") | {"subject": 0} == found | {"subject": 0}
    assert site.ask(pod="uid-1")["idle"] is True
    assert site.ask(gpu="GPU-a")["since"] == "2026-10-05T00:00:00.000Z"


def test_a_pod_that_has_held_its_gpu_for_hours_is_followed_through_them(site: Site) -> None:
    site.fill([A], stretch("GPU-a", Activity.PARKED, 0), holding("GPU-a", POD, 90))
    assert site.ask(pod="ml/bert-0")["since"] == "2026-10-05T02:00:00.000Z"


def test_a_pod_that_let_go_of_its_gpu_is_not_idle(site: Site) -> None:
    site.fill([A], stretch("GPU-a", Activity.EMPTY, 0), holding("GPU-a", POD, 0, 300))
    found = site.ask(pod="ml/bert-0")
    assert (found["idle"], found["gpus"], found["activity"]) == (False, [], None)
    assert "not seen to hold any GPU now" in found["why"]


def test_a_job_of_which_one_host_fell_silent_is_not_idle(site: Site) -> None:
    far = gpu("GPU-c", "h2")
    site.fill(
        [A, far],
        stretch("GPU-a", Activity.PARKED, 0) + stretch("GPU-c", Activity.PARKED, 0, 310),
        holding("GPU-a", TRAIN, 0)
        + holding("GPU-c", WorkloadKey("slurm_job", "77", "train", user="ann", host="h2"), 0, 310),
    )
    found = site.ask(job="77")
    assert (found["idle"], len(found["gpus"])) == (False, 2)
    assert "silent" in found["why"]


def test_pods_of_one_name_in_two_namespaces_are_told_apart(site: Site) -> None:
    other = gpu("GPU-c", "h2")
    site.fill(
        [A, other],
        stretch("GPU-a", Activity.PARKED, 0) + stretch("GPU-c", Activity.BUSY, 0),
        holding("GPU-a", POD, 0) + holding("GPU-c", TWIN, 0),
    )
    assert (site.ask(pod="ml/bert-0")["idle"], site.ask(pod="test/bert-0")["idle"]) == (True, False)
    status, detail = site.refusal(pod="bert-0")
    assert (status, "NAMESPACE/NAME" in detail) == (400, True)


@pytest.mark.parametrize("kind", ["gpu", "host", "pod", "job", "workload"])
def test_an_unknown_name_is_not_found(site: Site, kind: str) -> None:
    status, detail = site.refusal(**{kind: "no/such/thing"})
    assert (status, detail.lower().startswith(f"no {kind} no/such/thing")) == (404, True)


def test_one_thing_is_asked_at_a_time(site: Site) -> None:
    assert site.refusal()[0] == 400
    assert site.refusal(gpu="GPU-a", host="h1") == (
        400,
        "give one of gpu, host, pod, job and workload: 2 given",
    )


def test_the_command_says_it_as_an_exit_code(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.clock.now_ms", lambda: NOW)
    site.fill([A, B], stretch("GPU-a", Activity.EMPTY, 0) + stretch("GPU-b", Activity.BUSY, 0))
    words = ["--database-url", site.url]
    assert main(["idle", "--gpu", "GPU-a", *words]) == 0
    assert capsys.readouterr().out == (
        "gpu GPU-a is idle: nothing holds it, since 2026-10-05T00:00:00Z at the latest\n"
    )
    assert main(["idle", "--host", "h1", "--json", *words]) == 3
    assert json.loads(capsys.readouterr().out) == site.ask(host="h1")
    assert main(["idle", "--host", "h1", *words]) == 3
    assert "host h1 is not known to be idle: 1 of 2 GPUs not known to be idle" in capsys.readouterr().out
    assert main(["idle", "--gpu", "GPU-x", *words]) == 2
    assert main(["idle", *words]) == 2
