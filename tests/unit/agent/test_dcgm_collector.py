"""Profiling counters of a dcgm-exporter, in base units and of whole cards only."""

import engine_pages as pages
import pytest
from page_server import serving

from agent.collectors.dcgm import PROBE_S, DcgmCollector
from agent.scrape import ScrapeError
from core.metrics import BY_NAME


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_profiling_fields_become_readings_and_blanks_are_unknown() -> None:
    with serving({"/metrics": pages.DCGM}) as server:
        collector = DcgmCollector(f"{server.url}/metrics")
        assert collector.round() == {
            pages.GPU_A: {"sm_active_ratio": 0.8125, "dram_active_ratio": 0.4},
            pages.GPU_B: {"pcie_rx_bytes_per_s": 123456789.0},
        }
        assert collector.round() == collector.round()
        assert server.connections == 1
        assert collector.problem is None
        collector.close()


def test_an_address_without_a_path_gets_the_usual_one() -> None:
    with serving({"/metrics": pages.DCGM}) as server:
        assert DcgmCollector(server.url).round()


def test_every_profiling_field_of_the_catalogue_is_read() -> None:
    metrics = [one for one in BY_NAME.values() if one.dcgm and one.dcgm.startswith("DCGM_FI_PROF_")]
    text = "# x\n" + "".join(f'{one.dcgm}{{UUID="{pages.GPU_A}"}} 1\n' for one in metrics)
    with serving({"/metrics": text}) as server:
        found = DcgmCollector(server.url).round()[pages.GPU_A]
    assert found == {one.name: 1.0 for one in metrics}
    assert len(metrics) >= 10


def test_an_exporter_that_is_not_there_is_tried_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    with serving() as server:
        collector = DcgmCollector(server.url, monotonic=clock)
        assert collector.round() == {}
        assert collector.problem is not None
        server.pages["/metrics"] = pages.DCGM
        clock.now_s += PROBE_S - 1
        assert collector.round() == {}
        clock.now_s += 2
        assert collector.round()
        assert collector.problem is None
        server.pages.clear()
        assert collector.round() == {}
        assert collector.round() == {}
        assert len(server.asked) == 3
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "dcgm-exporter is not read",
        "dcgm-exporter is not read",
    ]


def test_an_exporter_without_profiling_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with serving({"/metrics": f'DCGM_FI_DEV_GPU_UTIL{{UUID="{pages.GPU_A}"}} 5\n'}) as server:
        collector = DcgmCollector(server.url)
        assert collector.round() == {}
        assert collector.problem is not None
        assert "DCGM_FI_PROF_" in collector.problem
    assert len(caplog.records) == 1


def test_a_guessed_exporter_that_is_not_there_is_no_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server:
        monkeypatch.setattr("agent.collectors.dcgm.AUTO_URL", f"{server.url}/metrics")
        assert DcgmCollector().round() == {}
    assert not caplog.records


def test_a_wrong_address_is_refused() -> None:
    with pytest.raises(ScrapeError, match="write http://host:port/path"):
        DcgmCollector("node1:9400")


def test_an_empty_address_asks_nobody() -> None:
    collector = DcgmCollector("")
    assert collector.round() == {}
    assert collector.problem is None
