"""What is shipped for systemd, Kubernetes and Docker names things that exist."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings, load

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFEST = DEPLOY / "kubernetes" / "agent-daemonset.yaml"
AGENT_UNIT = DEPLOY / "systemd" / "gpuwise-agent.service"
DROP_IN = DEPLOY / "systemd" / "gpuwise-agent.service.d" / "server.conf"


def lines(path: Path, key: str) -> list[str]:
    """Values of a key of a unit."""
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


def parse(text: str) -> Iterator[Any]:
    """Documents of the block YAML that the manifest keeps to (no library of the development environment reads YAML).

    Maps, lists, scalars, ``["a", "b"]`` and ``{a: b}`` on one line; anything else fails.
    """
    for document in re.split(r"^---$", text, flags=re.MULTILINE):
        rows = []
        for line in document.splitlines():
            bare = re.sub(r"(^|\s)#.*$", "", line).rstrip()
            if bare:
                rows.append((len(bare) - len(bare.lstrip()), bare.strip()))
        if rows:
            value, rest = _block(rows, rows[0][0])
            assert not rest, rest[0]
            yield value


def _block(rows: list[tuple[int, str]], indent: int) -> tuple[Any, list[tuple[int, str]]]:
    if rows[0][1].startswith("- "):
        items = []
        while rows and rows[0][0] == indent and rows[0][1].startswith("- "):
            inner = rows[0][1][2:].strip()
            if _KEY.match(inner):
                value, rows = _block([(indent + 2, inner), *rows[1:]], indent + 2)
            else:
                value, rows = _scalar(inner), rows[1:]
            items.append(value)
        return items, rows
    found: dict[str, Any] = {}
    while rows and rows[0][0] == indent and not rows[0][1].startswith("- "):
        match = _KEY.match(rows[0][1])
        assert match, rows[0]
        key, text = match[1], (match[2] or "").strip()
        assert key not in found, key
        rows = rows[1:]
        if text:
            found[key] = _scalar(text)
        else:
            assert rows, f"{key} has no value"
            assert rows[0][0] > indent or rows[0][1].startswith("- "), key
            found[key], rows = _block(rows, rows[0][0])
    assert not rows or rows[0][0] <= indent, rows[0]
    return found, rows


_KEY = re.compile(r"([\w./-]+):\s*(?:(?<=\s)(.+))?$")


def _scalar(text: str) -> Any:
    if text.startswith("["):
        return [part.strip().strip('"') for part in re.findall(r'"[^"]*"', text[1:-1])]
    if text.startswith("{"):
        pairs = (part.split(":", 1) for part in text[1:-1].split(","))
        return {key.strip(): value.strip() for key, value in pairs}
    if text.startswith('"'):
        return text[1:-1]
    return {"true": True, "false": False}.get(
        text, int(text) if text.isdecimal() and text[0] != "0" else text
    )


def agent_words(words: list[str]) -> None:
    """Fails unless the agent's own parser takes the words."""
    from agent.cli import parser

    try:
        parser().parse_args(words)
    except SystemExit:
        pytest.fail(f"gpuwise agent does not know {words}")


def test_every_unit_starts_a_command_that_exists_with_flags_it_knows() -> None:
    from gpuwise.commands.cli import COMMANDS, cli

    assert [unit.stem for unit in UNITS] == ["gpuwise-agent", "gpuwise-jobs", "gpuwise-serve"]
    for unit in UNITS:
        (start,) = lines(unit, "ExecStart")
        program, command, *words = shlex.split(start)
        assert Path(program).name == "gpuwise"
        if command == "agent":
            agent_words(words)
            continue
        assert command in COMMANDS
        found = cli.get_command(cli.make_context("gpuwise", [command], resilient_parsing=True), command)
        assert found is not None
        flags = {flag for parameter in found.params for flag in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= flags


def test_every_variable_is_a_setting_that_takes_the_value() -> None:
    given = [value for unit in [*UNITS, DROP_IN] for value in lines(unit, "Environment")]
    for path in (DEPLOY / "Dockerfile.agent", MANIFEST):
        given += re.findall(r"GPUWISE_\w+=[^\s\\]+", path.read_text(encoding="utf-8"))
    assert given
    for one in given:
        name, value = one.split("=", 1)
        assert hasattr(Settings(), name.removeprefix("GPUWISE_").lower()), name
        if name != "GPUWISE_SINK":  # it needs the server's address beside it
            load(environ={name: value, "XDG_CONFIG_HOME": "/nonexistent"})


def test_the_agents_unit_is_hardened_and_may_still_do_its_work() -> None:
    wanted = {
        "Type": "notify",
        "DynamicUser": "yes",
        "StateDirectory": "gpuwise",
        "ProtectSystem": "strict",
        "NoNewPrivileges": "yes",
        "DevicePolicy": "closed",
        "Restart": "always",
        "CapabilityBoundingSet": "",
        "SupplementaryGroups": "video render",
        # These two must not be tightened: processes of all users are what the agent names.
        "ProtectProc": "default",
        "ProcSubset": "all",
    }
    assert {key: lines(AGENT_UNIT, key)[0] for key in wanted} == wanted
    assert int(lines(AGENT_UNIT, "WatchdogSec")[0]) >= 30
    assert any(device.startswith("char-nvidia") for device in lines(AGENT_UNIT, "DeviceAllow"))
    assert "PrivateDevices" not in AGENT_UNIT.read_text(encoding="utf-8")
    (credential,) = lines(DROP_IN, "LoadCredential")
    assert f"GPUWISE_SERVER_TOKEN_FILE={credential.partition(':')[0]}" in lines(DROP_IN, "Environment")


def test_systemd_itself_accepts_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: the units were checked by their text only")
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace("/opt/gpuwise/bin/gpuwise", "/bin/true")
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    shutil.copytree(DROP_IN.parent, tmp_path / DROP_IN.parent.name)
    done = subprocess.run(
        [analyze, "verify", "--man=no", *sorted(map(str, tmp_path.glob("*.service")))],
        capture_output=True,
        text=True,
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "gpuwise" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


def test_the_manifest_is_what_its_readme_says() -> None:
    documents = {one["kind"]: one for one in parse(MANIFEST.read_text(encoding="utf-8"))}
    assert list(documents) == ["Namespace", "ServiceAccount", "DaemonSet"]
    names = {one["metadata"].get("namespace", one["metadata"]["name"]) for one in documents.values()}
    assert names == {"gpuwise"}
    pod = documents["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["hostPID"] is True
    assert pod["automountServiceAccountToken"] is False
    assert "hostNetwork" not in pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    keys = [
        expression["key"]
        for term in pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        for expression in term["matchExpressions"]
    ]
    assert "nvidia.com/gpu.present" in keys
    (agent,) = pod["containers"]
    (owner,) = pod["initContainers"]
    assert agent["image"] == owner["image"]
    assert agent["args"][0] == "agent"
    agent_words(agent["args"][1:])
    safe = agent["securityContext"]
    assert safe["readOnlyRootFilesystem"] is True
    assert safe["allowPrivilegeEscalation"] is False
    assert safe["capabilities"] == {"drop": ["ALL"]}
    assert owner["securityContext"]["capabilities"]["add"] == ["CHOWN"]
    variables = {one["name"]: one.get("value") for one in agent["env"]}
    assert variables["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert variables["NVIDIA_DRIVER_CAPABILITIES"] == "utility"
    settings = {name for name in variables if name.startswith("GPUWISE_")}
    assert all(hasattr(Settings(), name.removeprefix("GPUWISE_").lower()) for name in settings)
    assert "nvidia.com/gpu" not in str(agent["resources"]), "it must not take a GPU from the scheduler"
    mounted = {one["name"]: one for one in agent["volumeMounts"]}
    assert mounted.keys() == {one["name"] for one in pod["volumes"]}
    assert mounted["pod-logs"]["readOnly"] is True
    assert mounted["token"]["readOnly"] is True
    assert variables["GPUWISE_SERVER_TOKEN_FILE"].startswith(mounted["token"]["mountPath"])
    assert variables["GPUWISE_SPOOL_PATH"].startswith(mounted["spool"]["mountPath"])


def test_the_manifest_holds_no_secret() -> None:
    assert "kind: Secret" not in MANIFEST.read_text(encoding="utf-8")


def test_the_images_files_exist_and_it_runs_as_nobody() -> None:
    text = (DEPLOY / "Dockerfile.agent").read_text(encoding="utf-8")
    assert (ROOT / "requirements" / "agent.txt").is_file()
    assert "--require-hashes -r requirements/agent.txt" in text
    assert re.search(r"^USER 65532:65532$", text, re.MULTILINE)


def test_the_agents_page_names_settings_and_files_that_exist() -> None:
    text = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
    table = text.partition("## Settings")[2].partition("## When")[0]
    keys = {
        key
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for key in re.findall(r"`(\w+)`", row)
    }
    assert len(keys) > 10
    assert {key for key in keys if not hasattr(Settings(), key)} == set()
    for path in re.findall(r"deploy/[\w./-]+", text):
        assert (ROOT / path.rstrip(".")).exists(), path
    for words in re.findall(r"gpuwise agent( [a-z-][^`\n#]*)?", text):
        agent_words([word for word in shlex.split(words) if word != "&&"][:3])
