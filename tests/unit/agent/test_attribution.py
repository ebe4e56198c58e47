"""Workloads of processes as hosts of every kind show them."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_proc import BOOT_S, HOST_NAMESPACE, OTHER_NAMESPACE, FakeProc

from agent.attribution import Attribution, sees_host_pids
from agent.attribution.pods import PodName, PodNames
from agent.attribution.users import Users
from core.readings import WorkloadKey

ID = "0123456789abcdef" * 4
UID = "3fd1e2a4-9b0c-4d5e-8f60-1a2b3c4d5e6f"
POD = f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope\n"
JOB = "0::/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0\n"


class NamedUsers(Users):
    """Knows alice (1000) and root."""

    def known_name(self, uid: int) -> str | None:
        return {0: "root", 1000: "alice"}.get(uid)


class Clock:
    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    folder = tmp_path / "pods"
    folder.mkdir()
    return folder


@pytest.fixture
def attribution(proc: FakeProc, clock: Clock, pods: Path) -> Attribution:
    return Attribution("node", proc=proc.root, pods=pods, monotonic=clock, users=NamedUsers())


def of(key: WorkloadKey) -> dict[str, str]:
    return dict(key.attributes)


def test_a_plain_process_is_itself(proc: FakeProc, attribution: Attribution) -> None:
    proc.add(7, comm="pt_main_thread", exe="/usr/bin/python3.11 (deleted)", start_ticks=12_345)
    key = attribution.workload(7)
    assert (key.kind, key.key) == ("process", f"7:{BOOT_S * 1000 + 123_450}")
    assert (key.name, key.user, key.host) == ("python3.11", "alice", "node")
    assert key.attributes == (
        ("executable", "python3.11"),
        ("systemd_unit", "session-3.scope"),
        ("uid", "1000"),
    )


def test_a_name_with_parentheses_and_spaces_moves_no_field(proc: FakeProc, attribution: Attribution) -> None:
    proc.add(7, comm="a) S 1 (b c)", start_ticks=500)
    key = attribution.workload(7)
    assert (key.key, key.name) == (f"7:{BOOT_S * 1000 + 5000}", "a) S 1 (b c)")


@pytest.mark.parametrize(
    ("cgroup", "told"),
    [
        (f"0::/system.slice/docker-{ID}.scope\n", ("container", ID, f"python3 in {ID[:12]}", "1000")),
        (f"5:memory:/docker/{ID}\n0::/\n", ("container", ID, f"python3 in {ID[:12]}", "1000")),
        (
            f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope\n",
            ("container", ID, f"python3 in {ID[:12]}", "alice"),
        ),
        ("0::/lxc.payload.web1/system.slice/x.service\n", ("container", "web1", "python3 in web1", "1000")),
        ("0::/system.slice/vllm.service\n", ("systemd_unit", "vllm.service", "vllm.service", "alice")),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/lab.service\n",
            ("systemd_unit", "1000/lab.service", "lab.service", "alice"),
        ),
        (POD, ("pod", UID, "pod 3fd1e2a4", "1000")),
        (JOB, ("slurm_job", "1234", "job 1234", "alice")),
    ],
)
def test_the_workload_is_what_the_kernel_accounts_the_process_to(
    proc: FakeProc, attribution: Attribution, cgroup: str, told: tuple[str, str, str, str]
) -> None:
    proc.add(7, cgroup=cgroup)
    found = attribution.workload(7)
    assert (found.kind, found.key, found.name, found.user) == told


@pytest.mark.parametrize(
    "unit",
    ["user@1000", "ssh", "sshd@3-10.0.0.1:22", "slurmd", "containerd", "kubelet", "docker", "cron", "crio"],
)
def test_a_service_that_runs_the_work_of_others_is_no_workload(
    proc: FakeProc, attribution: Attribution, unit: str
) -> None:
    proc.add(7, cgroup=f"0::/system.slice/{unit}.service\n")
    assert attribution.workload(7).kind == "process"


def test_a_pod_is_named_by_the_kubelets_log_folder(
    proc: FakeProc, attribution: Attribution, pods: Path
) -> None:
    (pods / f"ml_llama-7f9c-x2_{UID}").mkdir()
    proc.add(7, cgroup=POD, uid=0)
    key = attribution.workload(7)
    assert (key.kind, key.name, key.user) == ("pod", "llama-7f9c-x2", "0")
    assert of(key) == {
        "container_id": ID,
        "executable": "python3",
        "namespace": "ml",
        "pod": "llama-7f9c-x2",
        "pod_uid": UID,
        "uid": "0",
    }


def test_a_pod_whose_folder_comes_late_is_named_then(
    proc: FakeProc, attribution: Attribution, pods: Path, clock: Clock
) -> None:
    proc.add(7, cgroup=POD)
    proc.add(8, cgroup=POD)
    assert attribution.workload(7).name == "pod 3fd1e2a4"
    (pods / f"ml_llama_{UID}").mkdir()
    clock.s += 29
    assert attribution.workload(7).name == "pod 3fd1e2a4"
    clock.s += 1
    assert attribution.workload(8).name == "llama"
    assert attribution.workload(7).name == "llama"
    assert of(attribution.workload(7))["namespace"] == "ml"


def test_pods_of_both_kinds_are_found_and_other_folders_passed_over(pods: Path, clock: Clock) -> None:
    static = "5f3a9c1b2d4e6f708192a3b4c5d6e7f8"
    for name in (f"kube-system_dns-node1_{static}", f"ml_a_{UID}", "lost+found", "_x_y", "a_b"):
        (pods / name).mkdir()
    names = PodNames(pods, monotonic=clock)
    assert names.find(UID) == PodName("ml", "a")
    assert names.find(static) == PodName("kube-system", "dns-node1")
    assert names.find("0" * 32) is None
    assert PodNames(pods / "absent", monotonic=clock).find(UID) is None


def test_a_job_takes_its_name_and_account_from_its_own_environment_only(
    proc: FakeProc, attribution: Attribution
) -> None:
    mine = {
        "SLURM_JOB_ID": "1234",
        "SLURM_JOB_NAME": "pre\x07train",
        "SLURM_JOB_ACCOUNT": "nlp",
        "SLURM_ARRAY_JOB_ID": "1200",
        "SLURM_ARRAY_TASK_ID": "5",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
    }
    proc.add(7, cgroup=JOB, environ=mine)
    key = attribution.workload(7)
    assert (key.kind, key.key, key.name) == ("slurm_job", "1234", "job 1200_5 (pretrain)")
    assert of(key) == {
        "executable": "python3",
        "slurm_account": "nlp",
        "slurm_job": "1234",
        "slurm_step": "0",
        "uid": "1000",
    }
    assert "hunter2" not in repr(key)
    proc.add(8, cgroup=JOB.replace("1234", "99"), environ=mine)
    other = attribution.workload(8)
    assert (other.key, other.name) == ("99", "job 99")
    assert "slurm_account" not in of(other)


def test_a_job_without_a_cgroup_is_known_by_its_environment(proc: FakeProc, attribution: Attribution) -> None:
    proc.add(7, cgroup="0::/system.slice/slurmd.service\n", environ={"SLURM_JOB_ID": "55"})
    proc.add(8, environ={"SLURM_JOB_ID": "../x"})
    assert (attribution.workload(7).kind, attribution.workload(7).key) == ("slurm_job", "55")
    assert attribution.workload(8).kind == "process"


def test_a_job_shows_the_user_slurm_names_only_where_this_host_has_no_name(
    proc: FakeProc, attribution: Attribution
) -> None:
    proc.add(7, cgroup=JOB, uid=4711, environ={"SLURM_JOB_USER": "carol"})
    proc.add(8, cgroup=JOB.replace("1234", "2"), uid=1000, environ={"SLURM_JOB_USER": "carol"})
    proc.add(9, cgroup="3:memory:/slurm/uid_1000/job_3/step_0/task_0\n", uid=0)
    assert [attribution.workload(pid).user for pid in (7, 8, 9)] == ["carol", "alice", "alice"]


def test_an_unreadable_environment_takes_nothing_else_away(proc: FakeProc, attribution: Attribution) -> None:
    proc.add(7, cgroup=JOB, environ=None)
    key = attribution.workload(7)
    assert (key.kind, key.name, key.user) == ("slurm_job", "job 1234", "alice")


def test_a_pod_goes_before_a_job_and_a_job_before_a_container(
    proc: FakeProc, attribution: Attribution
) -> None:
    proc.add(7, cgroup=POD, environ={"SLURM_JOB_ID": "55"})
    proc.add(8, cgroup=f"0::/docker/{ID}\n", environ={"SLURM_JOB_ID": "55"})
    pod, job = attribution.workload(7), attribution.workload(8)
    assert (pod.kind, of(pod)["slurm_job"]) == ("pod", "55")
    assert (job.kind, of(job)["container_id"], job.user) == ("slurm_job", ID, "1000")


def test_processes_of_one_apptainer_run_are_one_container_and_another_run_is_another(
    proc: FakeProc, attribution: Attribution
) -> None:
    image = {"APPTAINER_CONTAINER": "/home/alice/torch.sif"}
    proc.add(10, comm="bash", start_ticks=1, environ={})
    proc.add(11, comm="torchrun", ppid=10, environ=image)
    proc.add(12, ppid=11, environ=image)
    proc.add(13, ppid=11, environ=image)
    proc.add(21, ppid=10, environ={"SINGULARITY_CONTAINER": "/home/alice/torch.sif"})
    first, second, other = (attribution.workload(pid) for pid in (12, 13, 21))
    assert first is second
    assert (first.kind, first.name, first.user) == ("container", "python3 in torch.sif", "alice")
    assert of(first)["image"] == "torch.sif"
    assert first.key == f"apptainer:11:{BOOT_S * 1000 + 1_000_000}"
    assert other.key == f"apptainer:21:{BOOT_S * 1000 + 1_000_000}"


def test_processes_of_one_workload_give_the_same_key_whatever_they_run(
    proc: FakeProc, attribution: Attribution
) -> None:
    cgroup = f"0::/docker/{ID}\n"
    proc.add(7, cgroup=cgroup, comm="python3")
    proc.add(8, cgroup=cgroup, comm="ray::Worker", uid=0)
    assert attribution.workload(8) is attribution.workload(7)
    attribution.forget_all_but([])
    assert of(attribution.workload(8))["executable"] == "ray::Worker"


def test_a_reused_pid_is_another_workload(proc: FakeProc, attribution: Attribution) -> None:
    proc.add(7, start_ticks=100, words=["vllm", "serve", "m"])
    first, served = attribution.workload(7), attribution.serving(7)
    proc.add(7, start_ticks=101, comm="other")
    second = attribution.workload(7)
    assert first.key != second.key
    assert second.name == "other"
    assert served is not None
    assert attribution.serving(7) is None


def test_a_known_process_is_not_read_anew(proc: FakeProc, attribution: Attribution) -> None:
    folder = proc.add(7)
    first = attribution.workload(7)
    (folder / "cgroup").unlink()
    (folder / "status").unlink()
    assert attribution.workload(7) is first
    attribution.forget_all_but([8])
    assert attribution.workload(7).user is None


@pytest.mark.parametrize("pid", [404, 0, 99_999_999])
def test_a_process_that_is_gone_is_named_by_its_number(attribution: Attribution, pid: int) -> None:
    assert attribution.workload(pid) == WorkloadKey("process", f"{pid}:0", f"pid {pid}", host="node")
    assert attribution.serving(pid) is None
    assert attribution.cpu(pid) is None


def test_a_process_that_ends_while_it_is_read_gets_no_half_told_workload(
    proc: FakeProc, attribution: Attribution, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = proc.add(7, cgroup=POD)
    read = attribution._proc.status

    def ends(pid: int) -> object:
        (folder / "stat").unlink()
        (folder / "cgroup").unlink()
        return read(pid)

    monkeypatch.setattr(attribution._proc, "status", ends)
    assert attribution.workload(7) == WorkloadKey("process", "7:0", "pid 7", host="node")
    proc.add(7, cgroup=POD)
    monkeypatch.undo()
    assert attribution.workload(7).kind == "pod"


@pytest.mark.parametrize(
    "text", ["", "7", "7 (x", "7 (x) S 1 2", "7 (x) S a b c d e f g h i j k l m n o p q r s\n"]
)
def test_a_broken_stat_file_is_an_unknown_process(
    proc: FakeProc, attribution: Attribution, text: str
) -> None:
    (proc.add(7) / "stat").write_text(text)
    assert attribution.workload(7).key == "7:0"


class TestAnotherNamespace:
    """The driver may mean another process by the same number."""

    @pytest.fixture
    def proc(self, tmp_path: Path) -> FakeProc:
        return FakeProc(tmp_path / "proc", namespace=OTHER_NAMESPACE)

    def test_a_process_without_a_gpu_is_not_believed(self, proc: FakeProc, attribution: Attribution) -> None:
        proc.add(7, words=["vllm", "serve", "m"], descriptors=["/dev/null", "socket:[1]"], maps="/lib/x.so\n")
        name = "pid 7 (another PID namespace)"
        assert attribution.workload(7) == WorkloadKey("process", "7:0", name, host="node")
        assert attribution.workload(404).name == "pid 404 (another PID namespace)"
        assert attribution.serving(7) is None
        assert attribution.cpu(7) is None

    def test_a_process_that_holds_a_gpu_device_is(self, proc: FakeProc, attribution: Attribution) -> None:
        proc.add(7, descriptors=["/dev/null", "/dev/nvidia0"])
        proc.add(8, maps="7f00-7f01 rw-s 00000000 00:05 42 /dev/nvidiactl\n", words=["vllm", "serve", "m"])
        assert attribution.workload(7).name == "python3"
        assert attribution.workload(8).name == "python3"
        assert attribution.serving(8) is not None

    def test_it_is_told_from_the_hosts(self, proc: FakeProc, tmp_path: Path) -> None:
        host = FakeProc(tmp_path / "host", namespace=HOST_NAMESPACE)
        assert sees_host_pids(host.root)
        assert not sees_host_pids(proc.root)
        assert not sees_host_pids(tmp_path / "absent")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_real_proc_tells_a_real_process(child: subprocess.Popen[bytes]) -> None:
    attribution = Attribution("node")
    attribution._host_pids = True
    key = attribution.workload(child.pid)
    assert of(key)["executable"]
    assert of(key)["uid"] == str(os.getuid())
    assert attribution.workload(child.pid) is key
    assert attribution.cpu(child.pid) is None
    status = attribution._proc.status(child.pid)
    assert status is not None
    assert status.ns_pids[0] == child.pid
    assert child.pid in attribution._proc.threads(child.pid)
    assert abs(attribution._proc.boot_ms() // 1000 - _btime()) <= 1
    child.kill()
    child.wait()
    assert attribution.workload(child.pid).name == f"pid {child.pid}"


def _btime() -> int:
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("btime "))
