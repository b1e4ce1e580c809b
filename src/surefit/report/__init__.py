"""Reports: what was found about a model, for a person to read.

:func:`render` turns a plain document (a dictionary of JSON types, as ``certificate.json`` holds it) into one
HTML page that needs nothing else: no network, no script, plots as inline SVG. :func:`write` puts it in a
file. :mod:`surefit.report.terminal` says the same in a few lines on a terminal.

The document is never trusted. Text is escaped, characters that could hide or reorder text are shown as
escapes, numbers are read as numbers or not at all, and a part that is missing or malformed becomes a
sentence that says so.

Examples
--------
>>> from surefit.report import render
>>> page = render({"verdict": {"status": "holds", "headline": "Every claim holds."}})
>>> page.startswith("<!doctype html>"), "Every claim holds." in page
(True, True)
"""

from __future__ import annotations

from .html import render, write

__all__ = ["render", "write"]
