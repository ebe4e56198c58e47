"""What goes wrong with a card, as events and as the state that is kept with it."""

import json
from pathlib import Path

import pytest
from live_agent import LiveAgent

from core.clock import now_ms
from tests.standin import profiles
from tests.standin.scenario import Scenario, gpu_uuid


def test_errors_repairs_limits_and_xids_become_events(tmp_path: Path) -> None:
    start_s = now_ms() / 1000

    def card() -> Scenario:
        return profiles.busy_decode(2, start_s=start_s)

    uuid, other = gpu_uuid(0), gpu_uuid(1)
    with LiveAgent(tmp_path, card()) as agent:
        agent.until(lambda: agent.samples(uuid, "covered_ms = 1000"))
        assert agent.rows("SELECT * FROM gpu_event") == []  # a healthy start is no news
        (before,) = agent.rows("SELECT health FROM gpu WHERE gpu_uuid = ?", uuid)
        assert json.loads(before["health"])["ecc_uncorrected_count"] == 0
        at_s = now_ms() / 1000 - start_s + 0.3
        worse = card().xid(79, gpu=0, at=at_s).xid(31, gpu=1, at=at_s)
        worse.at(at_s, 0, "ecc_uncorrected", "3 5").at(at_s, 0, "remapped", "0 1 1 0")
        worse.at(at_s, 0, "recovery_action", 1).at(at_s, 0, "power_limit_mw", 500_000).at(
            at_s, 0, "persistence", 0
        )
        worse.at(at_s, 0, "pcie_width", 8).at(at_s, 0, "energy", "restart")
        agent.change(worse)
        kinds = {"xid", "ecc", "row_remap", "recovery_action", "power_limit", "mode", "pcie_link"}
        agent.until(lambda: {row["kind"] for row in agent.rows("SELECT kind FROM gpu_event")} == kinds)
        said_ms = now_ms()
        agent.until(lambda: agent.samples(uuid, f"ts_ms > {said_ms} AND covered_ms = 1000"))
        told = {
            row["kind"]: row["message"]
            for row in agent.rows("SELECT * FROM gpu_event WHERE kind != 'row_remap'")
        }
        xids = {row["gpu_uuid"]: (row["code"], row["message"]) for row in agent.events("xid")}
        assert xids[uuid] == (79, "XID 79: GPU has fallen off the bus.")
        assert xids[other][0] == 31
        assert "usually the application's fault" in xids[other][1]
        assert "3" in told["ecc"]
        assert told["recovery_action"].endswith("reset.")
        assert "from 700 to 500" in told["power_limit"]
        assert "from enabled to disabled" in told["mode"]
        assert "from 16 to 8" in told["pcie_link"]
        assert any("waits for a reset" in row["message"] for row in agent.events("row_remap"))
        # Once each, however often the state is asked.
        assert len(agent.rows("SELECT 1 FROM gpu_event WHERE kind NOT IN ('xid', 'row_remap')")) == 5
        (now,) = agent.rows("SELECT health FROM gpu WHERE gpu_uuid = ?", uuid)
        # The counter began anew in between: what it cannot tell is integrated, nothing is negative or doubled.
        for sample in agent.samples(uuid, "covered_ms = 1000"):
            assert sample["energy_j"] == pytest.approx(420, rel=0.03)
        facts = json.loads(now["health"])
        assert (facts["ecc_uncorrected_count"], facts["row_remap_pending"], facts["recovery_action"]) == (
            3,
            1,
            "reset",
        )
        assert facts["power_limit_w"] == 500
        assert {row["gpu_uuid"] for row in agent.events("ecc")} == {uuid}
