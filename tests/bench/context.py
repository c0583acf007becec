"""What a message adds to the model request at each boundary of the real Claude Code, against its body, in bytes."""

from __future__ import annotations

from tests.bench.figures import Measured
from tests.bench.rounds import NotMeasured
from tests.real import costs
from tests.real.kit import Post
from turnpost.lab.fetch import NEWEST, fetch_claude
from turnpost.lab.model import ScriptedModel
from turnpost.lab.progress import Progress
from turnpost.lab.world import World

BARE = "the body alone"
QUICK = (10, 1000)


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """All boundaries with all sizes. A wake is shown without Claude Code's own notice too, which nobody can shorten."""
    found: list[Measured] = []
    with ScriptedModel() as model, World(fetch_claude(NEWEST, progress), model.url) as world:
        post = Post(world, model)
        sizes = (QUICK, QUICK, QUICK[:1]) if quick else ()
        try:
            for cost in costs.measure(post, *sizes):
                progress.update(f"context: {cost.boundary}")
                found.append(_figure(cost, cost.added, ""))
                if cost.boundary == "rewake":
                    found.append(_figure(cost, cost.added - cost.frame, ", ours"))
        except AssertionError as error:
            raise NotMeasured(str(error)) from error
        finally:
            post.close()
    return found


def _figure(cost: costs.Cost, added: float, of: str) -> Measured:
    many = f"{cost.count} of " if cost.count > 1 else ""
    name = f"{cost.boundary} {many}{cost.body}{of}"
    return Measured(name, "B", (added,), BARE, (cost.body,), limit=cost.limit)
