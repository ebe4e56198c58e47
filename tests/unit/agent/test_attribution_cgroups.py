"""Cgroup files as container runtimes, kubelets, Slurm and systemd write them."""

import pytest

from agent.attribution.cgroups import NOWHERE, Place, parse

ID = "0123456789abcdef" * 4
INNER = "fedcba9876543210" * 4
UID = "3fd1e2a4-9b0c-4d5e-8f60-1a2b3c4d5e6f"
UNDER = UID.replace("-", "_")
STATIC = "5f3a9c1b2d4e6f708192a3b4c5d6e7f8"


@pytest.mark.parametrize(
    ("text", "container_id", "runtime"),
    [
        (f"0::/system.slice/docker-{ID}.scope", ID, "docker"),
        (f"0::/system.slice/docker-{ID}.scope/init.scope", ID, "docker"),
        (f"12:memory:/docker/{ID}\n1:name=systemd:/docker/{ID}\n", ID, "docker"),
        (f"0::/../docker-{ID}.scope", ID, "docker"),
        (f"0::/../../docker/{ID}/system.slice/app.service", ID, "docker"),
        (f"0::/machine.slice/libpod-{ID}.scope/container", ID, "podman"),
        (
            f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container",
            ID,
            "podman",
        ),
        (f"0::/machine.slice/libpod_pod_{INNER}.slice/libpod-{ID}.scope", ID, "podman"),
        (f"0::/system.slice/nerdctl-{ID}.scope", ID, "containerd"),
        (f"0::/default/{ID}", ID, None),
        (f"0::/ecs/0a1b2c3d4e5f60718293a4b5c6d7e8f9/{ID}", ID, None),
        (
            f"0::/docker/{ID}/kubelet.slice/kubelet-kubepods-pod{UNDER}.slice/cri-containerd-{INNER}.scope",
            INNER,
            "containerd",
        ),
        (f"0::/system.slice/docker-{ID[:63]}.scope", None, None),
        (f"0::/system.slice/docker-{ID}0.scope", None, None),
    ],
)
def test_the_innermost_container_is_found_anywhere_in_a_path(
    text: str, container_id: str | None, runtime: str | None
) -> None:
    place = parse(text)
    assert (place.container_id, place.runtime) == (container_id, runtime)


@pytest.mark.parametrize(
    ("path", "runtime"),
    [
        (
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDER}.slice/cri-containerd-{ID}.scope",
            "containerd",
        ),
        (f"/kubepods.slice/kubepods-pod{UNDER}.slice/crio-{ID}.scope", "crio"),
        (
            f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UNDER}.slice/docker-{ID}.scope",
            "docker",
        ),
        (f"/kubepods/burstable/pod{UID}/{ID}", None),
        (f"/kubepods/pod{UID}/{ID}", None),
        (f"/kubepods/besteffort/pod{UID}/crio-{ID}", "crio"),
        (
            f"/system.slice/containerd.service/kubepods-besteffort-pod{UNDER}.slice:cri-containerd:{ID}",
            "containerd",
        ),
        (f"/../../kubepods-burstable-pod{UNDER}.slice/cri-containerd-{ID}.scope", "containerd"),
    ],
)
@pytest.mark.parametrize("line", ["0::{}\n", "11:memory:{}\n10:devices:{}\n1:name=systemd:{}\n0::/\n"])
def test_a_pod_is_found_under_both_drivers_and_every_class_of_service(
    path: str, runtime: str | None, line: str
) -> None:
    place = parse(line.replace("{}", path))
    assert (place.pod_uid, place.container_id, place.runtime) == (UID, ID, runtime)


@pytest.mark.parametrize(
    "path",
    [
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice/crio-{ID}.scope",
        f"/kubepods/burstable/pod{STATIC}/{ID}",
    ],
)
def test_a_static_pod_has_a_uid_without_dashes(path: str) -> None:
    assert parse(f"0::{path}").pod_uid == STATIC


@pytest.mark.parametrize(
    ("text", "job", "step", "uid"),
    [
        ("5:memory:/slurm/uid_1000/job_1234/step_0/task_3\n1:name=systemd:/system.slice/slurmd.service\n", "1234", "0", 1000),
        ("5:memory:/slurm_node01/uid_1000/job_77/step_batch/task_0\n", "77", "batch", 1000),
        ("0::/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0\n", "1234", "0", None),
        ("0::/system.slice/node01_slurmstepd.scope/job_9/step_extern/user/task_special\n", "9", "extern", None),
        ("0::/../../job_1234/step_0\n", None, None, None),
        ("0::/user.slice/job_1/step_0\n", None, None, None),
    ],
)  # fmt: skip
def test_a_slurm_job_is_found_in_both_versions_and_with_several_daemons(
    text: str, job: str | None, step: str | None, uid: int | None
) -> None:
    place = parse(text)
    assert (place.slurm_job, place.slurm_step, place.slurm_uid) == (job, step, uid)


@pytest.mark.parametrize(
    ("text", "unit", "managed"),
    [
        ("0::/system.slice/vllm.service\n", "vllm.service", False),
        ("0::/system.slice/system-vllm.slice/vllm@8b.service/worker\n", "vllm@8b.service", False),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/lab.service\n", "lab.service", True),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-1.scope\n",
            "user@1000.service",
            False,
        ),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", "session-3.scope", False),
        (
            "4:memory:/system.slice/ssh.service\n1:name=systemd:/user.slice/user-0.slice/session-3.scope\n",
            "session-3.scope",
            False,
        ),
    ],
)
def test_the_deepest_unit_of_systemds_own_hierarchy_counts(text: str, unit: str, managed: bool) -> None:
    place = parse(text)
    assert (place.unit, place.of_user_manager) == (unit, managed)


def test_a_session_names_its_user() -> None:
    place = parse("0::/user.slice/user-1000.slice/session-c3.scope\n")
    assert place == Place(unit="session-c3.scope", user_uid=1000, session="c3")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/lxc.payload.web1/system.slice/x.service", "web1"),
        ("/lxc/101/ns/user.slice", "101"),
        ("/lxc.monitor.web1", None),
        (f"/lxc/{ID}", None),
    ],
)
def test_an_lxc_container_is_known_by_name(path: str, name: str | None) -> None:
    assert parse(f"0::{path}\n").lxc_name == name


@pytest.mark.parametrize(
    "text", ["", "0::/\n", "nonsense", "0:\n::\n", "12:memory:/\n0::/\n", "0::relative\n"]
)
def test_what_says_nothing_is_nowhere(text: str) -> None:
    assert parse(text) == NOWHERE
