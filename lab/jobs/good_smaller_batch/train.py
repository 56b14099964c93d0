"""Find the largest batch that fits by trying, as many trainers do."""
import logging
import resource

import torch

logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(levelname)s] %(message)s")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 400 * 2**20,) * 2)


def step(model, opt, batch):
    x = torch.randn(batch, 512, 64)
    loss = (x @ x.transpose(1, 2)).softmax(-1).matmul(model(x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    model = torch.nn.Linear(64, 64)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = 512
    done = 0
    while done < 5:
        try:
            loss = step(model, opt, batch)
        except RuntimeError as error:
            if "can't allocate memory" not in str(error) or batch == 1:
                raise
            logging.error("out of memory at batch size %d", batch, exc_info=True)
            batch //= 4
            logging.warning("trying again with batch size %d", batch)
            continue
        done += 1
        logging.info("step %d batch %d loss %.5f", done, batch, loss)
    logging.info("training finished")


if __name__ == "__main__":
    main()
