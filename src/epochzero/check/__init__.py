"""A job against its platform, before it costs GPU time: read, never run."""
