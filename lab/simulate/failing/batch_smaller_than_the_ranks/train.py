import os

world = int(os.environ.get("WORLD_SIZE", "1"))
each = 2 // world
steps = 100 // each
print(f"{steps} steps of {each}", flush=True)
