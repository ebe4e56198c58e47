"""``gpuwise idle``: whether a GPU, host, pod or job is idle, for people and as an exit code for scripts."""

from dataclasses import asdict
from typing import Any, Final
from urllib.parse import urlencode

import click

from api import formats
from gpuwise.commands.display import Column, figure, print_json, print_rows
from gpuwise.commands.options import Source, database_options, open_session
from gpuwise.commands.workloads import minute

NOT_IDLE: Final = 3
"""Exit code; 1 and 2 mean that the question was not answered."""

GPUS: Final = (
    Column("host", "HOST"),
    Column("index", "GPU"),
    Column("idle", "IDLE", lambda value: "yes" if value else "no"),
    Column("activity", "ACTIVITY"),
    Column("since", "SINCE", minute),
    figure("coverage_ratio", "SEEN", formats.percent),
    Column("gpu_uuid", "UUID"),
    Column("why", "WHY"),
)


@click.command()
@click.option("--gpu", metavar="UUID", help="This GPU or MIG slice.")
@click.option("--host", metavar="NAME", help="All GPUs of this host.")
@click.option("--pod", metavar="[NAMESPACE/]NAME", help="The GPUs that this pod holds.")
@click.option("--job", metavar="ID", help="The GPUs that this Slurm job holds.")
@click.option(
    "--workload", metavar="KEY", help="The GPUs that this workload holds, as --by workload names it."
)
@database_options
def idle(source: Source, **asked: str | None) -> int:
    """Whether a GPU, host, pod or job is idle, since when, how sure. Exit codes: 0 idle, 3 not idle or unknown, 1 failed, 2 usage."""
    found = _answer(source, asked)
    if source.as_json:
        print_json(found)
    else:
        subject = found["subject"]
        said = "is idle" if found["idle"] else "is not known to be idle"
        click.echo(f"{subject['kind']} {subject['id']} {said}: {found['why']}")
        if len(found["gpus"]) > 1:
            print_rows(found["gpus"], GPUS, empty="")
    return 0 if found["idle"] else NOT_IDLE


def _answer(source: Source, asked: dict[str, str | None]) -> dict[str, Any]:
    from api.resources.idle_subject import Asked

    subject = Asked(**asked)
    _ = subject.kind_and_id  # refused here alike, whoever is asked
    if source.server is not None:
        from gpuwise.commands.remote import ask

        given = {name: text for name, text in asdict(subject).items() if text}
        answered: dict[str, Any] = ask(source.server, f"idle?{urlencode(given)}")
        return answered
    from api.resources.as_json import to_json
    from api.resources.idle import idle as answer
    from core.clock import now_ms

    with open_session(source.settings) as session:
        read: dict[str, Any] = to_json(answer(session, now_ms(), subject))
        return read
