"""Tests in a real browser."""

import pytest

from tests.browser.driver import Browser, why_not


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One for all tests; each opens its own page."""
    missing = why_not()
    if missing is not None:
        pytest.skip(missing)
    found = Browser(tmp_path_factory.mktemp("browser"))
    # What a new window asks for is not the page's doing.
    found.open("about:blank")
    found.requested()
    yield found
    found.close()
