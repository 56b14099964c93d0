import multiprocessing
import time


def work(number):
    held = b"x" * (160 << 20)
    time.sleep(1.5)
    return len(held)


if __name__ == "__main__":
    workers = [multiprocessing.Process(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    codes = [worker.exitcode for worker in workers]
    if any(codes):
        raise SystemExit(f"a worker was killed: {codes}")
    print("all workers done")
