"""How a job is kept from lasting effects."""
