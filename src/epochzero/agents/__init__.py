"""The same answers for coding agents, by the Model Context Protocol (MCP).

`tools` has the functions that an agent may call, `answers` keeps their size bounded, and `server` offers
them. Nothing is written and nothing of a job is run.
"""
