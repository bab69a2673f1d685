"""A browser without a window and without a network."""

import os
import shutil

import pytest

from support.every_smoothing import CASES, made

_SCRIPTED = "return document.documentElement.className === 'scripted'"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium():
    """Start the browser of the system; without one, or without Selenium, these tests are skipped."""
    selenium = pytest.importorskip("selenium.webdriver", reason="needs Selenium, an extra for development")
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = program
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    for each in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000", *sandbox):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    browser.set_page_load_timeout(60)
    browser.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium):
    """The browser, as it was at first; whatever a page says on the console is an error."""
    chromium.get_log("browser")
    yield chromium
    for domain in ("Emulation.clearDeviceMetricsOverride",):
        chromium.execute_cdp_cmd(domain, {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert chromium.get_log("browser") == []


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A run of every smoothing and threat, by the name of its case."""
    folder = tmp_path_factory.mktemp("runs")
    return {case: made(case).save(folder / case) for case in CASES}


@pytest.fixture
def open_page(browser):
    """Open the page of a run from disk, with a fragment."""

    def opened(run, fragment=""):
        browser.get("about:blank")
        browser.get(f"{(run / 'report.html').as_uri()}{fragment}")
        wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait(browser, 20)
        wait.until(lambda _: browser.execute_script(_SCRIPTED) or browser.refresh())  # emulation is switched late
        return browser

    return opened
