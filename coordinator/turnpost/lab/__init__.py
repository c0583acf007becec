"""A closed laboratory: the real Claude Code, a scripted model on loopback, no account and no network.

`turnpost demo` and the tests that need the real program stand on the same three parts:

- `model`: a model server whose answers are a script and whose requests are kept as evidence;
- `fetch`: the Claude Code binary, from PATH or from npm, at a known version;
- `world`: a temporary home with an environment that lets nothing of the caller's in, and that ends all it
  started.
"""
