"""The agent's path into the database stays free of SQLAlchemy."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("sqlalchemy", "alembic", "pydantic", "psycopg")


def test_storing_samples_into_sqlite_loads_neither_sqlalchemy_nor_a_postgresql_driver(
    sqlite_template: Path,
) -> None:
    program = (
        "import sys\n"
        "from store.dbapi import open_connection\n"
        "from store.ingest import Ingest\n"
        f"ingest = Ingest(open_connection('sqlite:///{sqlite_template}'))\n"
        "ingest.commit()\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("[]", "", 0)
