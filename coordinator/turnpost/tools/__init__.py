"""The tools of agents: the same actions as the command line, served over stdio to the session that started the server."""
