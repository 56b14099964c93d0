"""The processes of an attempt: how they start, what connects them to the terminal, how they end."""
