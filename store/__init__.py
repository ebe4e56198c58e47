"""All the SQL: models, ingest, roll-ups, retention, queries."""
