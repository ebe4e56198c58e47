"""Real captures, scraped by a Prometheus, give what the text of the same captures gives."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest
from prometheus_server import prometheus

from agent.sources.exposition import labels_of, name_of, split_line
from gpuwise.__main__ import main
from store.dbapi import open_connection

CAPTURES = ("llama-2-13b-max_num_seqs_8.prom.gz", "opt-1.3b-max_num_seqs_1.prom.gz")
GPU = "SELECT g.gpu_uuid, h.energy_j, h.busy_ratio, h.covered_s FROM gpu_hour h JOIN gpu g ON g.id = h.gpu_id ORDER BY 1"
ENGINE = "SELECT e.engine, h.generated_tokens, h.prompt_tokens, h.busy_energy_j FROM engine_hour h JOIN engine e ON e.id = h.engine_id ORDER BY 1"


def rows(url: str, sql: str) -> list[tuple[object, ...]]:
    with open_connection(url) as connection:
        return connection.fetch(sql)


@pytest.mark.shared_data
def test_captures_over_http_are_captures_from_files(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [shared_data / "openmetrics" / name for name in CAPTURES]
    text, scraped = (f"sqlite:///{tmp_path / name}.db" for name in ("text", "scraped"))
    assert main(["import", "openmetrics", *map(str, paths), "--database-url", text]) == 0
    with prometheus() as server:
        for path in paths:
            series: dict[str, list[tuple[int, float | None]]] = defaultdict(list)
            for line in gzip.decompress(path.read_bytes()).decode().splitlines():
                if not line.startswith("#"):
                    name, figure, stamp = split_line(line)
                    series[name].append((round(float(stamp or 0) * 1000), float(figure)))
            for name, points in series.items():
                server.add(name_of(name), dict(labels_of(name)), points)
        words = ["--from", "2026-10-05T00:00:00Z", "--to", "2026-10-06T00:00:00Z", "--json"]
        capsys.readouterr()
        assert main(["import", "prometheus", "--url", server.url, "--database-url", scraped, *words]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["step_s"] == 10
    assert (len(report["gpu_uuids"]), len(report["engines"])) == (2, 2)
    for ours, its in zip(rows(scraped, GPU), rows(text, GPU), strict=True):
        assert ours[0] == its[0]
        assert ours[1:] == tuple(pytest.approx(value, rel=0.02) for value in its[1:])
    for ours, its in zip(rows(scraped, ENGINE), rows(text, ENGINE), strict=True):
        assert ours[0] == its[0]
        assert ours[1:] == tuple(pytest.approx(value, rel=0.03) for value in its[1:])
