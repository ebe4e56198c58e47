"""Alembic history."""
