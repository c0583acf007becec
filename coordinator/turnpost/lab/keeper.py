"""Runs one command with no ancestor but init, and reports how it ended. A script, started by `detach` only.

Arguments: the number of the file descriptor to report on, then the command. Reports are lines: the command's
process id, then its exit code. Kept to the bare standard library, as it is started with `-I -S`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time


def main() -> None:
    """Fork away from the caller, then start the command and wait for it."""
    report, command = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(report, False)
    starter = os.getpid()
    if os.fork():
        os._exit(0)
    os.setsid()
    # The command looks at its ancestors as soon as it runs, so the caller must be out of sight before.
    while os.getppid() == starter:
        time.sleep(0.001)
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        os.write(report, f"{error}\n".encode())
        os._exit(127)
    os.write(report, f"{child.pid}\n".encode())
    os.write(report, f"{child.wait()}\n".encode())


main()
