"""Of a test that passed in a worker of pytest-xdist one report is sent. All five (it begins, is set up, is run, is
taken down, ends) would be read by the process that prints, which takes as long as many a test.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


def run_in_worker(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run `item` and report all of it if any part failed or was skipped, else its call alone. `None` leaves it to
    pytest: where there is no worker, or where somebody asked how long the parts took.
    """
    options = item.config.option
    if not hasattr(item.config, "workerinput") or options.durations is not None or options.xmlpath:
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    passed = all(report.passed for report in reports)
    for report in reports:
        if report.when == "call" or not passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
