"""One page, one file. A new page is a file here, a template, a test, and a line in ``api.app.PAGES``."""
