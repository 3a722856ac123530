"""How tests open and run a notebook in JupyterLab."""

import warnings

import pytest

playwright = pytest.importorskip("playwright.sync_api")


def open_notebook(page, address: str) -> None:
    """Open a notebook and wait for its kernel.

    On a busy machine JupyterLab now and then hangs while it loads, its page ("The loading screen is taking a long
    time") or a script of it, or the browser gives a page up: load it anew then, as its reader would.
    """
    ready = page.get_by_text("Python 3 (ipykernel) | Idle")
    for patience in (60_000, 100_000, 200_000):
        try:
            page.goto(address, wait_until="commit", timeout=patience)  # "load" may never come
            return ready.wait_for(timeout=patience)
        except playwright.Error as error:
            seen = f"{_text_of(page)}\n{error}"
            warnings.warn(f"loaded anew after {patience / 1000:g} s: {seen[-1000:]}", stacklevel=2)
    pytest.fail(f"no kernel: {address}; on the page:\n{seen}")


def run_all_cells(page, shown) -> None:
    """Run all cells and wait until what they show is there.

    On a busy machine a widget now and then stays empty: run the cells again then, as their reader would.
    """
    for patience in (100_000, 200_000):
        page.get_by_text("Run", exact=True).first.click()
        page.get_by_text("Run All Cells", exact=True).click()
        try:
            return shown.wait_for(timeout=patience)
        except playwright.TimeoutError:
            seen = _text_of(page)
            warnings.warn(f"run again after {patience / 1000:g} s: {seen[-1000:]}", stacklevel=2)
    pytest.fail(f"not shown: {shown}; on the page:\n{seen}")


def _text_of(page) -> str:
    try:
        return page.inner_text("body", timeout=5_000)
    except playwright.Error:  # a page that hangs does not answer either
        return "nothing that can be read"
