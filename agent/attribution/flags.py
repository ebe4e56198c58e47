"""Command line of an LLM server → what it serves, where, and with which limits. Pure.

A command line may hold secrets. Nothing leaves here but flags of ``flag_tables``, each checked to look like its kind
of value; an unknown flag takes every word up to the next flag with it. Nothing is logged or raised.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.attribution.flag_tables import (
    IGNORED,
    JSON,
    JSON_KEYS,
    LLAMACPP,
    NUMBER,
    OFF,
    ON,
    PRESENT,
    SGLANG,
    TEXT,
    TGI,
    TRITON,
    TRTLLM,
    VLLM,
    WORD,
    Engine,
    Flag,
)

TGI_LAUNCHER_PORT: Final = 3000
"""The launcher's own default; the images of TGI set 80 in the environment."""
_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*")
_PYTHON_TAKES_VALUE: Final = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_MODULES: Final = {
    "vllm.entrypoints.openai.api_server": (VLLM, ""),
    "vllm.entrypoints.cli.main": (VLLM, "serve"),
    "vllm": (VLLM, "serve"),
    "sglang.launch_server": (SGLANG, ""),
    "sglang.cli.main": (SGLANG, "serve"),
    "text_generation_server.cli": (TGI, "serve"),
    "tensorrt_llm.commands.serve": (TRTLLM, ""),
}
"""Python modules, and the word that must follow; a script below a path of the same names counts too."""
_PROGRAMS: Final = {
    "vllm": (VLLM, "serve"),
    "sglang": (SGLANG, "serve"),
    "text-generation-launcher": (TGI, ""),
    "text-generation-server": (TGI, "serve"),
    "trtllm-serve": (TRTLLM, ""),
    "tritonserver": (TRITON, ""),
    "llama-server": (LLAMACPP, ""),
}
_TRTLLM_OTHER: Final = frozenset({"disaggregated", "disaggregated_mpi_worker", "mm_embedding_serve"})
"""Commands of ``trtllm-serve`` that serve no language model themselves."""
_NUMBER: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?|\.\d{1,9})([kKmMgGtT]?)")
_SCALES: Final = {
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
}
"""As vLLM reads ``32k`` and ``32K``."""
_WORD: Final = re.compile(r"[A-Za-z0-9\[:][A-Za-z0-9_.:,+\]\[-]{0,47}")
_TEXT: Final = re.compile(r"[A-Za-z0-9_./~][^\x00-\x20\x7f\"'`$]{0,255}")
_SECRET: Final = re.compile(
    r"(?:sk-|hf_[A-Za-z0-9]{16}|nvapi-|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|AKIA[0-9A-Z]{12}|eyJ[\w-]{8}|Bearer)"
)
_IN_ADDRESS: Final = re.compile(r"(?<=://)[^/@]*@|[?#].*$")
_FALSE: Final = frozenset({"0", "false", "off", "no"})
_IP_ADDRESS: Final = re.compile(r"\d+(?:\.\d+){3}|\[?[0-9A-Fa-f]*:[0-9A-Fa-f:.]*\]?")
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", "[::]", "*"})  # noqa: S104 - recognised, not bound


@dataclass(frozen=True, slots=True)
class ServingFlags:
    """What a server was told on its command line.

    Attributes:
        kind: as in ``EngineIdentity.kind``.
        model: name or path as given; user names, passwords and queries of an address are cut out.
        host: address it listens on; None where it is the default or every interface.
        port: of its metrics; None where it listens on no port (a worker without a server, a socket file).
        metrics_path: None where the flags leave metrics off.
        settings: other flags, by the keys of ``EngineIdentity.settings``; an absent one was not given.
    """

    kind: str
    model: str | None
    host: str | None
    port: int | None
    metrics_path: str | None
    settings: Mapping[str, str]


def parse(words: Sequence[str], environ: Mapping[str, str] | None = None) -> ServingFlags | None:
    """Flags of a serving command line; None when it starts no known server.

    Args:
        words: program and arguments.
        environ: variables that stand for flags (``environ_keys``); a flag goes before its variable.
    """
    found = _program(words)
    if found is None:
        return None
    engine, name, rest, may_name_model = found
    known: dict[str, str] = {}
    for variable, flag in engine.environ:
        if environ and variable in environ:
            _take(known, engine.flags[flag], environ[variable])
    known |= _flags(engine, rest, may_name_model=may_name_model)
    return _serving(engine, name, known)


def environ_keys(words: Sequence[str]) -> tuple[str, ...]:
    """Environment variables that stand for flags of that server."""
    found = _program(words)
    return () if found is None else tuple(variable for variable, _flag in found[0].environ)


def _program(words: Sequence[str]) -> tuple[Engine, str, Sequence[str], bool] | None:
    """The engine that a command line starts: itself, its program's name, its arguments, whether one may be the model."""
    if not words:
        return None
    name, rest, table = _base(words[0]), words[1:], _PROGRAMS
    if _PYTHON.fullmatch(name):
        started = _python(rest)
        if started is None:
            return None
        name, rest, is_module = started
        if is_module or name.endswith(".py"):
            table = _MODULES
            name = name if is_module else _module_of(name)
        else:
            name = _base(name)
    elif name.endswith(".py"):
        table, name = _MODULES, _module_of(words[0])
    found = table.get(name)
    if found is None:
        return None
    engine, command = found
    if command:
        if not rest or rest[0] != command:
            return None
        rest = rest[1:]
    elif engine is TRTLLM and rest:
        if rest[0] in _TRTLLM_OTHER:
            return None
        rest = rest[1:] if rest[0] == "serve" else rest
    return engine, name, rest, bool(command) or engine is TRTLLM


def _python(words: Sequence[str]) -> tuple[str, Sequence[str], bool] | None:
    """What an interpreter runs: name, arguments, and whether it is a module; None for ``-c`` and no script."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "-m":
            return (words[at + 1], words[at + 2 :], True) if at + 1 < len(words) else None
        if word in {"-c", "-"}:
            return None
        if not word.startswith("-"):
            return word, words[at + 1 :], False
        at += 2 if word in _PYTHON_TAKES_VALUE else 1
    return None


def _module_of(path: str) -> str:
    """``/x/vllm/entrypoints/openai/api_server.py`` as a module; the path itself where it is none that is known."""
    dotted = path.removesuffix(".py").replace("/", ".")
    return next((module for module in _MODULES if f".{dotted}".endswith(f".{module}")), path)


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _flags(engine: Engine, words: Sequence[str], *, may_name_model: bool) -> dict[str, str]:
    """Known flags by key; the last of two wins."""
    known: dict[str, str] = {}
    for flag, value in _pairs(engine, words):
        if flag is not None:
            _take(known, flag, value)
        elif may_name_model and "model" not in known and (model := _checked(TEXT, value)):
            known["model"] = model
    return known


def _pairs(engine: Engine, words: Sequence[str]) -> Iterator[tuple[Flag | None, str]]:
    """Known flags with their values, and words that stand alone as (None, word)."""
    at, alone = 0, True
    while at < len(words):
        word = words[at]
        at += 1
        if not _is_flag(word):
            if alone:
                yield None, word
            continue
        name, equals, value = word.lstrip("-").partition("=")
        flag = engine.flags.get(name.replace("_", "-"))
        alone = bool(flag) or bool(equals)
        if flag is None or flag.takes == IGNORED:
            continue
        if not equals and flag.takes not in {ON, OFF}:
            if at >= len(words) or _is_flag(words[at]):
                continue
            value = words[at]
            at += 1
            alone = flag.key != "served_model_name"
        yield flag, value


def _is_flag(word: str) -> bool:
    """A dash and no number: ``-1`` is a value."""
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit()


def _take(known: dict[str, str], flag: Flag, value: str) -> None:
    """Keep a flag's value if it is what the flag takes."""
    if flag.takes in {ON, OFF}:
        known[flag.key] = "true" if (flag.takes == ON) != (value.strip().lower() in _FALSE) else "false"
    elif flag.takes == PRESENT:
        known[flag.key] = "true"
    elif flag.takes == JSON:
        known |= _from_json(flag.key, value)
    elif (checked := _checked(flag.takes, value)) is not None:
        known[flag.key] = checked


def _checked(takes: str, value: str) -> str | None:
    """A value that looks like what it should be; None for anything else."""
    value = value.strip()
    if takes == NUMBER:
        found = _NUMBER.fullmatch(value)
        if found is None:
            return None
        return f"{float(found[1]) * _SCALES[found[2]]:.0f}" if found[2] else found[1]
    if takes == TEXT:
        value = _IN_ADDRESS.sub("", value)
    pattern = _TEXT if takes == TEXT else _WORD
    return value if pattern.fullmatch(value) and not _SECRET.match(value) else None


def _from_json(key: str, text: str) -> dict[str, str]:
    """Known keys of an object given as JSON."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    found = {}
    for name, setting in JSON_KEYS[key].items():
        value = told.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            checked = _checked(TEXT if name == "model" else WORD, str(value))
            if checked is not None:
                found[setting] = checked
    return found


def _serving(engine: Engine, name: str, known: dict[str, str]) -> ServingFlags:
    model, host, asked = known.pop("model", None), known.pop("host", None), known.pop("port", None)
    if host in _EVERYWHERE or (engine is TGI and host and not _IP_ADDRESS.fullmatch(host)):
        host = None  # TGI's router listens everywhere when its host is a name
    default = TGI_LAUNCHER_PORT if name == "text-generation-launcher" else engine.port
    port: int | None = default
    if asked is not None:
        port = int(asked) if asked.isdigit() and 0 < int(asked) < 1 << 16 else None
    if known.get("headless") == "true" or "uds" in known:
        port = None
    path: str | None = f"{known.pop('api_prefix', '').rstrip('/')}{engine.metrics_path}"
    if engine.metrics_switch is not None and known.get(engine.metrics_switch) != "true":
        path = None
    if known.get("allow_metrics", "true").lower() in _FALSE:
        path = None
    if known.get("cuda_graphs") == "0":
        known["enforce_eager"] = "true"
    return ServingFlags(engine.kind, model, host, port, path, dict(sorted(known.items())))
