"""`turnpost demo`: the main job on the real Claude Code, shown and proven.

`run` sets up a laboratory and plays the scenes side by side; `scenes` is what happens to each agent; `stage` is what a
scene can do and see, all of it through the command line; `checks` compares what was promised with what the model got.
"""
