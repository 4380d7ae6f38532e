# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that shows one page at a time, and what it complains of."""
import json
import os
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.service import Service


class Browser:
    """Debian's Chromium, driven by Debian's chromedriver.

    Everything that the console says and every address that is asked for is kept in the logs of
    the driver. `program` is shardwright. Not thread-safe.
    """

    def __init__(self, width=1280, height=860, scale=1):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or "chromium"
        for argument in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars",
                         "disable-dev-shm-usage", "force-prefers-reduced-motion",
                         f"window-size={width},{height}"):
            options.add_argument(f"--{argument}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = Service(shutil.which("chromedriver") or "chromedriver")
        self.driver = webdriver.Chrome(service=service, options=options)
        self.size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.resize()

    def resize(self, **changes):
        """Changes the size of the page that is seen, in CSS pixels."""
        size = {**self.size, **changes}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme):
        """Makes the system look `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, path, **place):
        """Opens a file at a place of its own (`tab="tensors"`) and waits until it is drawn."""
        words = "&".join(f"{name}={value}" for name, value in place.items())
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(f"file://{os.path.abspath(path)}#{words}")
        self.settle()

    def settle(self):
        """Waits for two frames, in which observers of sizes draw."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")

    def run(self, script, *arguments):
        """What a script in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def click(self, selector):
        """Clicks the first element of a selector, where a person would see it."""
        self.driver.find_element("css selector", selector).click()
        self.settle()

    def type(self, selector, text):
        """Replaces the text of a field."""
        field = self.driver.find_element("css selector", selector)
        field.clear()
        field.send_keys(text)
        self.settle()

    def texts(self, selector):
        """What all elements of a selector say."""
        return self.run("return [...document.querySelectorAll(arguments[0])]"
                        ".map((node) => node.textContent)", selector)

    def complaints(self):
        """What the console has said since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """The addresses that were asked for since the page was opened."""
        addresses = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                addresses.append(message["params"]["request"]["url"])
        return addresses

    def picture(self, path):
        """Saves what is seen as a PNG."""
        self.driver.save_screenshot(str(path))

    def close(self):
        """Ends the browser."""
        self.driver.quit()
