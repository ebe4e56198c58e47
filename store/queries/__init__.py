"""Reads and writes by topic; frozen dataclasses in and out."""
