import torch
import torch.distributed as dist
from torch import nn


def main():
    dist.init_process_group("gloo")
    if dist.get_world_size() != 2:
        raise SystemExit("Start this script with two processes: one plays, one learns.")
    learner = dist.get_rank() == 1
    torch.manual_seed(0)
    policy = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    for _ in range(12):
        seen = torch.zeros(32, 5)
        if not learner:
            states = torch.randn(32, 4)
            actions = policy(states).argmax(1, keepdim=True)
            seen = torch.cat([states, actions.float()], 1)
        dist.broadcast(seen, src=0)
        if learner:
            loss = nn.functional.cross_entropy(policy(seen[:, :4]), seen[:, 4].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for parameter in policy.parameters():
            dist.broadcast(parameter.data, src=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
