import logging, os, resource
import torch
import torch.distributed as dist

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
logger = logging.getLogger("shuffle")

class Spill:
    """Buckets of one epoch's shuffle, one open file a bucket."""
    def __init__(self, root, buckets):
        os.makedirs(root, exist_ok=True)
        self.files = [open(os.path.join(root, f"bucket-{i:04d}"), "wb") for i in range(buckets)]

    def write(self, samples):
        for s in samples:
            self.files[int(s * len(self.files)) % len(self.files)].write(b"x")

def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 1:                                   # this node has a lower ulimit -n
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    logger.info("rank %d may open %d files", rank, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    spill = Spill(f"spill/rank{rank}", buckets=400)
    spill.write(torch.rand(1000).tolist())
    logger.info("rank %d spilled", rank)
    dist.barrier()

if __name__ == "__main__":
    main()
