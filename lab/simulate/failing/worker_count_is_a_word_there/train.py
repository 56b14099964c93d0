import os

workers = int(os.environ.get("NUM_WORKERS", "2"))
print(f"{workers} workers")
