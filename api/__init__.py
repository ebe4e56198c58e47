"""FastAPI: REST, pages, jobs, mail."""
