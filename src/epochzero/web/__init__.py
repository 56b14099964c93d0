"""The service for a team: what jobs send, kept in one store, with an API and pages.

`app` puts it together. `spool` keeps what arrives until `intake` has it in the store; `access` says who
asks, `guard` what is let in at all, `api` and `pages` answer.
"""
