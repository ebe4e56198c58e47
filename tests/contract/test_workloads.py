"""The loads for a GPU machine: the list is the wanted one, the files compile, and what is pure counts right."""

import ast
import gzip
import json
import sqlite3
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.workloads import ab, record, report
from bench.workloads.loads import BATCHES, LEAST_S, LOADS, SHAPES, chosen
from bench.workloads.run import _parser
from core.activity import Activity
from store.schema import ensure_ready

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "workloads"


def test_the_list_of_loads_is_the_wanted_one() -> None:
    decodes = [f"decode-{shape}-{batch}" for shape in ("1b", "8b") for batch in (1, 8, 64, 256)]
    wanted = {
        "empty",
        "parked",
        *decodes,
        "prefill",
        "matmul-bf16",
        "matmul-fp32",
        "stream",
        "starved",
        "spinning",
        "shared",
    }
    assert {load.name for load in LOADS} == wanted | {"empty-again"}
    assert (BATCHES, SHAPES, LEAST_S) == ((1, 8, 64, 256), ("1b", "8b"), 60)
    assert next(load for load in LOADS if load.name == "shared").copies == 2
    assert all(set(load.expect) <= set(Activity) for load in LOADS)


def test_every_load_has_its_file_and_every_file_compiles() -> None:
    for load in LOADS:
        assert load.module is None or (FOLDER / f"{load.module}.py").is_file()
    for path in FOLDER.glob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")


def test_the_flags_of_a_load_are_those_its_file_knows() -> None:
    common = {"seconds", "device", "tiny"}
    for load in LOADS:
        if load.module is None:
            continue
        tree = ast.parse((FOLDER / f"{load.module}.py").read_text(encoding="utf-8"))
        known = {
            node.args[0].value.removeprefix("--")
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and getattr(node.func, "attr", "") == "add_argument"
            and isinstance(node.args[0], ast.Constant)
        }
        assert set(load.options) <= known | common
        assert load.module != "decode" or "context" in known


def test_only_the_loads_themselves_want_torch() -> None:
    code = "import sys, bench.workloads.run, bench.workloads.report; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(
    find_spec("torch") is None, reason="PyTorch is not installed: the loads were checked by their text only"
)
def test_every_load_runs_on_the_cpu() -> None:
    done = subprocess.run([sys.executable, "-m", "bench.workloads.run", "--dry-run"], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_loads_are_chosen_by_name_or_beginning() -> None:
    assert [load.name for load in chosen("empty")] == ["empty"]
    assert len(chosen("decode-8b,stream")) == 5
    assert chosen(None) == LOADS
    with pytest.raises(ValueError, match="no load is called 'decoder'"):
        chosen("decoder")


def test_a_load_shorter_than_a_minute_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args(["--seconds", "10"])
    assert "60 to 3600" in capsys.readouterr().err


def sample(at: int, power_w: float, **more: object) -> dict[str, object]:
    return {
        "table": "gpu_sample", "ts_ms": at * 10_000, "span_ms": 10_000, "covered_ms": 10_000, "activity": "parked",
        "energy_method": "counter", "power_w": power_w, "energy_j": power_w * 10, **more,
    }  # fmt: skip


def test_a_parked_context_is_held_against_both_empty_cards() -> None:
    of = {
        "empty": ({}, [sample(0, 70.0)]),
        "parked": ({}, [sample(1, 110.0)]),
        "empty-again": ({}, [sample(2, 74.0)]),
    }
    assert report.parked_w(of) == pytest.approx(38.0)
    assert report.parked_w({"parked": of["parked"]}) is None


def test_the_counter_is_held_against_power_where_the_sample_is_whole() -> None:
    rows = [
        sample(0, 100.0, energy_j=1_010.0),
        sample(1, 100.0, covered_ms=5_000, energy_j=1.0),
        sample(2, 100.0, energy_method="integrated"),
    ]
    assert report.energy_ratio(rows) == pytest.approx(1.01)
    assert report.energy_ratio([]) is None


def test_phases_are_held_against_their_quiet_neighbours() -> None:
    ticks = [(at * 1_000, float(units)) for at, units in enumerate([0, 100, 200, 290, 380, 480, 580])]
    phases = ab.rates(
        [("nothing", 0, 2_000), ("gpm", 2_000, 4_000), ("nothing", 4_000, 6_000), ("gpm", 9_000, 9_500)],
        ticks,
    )
    assert [phase["per_s"] for phase in phases] == [100.0, 90.0, 100.0]
    assert ab.effect(phases, "gpm") == (pytest.approx(0.9), 0.0)
    assert ab.effect(phases, "agent") is None


def test_a_recording_holds_stored_rows_without_the_names_of_this_machine(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    ensure_ready(f"sqlite:///{database}")
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO host (id, name) VALUES (1, 'secret-host')")
        connection.execute(
            "INSERT INTO gpu (id, gpu_uuid, host_id, gpu_index, model) VALUES (1, 'GPU-secret', 1, 0, 'NVIDIA H200')"
        )
        rows = "INSERT INTO gpu_sample (gpu_id, ts_ms, span_ms, covered_ms, activity, power_w, busy_ratio) VALUES (1, ?, 10000, 10000, 'empty', 70.123456789, NULL)"
        connection.executemany(rows, [(at,) for at in (0, 10_000, 20_000, 30_000)])
        connection.execute(
            "INSERT INTO host_sample (host_id, ts_ms, span_ms, agent_cpu_ratio) VALUES (1, 10000, 10000, 0.002)"
        )
        connection.execute(
            "INSERT INTO gpu_event (gpu_id, ts_ms, kind, message, code) VALUES (1, 15000, 'xid', 'x', 13)"
        )
    connection.close()
    path = tmp_path / "out" / "empty.jsonl.gz"
    header = {"load": "empty", "card": record.card(database, "GPU-secret")}
    assert record.write(path, header, record.rows(database, "GPU-secret", 5_000, 35_000)) == 4
    told, found = record.read(path)
    assert told["card"]["model"] == "NVIDIA H200"
    assert [row["ts_ms"] for row in found if row["table"] == "gpu_sample"] == [10_000, 20_000]
    assert found[0]["power_w"] == 70.1235
    assert "busy_ratio" not in found[0]
    assert {row["table"] for row in found} == {"gpu_sample", "host_sample", "gpu_event"}
    assert b"secret" not in gzip.decompress(path.read_bytes())


def test_the_report_says_what_was_measured_and_what_was_not() -> None:
    header = {
        "card": {"model": "NVIDIA H200", "driver_version": "570"},
        "agent_cpu_ratio": 0.002,
        "agent_memory_bytes": 40 << 20,
        "units_per_s": 0.0,
    }
    probes = [{"calls": 12, "wall_ms": 0.5, "wall_max_ms": 0.9, "cpu_ms": 0.1}]
    phases = [{"kind": kind, "per_s": 100.0} for kind in ("nothing", "agent", "gpm", "nothing")]
    text = report.report(
        {"parked": (header, [sample(0, 110.0)])}, {"ab": {"phases": phases, "probes": probes}, "failed": {}}
    )
    assert "| parked CUDA context | 1 | parked 1 | 1 of 1 |" in text
    assert "0.200 % of a core" in text
    assert "One GPM pair: 0.500 ms" in text
    assert "Not recorded: empty, decode-1b-1" in text
    assert json.dumps(phases)
    assert "A/B: not run" in report.report({}, {})
