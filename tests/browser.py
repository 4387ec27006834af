"""Pages in a real browser: Chromium, driven by playwright, without a network."""

import shutil

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def running_browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path")
    with sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(running_browser, tmp_path):
    """Opens a page, given as text or as its file; any fault of its code, and any request, fails the test."""
    faults, contexts = [], []

    def show(source, width=1280, **options):
        path = source
        if isinstance(source, str):
            path = tmp_path / "page.html"
            path.write_text(source, encoding="utf-8")
        context = running_browser.new_context(offline=True, viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if request.url.startswith("file:") else faults.append(request.url))
        page.goto(path.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert faults == []
