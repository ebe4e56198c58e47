"""Rewrite the generated pages of the documentation: ``python -m docs.build``. A test holds them to the code."""

from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Final

from core import rule_settings
from core.metrics import ENGINE_METRICS, GPU_METRICS, HOST_METRICS, Metric
from core.settings import Settings
from docs import rules_pages

HERE: Final = Path(__file__).parent
_IN_STATE_FOLDER: Final = {
    "database_url": "the state folder's `gpuwise.db`",
    "spool_path": "the state folder's `spool.db`",
}


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


def _metric_rows(metrics: tuple[Metric, ...]) -> list[str]:
    rows = [
        "| name | fold | meaning | from the driver, engine or kernel | dcgm-exporter | nvidia-smi | dmon | plausible |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| `{m.name}` | {m.fold} | {_cell(m.help)} | {_cell(m.source)} | {_cell(m.dcgm)} | {_cell(', '.join(m.smi))} | {_cell(m.dmon)} | {_cell(m.plausible.reason)} |"
        for m in metrics
    ]
    return rows


def metrics_page() -> str:
    """The metric catalogue as a page."""
    lines = [
        "# Metrics",
        "",
        "Generated from `core/metrics.py`. Every value is in base units (W, J, bytes, Hz, °C, seconds, ratios 0–1).",
        "A value that a card, driver or capture does not give is unknown (`null`), never 0.",
        "So is one outside of what is plausible: an import refuses it with its file and line, and keeps the row's other values.",
        "",
        "## GPU",
        "",
        *_metric_rows(GPU_METRICS),
        "",
        "## LLM engine",
        "",
        *_metric_rows(ENGINE_METRICS),
        "",
        "## Host, and the agent on it",
        "",
        *_metric_rows(HOST_METRICS),
        "",
    ]
    return "\n".join(lines)


def settings_page() -> str:
    """The settings as a page."""
    lines = [
        "# Settings",
        "",
        "Generated from `core/settings.py`. Order: flag, then environment, then `gpuwise.toml` (`/etc/gpuwise/`, then the XDG",
        "configuration folder; `GPUWISE_CONFIG` names another file instead), then the default. A bad value fails at start and names its key.",
        "",
        "| key | environment | default |",
        "|---|---|---|",
    ]
    for setting in fields(Settings):
        if setting.name in rule_settings.TABLES:
            continue  # tables of the file, explained below
        default = _IN_STATE_FOLDER.get(setting.name) or _default(setting.default)
        lines.append(f"| `{setting.name}` | `GPUWISE_{setting.name.upper()}` | {default} |")
    text = (Settings.__doc__ or "").split("Attributes:")[1]
    return "\n".join(
        [
            *lines,
            "",
            "## What they mean",
            "",
            "```text",
            *(line[8:] for line in text.strip("\n").splitlines()),
            "```",
            "",
            "## Thresholds and exclusions",
            "",
            *(rule_settings.__doc__ or "").strip().replace("::\n", ":\n").replace("``", "`").splitlines(),
            "",
        ]
    )


def _default(value: object) -> str:
    if value is MISSING or value == "":
        return "none"
    return "not given" if value is None else f"`{value}`"


PAGES: Final[dict[str, Callable[[], str]]] = {
    "metrics.md": metrics_page,
    "settings.md": settings_page,
    **rules_pages.pages(),
}


def main() -> None:
    """Write every generated page; pages of rules that are no more go."""
    folder = HERE / rules_pages.FOLDER
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.md"):
        if f"{rules_pages.FOLDER}/{path.name}" not in PAGES:
            path.unlink()
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
