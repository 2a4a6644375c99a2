#!/usr/bin/env python3
"""A headless Chromium, told what to do over a pipe (the DevTools protocol): for tests of pages, and for pictures of them.

  browser.py PAGE.html FOLDER    writes wide-light.png, wide-dark.png, narrow-light.png, narrow-dark.png and print.pdf to FOLDER
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDE, NARROW = 1200, 390

# Elements that reach beyond the window on the right, but for those inside of what can be scrolled by itself.
FIND_TOO_WIDE = """(() => {
  const wide = [], edge = document.documentElement.clientWidth + 0.5;
  const scrolls = (element) => element && (['auto', 'scroll'].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  for (const element of document.querySelectorAll('body *')) {
    if (element.getBoundingClientRect().right > edge && !scrolls(element.parentElement))
      wide.push(element.tagName + '.' + element.getAttribute('class') + ': ' + element.textContent.slice(0, 40));
  }
  if (document.documentElement.scrollWidth > edge) wide.push('the page scrolls to ' + document.documentElement.scrollWidth);
  return wide;
})()"""


def find_browser():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One window. `events` keeps what the browser told by itself; it is emptied by open()."""

    def __init__(self, program, timeout=100):
        self.profile = tempfile.TemporaryDirectory()
        to_browser, self.writer = os.pipe()
        self.reader, from_browser = os.pipe()

        def connect():  # the browser reads from descriptor 3 and writes to 4
            read, write = os.dup(to_browser), os.dup(from_browser)
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--hide-scrollbars",
                   f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(["timeout", "-k", "5", str(timeout), *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=connect, close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            self.process.terminate()
        self.process.wait()
        os.close(self.reader)
        os.close(self.writer)
        shutil.rmtree(self.profile.name, ignore_errors=True)  # the browser may still be tidying up in it

    def receive(self):
        while b"\0" not in self.rest:
            part = os.read(self.reader, 1 << 16)
            if not part:
                raise RuntimeError("the browser ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def evaluate(self, script):
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def show(self, width, dark=False, height=900):
        """A window of this width, on a screen with dark or light colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            event = self.receive()
            if "method" in event:
                self.events.append(event)

    def faults(self):
        """What stands on the console of the page that was opened, and what it asked for beside itself."""
        found, pages = [], 0
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.consoleAPICalled":
                found.append(f"console: {[argument.get('value') for argument in parameters['args']]}")
            elif event["method"] == "Log.entryAdded":
                found.append(f"console: {parameters['entry']['text']}")
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(f"console: {parameters['exceptionDetails']['text']}")
            elif event["method"] == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith("data:"):
                pages += 1
                if pages > 1:
                    found.append(f"request: {parameters['request']['url']}")
        return found

    def too_wide(self):
        """What reaches beyond the window on its right side."""
        return self.evaluate(FIND_TOO_WIDE)

    def picture(self):
        """The whole page as a PNG file."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": self.evaluate("innerWidth"), "height": size["height"], "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])

    def print(self):
        """The page as a PDF file."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    page, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    program = find_browser()
    if program is None:
        sys.exit("browser.py: no Chromium here (apt-get install chromium)")
    folder.mkdir(parents=True, exist_ok=True)
    with Browser(program) as browser:
        for name, width in (("wide", WIDE), ("narrow", NARROW)):
            for dark in (False, True):
                browser.show(width, dark)
                browser.open(page.as_uri())
                path = folder / f"{name}-{'dark' if dark else 'light'}.png"
                path.write_bytes(browser.picture())
                print(path)
            for fault in browser.too_wide():
                print(f"wider than {width} px: {fault}", file=sys.stderr)
        (folder / "print.pdf").write_bytes(browser.print())
        print(folder / "print.pdf")


if __name__ == "__main__":
    main()
