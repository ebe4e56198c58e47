"""The spool under what only another process can do to it: kill -9, a second agent, a disk without room."""

import json
import random
import shutil
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from spool_deliveries import T0, delivery

from agent.spool import Spool, SpoolError

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ROUNDS = 30

WRITER = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(HERE)!r}]
from spool_deliveries import T0, delivery
from agent.spool import Spool, SpoolFullError
"""

ENDLESS = """
spool = Spool(sys.argv[1])
print("open", flush=True)
for number in range(100_000):
    sequence = spool.append(delivery(number, padding=500), T0)
    print(sequence, flush=True)
    if number % 3 == 2:
        entry = spool.oldest(T0)
        print(-entry.sequence, flush=True)  # before: whoever is killed in between cannot say it any more
        spool.done(entry.sequence)
"""


def test_what_was_appended_survives_kill_9_at_any_point(tmp_path: Path) -> None:
    path, dice = tmp_path / "spool.db", random.Random(3)
    appended: set[int] = set()
    acknowledged: set[int] = set()
    for _round in range(ROUNDS):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER + ENDLESS, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        said = [child.stdout.readline() for _line in range(dice.randrange(12))]
        child.send_signal(signal.SIGKILL)
        said += child.stdout.read().splitlines()
        child.wait()
        child.stdout.close()
        numbers = [int(line) for line in said if line.strip().lstrip("-").isdecimal()]
        appended.update(number for number in numbers if number > 0)
        acknowledged.update(-number for number in numbers if number < 0)
    spool = Spool(path)
    held = []
    while entry := spool.oldest(T0):
        assert json.loads(zlib.decompress(entry.body, 31))["sequence"] == entry.sequence
        held.append(entry.sequence)
        spool.done(entry.sequence)
    spool.close()
    assert len(set(held)) == len(held)
    assert len(appended) > ROUNDS
    assert appended - acknowledged <= set(held), "an append that returned is there"
    # one append and one acknowledgement a round may have been done and not said
    assert len(set(held) - appended) <= ROUNDS


def test_a_second_agent_names_the_first_one_and_takes_over_when_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            WRITER + "spool = Spool(sys.argv[1])\nprint('open', flush=True)\nsys.stdin.read()",
            str(path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with pytest.raises(SpoolError, match=rf"pid {child.pid}\b"):
            Spool(path)
    finally:
        child.kill()
        child.communicate()
    spool = Spool(path)
    assert spool.append(delivery(0), T0) == 1
    spool.close()


FULL = """
import json, os, resource
spool = Spool(sys.argv[1])
LIFT
kept = failed = 0
def fill():
    global kept, failed
    for number in range(3_000):
        try:
            spool.append(delivery(number, padding=1_500), T0)
            kept += 1
        except SpoolFullError:
            failed += 1
            return
fill()
first = kept
taken = []
while (entry := spool.oldest(T0)) and len(taken) < 200:
    taken.append(entry.sequence)
    spool.done(entry.sequence)
before = kept
for number in range(100):  # what was acknowledged made room again, as far as the file system lets it
    try:
        spool.append(delivery(number, padding=1_500), T0)
        kept += 1
    except SpoolFullError:
        break
again = kept - before
FREE
spool.append(delivery(0, padding=1_500), T0)
kept += 1
while entry := spool.oldest(T0):
    taken.append(entry.sequence)
    spool.done(entry.sequence)
spool.close()
print(json.dumps({"first": first, "failed": failed, "again": again, "kept": kept, "taken": taken}))
"""


def outcome(command: list[str], code: str, path: Path) -> dict[str, object]:
    done = subprocess.run(
        [*command, sys.executable, "-c", WRITER + code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert isinstance(said, dict)
    return said


def test_a_limit_on_file_sizes_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, ({}, resource.RLIM_INFINITY))"
    code = FULL.replace("LIFT", limit.format(3 << 20)).replace("FREE", limit.format(1 << 30))
    said = outcome([], code, tmp_path / "spool.db")
    assert said["failed"] == 1
    assert said["taken"] == list(range(1, said["kept"] + 1))  # type: ignore[operator]


def test_on_a_full_disk_what_is_acknowledged_makes_room_again(tmp_path: Path) -> None:
    mount = ["unshare", "-Urm", "sh", "-c", f'mount -t tmpfs -o size=8m none {tmp_path} && exec "$0" "$@"']
    if (
        shutil.which("unshare") is None
        or subprocess.run([*mount, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no file system of our own can be mounted here")
    ballast = f"{tmp_path}/ballast"
    code = FULL.replace("LIFT", f"open({ballast!r}, 'wb').write(bytes(2 << 20))").replace(
        "FREE", f"os.unlink({ballast!r})"
    )
    said = outcome(mount, code, tmp_path / "spool.db")
    assert said["failed"] == 1
    assert said["again"] == 100, "the log went back into the file, so deletes and appends pass on a full disk"
    assert said["taken"] == list(range(1, said["kept"] + 1))  # type: ignore[operator]
