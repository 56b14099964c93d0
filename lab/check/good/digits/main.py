import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torchvision import datasets, transforms


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.first = nn.Conv2d(1, 24, kernel_size=3)
        self.second = nn.Conv2d(24, 48, kernel_size=3)
        self.drop = nn.Dropout(0.3)
        self.dense = nn.Linear(48 * 12 * 12, 96)
        self.out = nn.Linear(96, 10)

    def forward(self, x):
        x = F.relu(self.first(x))
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        x = self.drop(torch.flatten(x, 1))
        return F.log_softmax(self.out(F.relu(self.dense(x))), dim=1)


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            done = 100.0 * batch_idx / len(loader)
            print("epoch {} [{:.0f}%] loss {:.5f}".format(epoch, done, loss.item()))
            if args.dry_run:
                break


def test(model, device, loader):
    model.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            right += output.argmax(dim=1, keepdim=True).eq(target.view_as(output.argmax(1))[:, None]).sum().item()
    count = len(loader.dataset)
    print(f"test loss {loss / count:.4f}, accuracy {right}/{count}")


def main():
    parser = argparse.ArgumentParser(description="digits")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N")
    parser.add_argument("--test-batch-size", type=int, default=1000, metavar="N")
    parser.add_argument("--epochs", type=int, default=14, metavar="N")
    parser.add_argument("--lr", type=float, default=1.0, metavar="LR")
    parser.add_argument("--gamma", type=float, default=0.7, metavar="M")
    parser.add_argument("--no-accel", action="store_true", default=False)
    parser.add_argument("--dry-run", action="store_true", default=False)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--save-model", action="store_true", default=False)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    use_cuda = not args.no_accel and torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    train_kwargs = {"batch_size": args.batch_size}
    test_kwargs = {"batch_size": args.test_batch_size}
    if use_cuda:
        cuda_kwargs = {"num_workers": 1, "pin_memory": True, "shuffle": True}
        train_kwargs.update(cuda_kwargs)
        test_kwargs.update(cuda_kwargs)
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.13,), (0.31,))])
    first = datasets.MNIST("../data", train=True, download=True, transform=transform)
    second = datasets.MNIST("../data", train=False, transform=transform)
    train_loader = torch.utils.data.DataLoader(first, **train_kwargs)
    test_loader = torch.utils.data.DataLoader(second, **test_kwargs)
    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)
        scheduler.step()
    if args.save_model:
        torch.save(model.state_dict(), "mnist_cnn.pt")


if __name__ == "__main__":
    main()
