"""``gpuwise jobs``: the scheduled-work process, or one job now."""

import click

from core import logs
from core.settings import load


@click.command()
@click.option("--database-url", help="sqlite:///PATH or postgresql://USER@HOST/DB.")
@click.option(
    "--once",
    "job_name",
    metavar="JOB",
    help="Run one job now and end: roll-up, ledger, advice, verification, retention, weekly-report, alerts, mail.",
)
def jobs(database_url: str | None, job_name: str | None) -> int:
    """Run the scheduled work: roll-up, ledger, advice, verification, retention, weekly report, alerts, mail."""
    from gpuwise import scheduler

    logs.set_up()
    settings = load({"database_url": database_url})
    if job_name is None:
        return scheduler.run(settings)
    return 0 if scheduler.run_once(settings, scheduler.by_name(job_name)) else 1
