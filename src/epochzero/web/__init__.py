"""Team server: collects jobs in one store, with an API and web pages.

`app` assembles it. `spool` stores received data until `intake` has imported them; `access` authenticates,
`guard` limits requests, `api` and `pages` answer them.
"""
