"""The one place that reads the clock. Moments are seconds since the epoch, spans are seconds."""

from __future__ import annotations

import time

monotonic = time.monotonic
sleep = time.sleep
processor = time.thread_time
"""Seconds that this thread has had a processor: what its own work takes, whoever else is at work."""


def now() -> float:
    """The wall clock. It may step back: orders come from sequence numbers, never from here."""
    return time.time()


def rfc3339(moment: float | None) -> str | None:
    """UTC with milliseconds, `2026-11-30T14:02:11.042Z`; None stays None."""
    if moment is None:
        return None
    millis = int(moment * 1000)
    base = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(millis // 1000))
    return f"{base}.{millis % 1000:03d}Z"


def parse(text: str) -> float | None:
    """The moment in an RFC 3339 UTC text, None when it is none."""
    import calendar

    base, _, fraction = text.rstrip("Z").partition(".")
    try:
        whole = calendar.timegm(time.strptime(base, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None
    if whole < 0 or (fraction and not (fraction.isascii() and fraction.isdigit())):
        return None
    return whole + float(f"0.{fraction}0")


def day(moment: float) -> str:
    """The UTC day of a moment, `2026-11-30`."""
    return time.strftime("%Y-%m-%d", time.gmtime(moment))


def is_day(text: str) -> bool:
    """Whether a text is a day as `day` writes it."""
    return len(text) == 10 and text[4] == text[7] == "-" and text.replace("-", "").isdigit()


def span(seconds: float) -> str:
    """An age for people: `4 s`, `12 min`, `3 h`, `2 d`."""
    seconds = max(0.0, seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
