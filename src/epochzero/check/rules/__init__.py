"""What can go wrong: one file a rule."""
