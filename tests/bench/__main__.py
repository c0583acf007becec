"""`make bench`: how fast it is, as ratios to yardsticks measured in turns in the same run.

There are no limits on times here that a slow machine could break: a target is a ratio, and missing one is reported, not
an error. Exit code 1 says that something could not be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from typing import NoReturn

from tests.bench import archive, commands, context, hooks, idle, report, sends, stop, stopped, wake
from tests.bench.figures import Measured
from tests.bench.ground import Measure
from tests.bench.rounds import NotMeasured
from turnpost.core.errors import TurnpostError
from turnpost.lab.errors import LabError
from turnpost.lab.progress import Progress

MEASURES: dict[str, Measure] = {
    "hooks": hooks.measure,
    "send": commands.measure,
    "wake": wake.measure,
    "stop": stop.measure,
    "stopped": stopped.measure,
    "idle": idle.measure,
    "sends": sends.measure,
    "context": context.measure,
    "archive": archive.measure,
}


def main() -> int:
    """Measure and report."""
    options = _options()
    # A terminated run ends what it has started, like an interrupted one.
    signal.signal(signal.SIGTERM, _end)
    progress = Progress()
    before = os.getloadavg()
    if said := report.warning(before):
        progress.say(said)
    found: list[Measured] = []
    failed: dict[str, str] = {}
    for name in options.only or MEASURES:
        try:
            found += MEASURES[name](options.quick, progress)
        except (NotMeasured, LabError, TurnpostError, OSError) as error:
            failed[name] = str(error) or type(error).__name__
    if sys.stderr.isatty():
        progress.update("")
    after = os.getloadavg()
    if options.json:
        shown = json.dumps(report.document(found, failed, before, after, options.quick), indent=2)
    else:
        shown = report.table(found, failed, before, after)
    sys.stdout.write(shown + "\n")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a measurement")
    parser.add_argument("--only", action="append", choices=MEASURES, metavar="NAME", help=", ".join(MEASURES))
    return parser.parse_args()


def _end(*_: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
