import os
import sys

rank = int(os.environ.get("RANK", "0"))
shards = sorted(os.listdir(sys.argv[1]))
print(f"rank {rank} reads {shards[rank]}", flush=True)
